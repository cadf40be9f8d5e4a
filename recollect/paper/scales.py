"""Two scales with one code path: sizes for minutes on two CPU cores, and the paper's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from recollect.degradation import PAPER_MASKS
from recollect.diffusion import BUNDLED
from recollect.errors import InputError
from recollect.paper.cells import SEED, Fit, ImageSet

PERFECT = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
MODERATE = (1e-4,)
FROM_THE_FIRST = (1e-2, 1e-3, *PERFECT)  # also losses at which little is memorized
GROWING = (100, 200, 400, 600, 1000)  # images; fewer than the narrowest network is wide, so that all have one recipe
SMALL_GROWING = (12, 24, 48, 96)
UNSEEN = {  # SVHN images that no network was trained on, one a photograph, by their file
    "svhn?count=249&seed=42&part=control": 249,  # as many as can be: half of the photographs of the copy used here
    "svhn/test_32x32.mat?count=251&seed=42": 251,
}


@dataclass(frozen=True)
class Scale:
    """The sizes of all experiments, and which networks are trained with both optimizers."""

    name: str
    few: Mapping[str, ImageSet]  # by kind of network, for a perfect fit
    many: Mapping[str, ImageSet]  # and for moderate overfitting
    width: Mapping[str, int | tuple[int, ...]]
    many_width: Mapping[str, int | tuple[int, ...]]
    seconds: Mapping[str, float]  # to train a kind of network to perfect fit
    many_seconds: Mapping[str, float]
    by_both: Mapping[str, tuple[str, ...]]  # activations that are trained with the other optimizer too
    masks: tuple[str, ...] = tuple(PAPER_MASKS)
    table_masks: tuple[str, ...] = (
        "block",
        "half",
        "stripes",
    )  # of the two tables; the paper's are unknown
    patience: float = 1.0  # a training may take this many times its seconds
    trainings: Mapping[str, int] = field(default_factory=dict)  # of each kind of network on a set of images; else one
    growing: tuple[ImageSet, ...] = ()  # sets that grow, each the first images of the last
    widths: tuple[int, ...] = ()  # of FC-10, beside the usual one
    sampled: Mapping[str, int] = field(default_factory=dict)  # larger samples of sets that are attacked in part
    shown: Mapping[str, ImageSet] = field(default_factory=dict)  # free images for figures of images; else the usual
    seconds_with: Mapping[str, float] = field(default_factory=dict)  # to perfect fit with the other optimizer or recipe
    changed_width: Mapping[str, int] = field(default_factory=dict)  # of networks that nothing was tuned on
    # After so many steps a training ends, on a slow machine as on a fast one; by kind or kind and optimizer.
    steps: Mapping[str, int] = field(default_factory=dict)
    many_steps: Mapping[str, int] = field(default_factory=dict)

    @property
    def middle(self) -> ImageSet:
        """The growing set on which all but the number of images is varied."""
        return self.growing[len(self.growing) // 2]

    def perfect(self, kind: str, activation: str, optimizer: str) -> Fit:
        """Describe a training to a train loss of 1e-8, saved at every decade from 1e-4."""
        seconds = self.seconds_with.get(f"{kind}-{optimizer}", self.seconds[kind])
        steps = self.steps.get(f"{kind}-{optimizer}", self.steps.get(kind))
        limits = self.patience * seconds, steps
        return Fit(kind, activation, optimizer, self.width[kind], self.few[kind], PERFECT, seconds, *limits)

    def moderate(self, kind: str, activation: str, optimizer: str) -> Fit:
        """Describe a training on more images, to a train loss of 1e-4."""
        seconds = self.many_seconds[kind]
        steps = self.many_steps.get(f"{kind}-{optimizer}", self.many_steps.get(kind))
        limits = self.patience * seconds, steps
        return Fit(kind, activation, optimizer, self.many_width[kind], self.many[kind], MODERATE, seconds, *limits)

    def plain(self, kind: str, activation: str, rate: float | None = None) -> Fit:
        """Describe a training with the plain recipe, at PyTorch's rate or at a rate that its name then says."""
        seconds = self.seconds_with.get(f"{kind}-plain", self.seconds[kind])
        changes = () if rate is None else (("rate", rate),)
        usual = self.perfect(kind, activation, "adam")
        return replace(usual, plain=True, changes=changes, goal_seconds=seconds, limit_seconds=self.patience * seconds)

    def pictured(self, kind: str, activation: str, optimizer: str, milestones: tuple[float, ...] = PERFECT) -> Fit:
        """Describe a training on images that may be published, for a figure of images."""
        usual = self.perfect(kind, activation, optimizer)
        return replace(usual, images=self.shown.get(kind, usual.images), milestones=milestones)

    def untuned(self, kind: str, activation: str, optimizer: str) -> Fit:
        """Describe a training of a network of another width, which no setting was chosen on."""
        usual = self.perfect(kind, activation, optimizer)
        return replace(usual, changes=(("width", self.changed_width[kind]),))

    def growth(self, images: ImageSet, *changes: tuple[str, float], optimizer: str = "adam") -> Fit:
        """Describe FC-10 on one of the growing sets, with other settings than the usual ones."""
        usual = self.perfect("fc10", "lrelu", optimizer)
        return replace(usual, images=images, milestones=FROM_THE_FIRST, changes=changes)

    def repeats(self, fit: Fit) -> list[Fit]:
        """List the further trainings of a network, from other first weights."""
        usual = self.trainings.get(f"{fit.kind}-{fit.images.name}", 1)
        number = self.trainings.get(f"{fit.kind}-{fit.optimizer}-{fit.images.name}", usual)
        return [replace(fit, seed=SEED + i) for i in range(1, number)]


def _photos(count: int, size: int, prior: str | None = None) -> ImageSet:
    return ImageSet(f"photos{count}", f"photos?count={count}&size={size}&seed=42", count, prior=prior)


def _tiny(
    count: int, selection: str, attacked: int | None = None, control: str | None = None, prior: str | None = None
) -> ImageSet:
    source = "tiny-imagenet:{data}/tiny-imagenet-200.zip?"
    control_spelling = f"{source}{control}&seed=42" if control else None
    return ImageSet(f"tiny{count}", f"{source}{selection}&seed=42", count, attacked, control_spelling, prior)


def _growing(counts: tuple[int, ...], spelling: str, name: str) -> tuple[ImageSet, ...]:
    """Describe the first images of a set, for each count; the spelling is of the last."""
    largest = f"{name}{counts[-1]}"
    return tuple(ImageSet(f"{name}{count}-of-{counts[-1]}", spelling, count, first_of=largest) for count in counts)


def _svhn(count: int, unseen: Iterable[str] = ()) -> ImageSet:
    more = tuple(f"svhn:{{data}}/{file}" for file in unseen)
    spelling = f"svhn:{{data}}/svhn?count={count}&seed=42"
    return ImageSet(f"svhn{count}", spelling, count, prior=BUNDLED.name, more_control_spellings=more)


def _cifar(count: int, attacked: int | None = None) -> ImageSet:
    spelling = "cifar10:{data}/cifar-10-batches-py?count=" + f"{count}&seed=42"
    return ImageSet(f"cifar{count}", spelling, count, attacked, prior=BUNDLED.name)


SMALL = Scale(
    name="small",
    few={"fc10": _photos(24, 12), "fc20": _photos(24, 12), "unet": _photos(6, 12, BUNDLED.name)},
    many={"fc20": _photos(60, 12), "unet": _photos(30, 12, BUNDLED.name)},
    width={"fc10": 128, "fc20": 128, "unet": (32, 64)},
    many_width={"fc20": 128, "unet": (32, 64)},
    seconds={"fc10": 20, "fc20": 30, "unet": 20},
    many_seconds={"fc20": 30, "unet": 20},
    by_both={"fc10": ("lrelu", "prelu"), "unet": ("lrelu", "prelu", "softplus")},
    patience=60,  # steps decide, not a slow machine
    trainings={"defences": 2, **{f"fc10-photos{count}-of-96": 3 for count in SMALL_GROWING}},
    growing=_growing(SMALL_GROWING, "photos?count=96&size=12&seed=42", "photos"),
    widths=(64, 256),
    sampled={"fc20": 60, "unet": 30},
    changed_width={"fc10": 96, "unet": 24},
    steps={"fc10": 20_000, "fc10-muon": 8000, "fc20": 20_000, "unet": 9000, "unet-adam": 15_000},
    many_steps={"fc20": 2000, "unet": 4000, "unet-adam": 8000},
)
SMALL_REAL = replace(  # the same sizes with real data, if --data names its folder
    SMALL,
    name="small-real",
    few={"fc10": _tiny(24, "count=24&size=12"), "fc20": _tiny(24, "count=24&size=12"), "unet": _svhn(6)},
    many={"fc20": _tiny(60, "count=60&size=12"), "unet": _cifar(30)},
    trainings={"defences": 2, **{f"fc10-tiny{count}-of-96": 3 for count in SMALL_GROWING}},
    growing=_growing(SMALL_GROWING, "tiny-imagenet:{data}/tiny-imagenet-200.zip?count=96&size=12&seed=42", "tiny"),
)
FULL = Scale(
    name="full",
    few={
        "fc10": _tiny(600, "per-class=3", prior="tiny-64"),
        "fc20": _tiny(600, "per-class=3", prior="tiny-64"),
        "unet": _svhn(50, UNSEEN),
    },
    many={
        "fc20": _tiny(25000, "per-class=125", attacked=500, control="per-class=5"),
        "unet": _cifar(1000, attacked=250),
    },
    width={"fc10": 1024, "fc20": 1024, "unet": (64, 128, 256, 512)},
    many_width={"fc20": (5120, 26_624), "unet": (64, 128, 256, 512)},
    seconds={"fc10": 60, "fc20": 180, "unet": 240},
    many_seconds={"fc20": 500, "unet": 120},
    by_both={"fc10": ("lrelu", "prelu"), "unet": ("lrelu", "prelu", "softplus")},
    trainings={
        "fc10-tiny600": 10,
        "unet-svhn50": 3,
        "unet-adam-svhn50": 1,  # slow to train
        "unet-cifar1000": 2,
        "fc20-tiny25000": 2,
        **{f"fc10-tiny{count}-of-1000": 3 for count in GROWING},
    },
    growing=_growing(GROWING, "tiny-imagenet:{data}/tiny-imagenet-200.zip?per-class=5&seed=42", "tiny"),
    widths=(512, 2048),
    sampled={"fc20": 2500, "unet": 1000},
    shown={"fc10": _photos(600, 64), "fc20": _photos(1000, 64), "unet": _photos(50, 32, BUNDLED.name)},
    seconds_with={"unet-adam": 400, "fc10-plain": 200},  # a plain loop had reached 1.5e-7 after 105 s
    changed_width={"fc10": 768, "unet": 48},
)


def scale_named(name: str, data: str | None = None) -> Scale:
    scales = {"small": SMALL_REAL if data else SMALL, "full": FULL}
    if name not in scales:
        raise InputError(f"There is no scale {name!r}; choose from {', '.join(scales)}.")
    return scales[name]
