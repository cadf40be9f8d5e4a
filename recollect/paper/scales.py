"""Two scales with one code path: sizes for minutes on two CPU cores, and the paper's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from recollect.degradation import PAPER_MASKS
from recollect.diffusion import BUNDLED
from recollect.errors import InputError
from recollect.paper.cells import SEED, Fit, ImageSet

PERFECT = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
MODERATE = (1e-4,)
FROM_THE_FIRST = (1e-2, 1e-3, *PERFECT)  # also losses at which little is memorized
GROWING = (100, 200, 400, 600, 1000)  # images
UNSEEN = 249  # SVHN images that no network was trained on: half of the copy used here, which has 499


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

    def perfect(self, kind: str, activation: str, optimizer: str) -> Fit:
        """Describe a training to a train loss of 1e-8, saved at every decade from 1e-4."""
        seconds = self.seconds[kind]
        limit = self.patience * seconds
        return Fit(kind, activation, optimizer, self.width[kind], self.few[kind], PERFECT, seconds, limit)

    def moderate(self, kind: str, activation: str, optimizer: str) -> Fit:
        """Describe a training on more images, to a train loss of 1e-4."""
        seconds = self.many_seconds[kind]
        limit = self.patience * seconds
        return Fit(kind, activation, optimizer, self.many_width[kind], self.many[kind], MODERATE, seconds, limit)

    def growth(self, images: ImageSet, *changes: tuple[str, float]) -> Fit:
        """Describe FC-10 on one of the growing sets, with other settings than the usual ones."""
        usual = self.perfect("fc10", "lrelu", "adam")
        return replace(usual, images=images, milestones=FROM_THE_FIRST, changes=changes)

    def repeats(self, fit: Fit) -> list[Fit]:
        """List the further trainings of a network, from other first weights."""
        number = self.trainings.get(f"{fit.kind}-{fit.images.name}", 1)
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


def _svhn(count: int, unseen: int | None = None) -> ImageSet:
    source = "svhn:{data}/svhn?count="
    more = f"{source}{unseen}&seed=42" if unseen else None
    spelling = f"{source}{count}&seed=42"
    return ImageSet(f"svhn{count}", spelling, count, prior=BUNDLED.name, more_control_spelling=more)


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
    patience=4,
    growing=_growing((6, 12, 24), "photos?count=24&size=12&seed=42", "photos"),
    widths=(64,),
    sampled={"fc20": 60, "unet": 30},
)
SMALL_REAL = replace(  # the same sizes with real data, if --data names its folder
    SMALL,
    name="small-real",
    few={"fc10": _tiny(24, "count=24&size=12"), "fc20": _tiny(24, "count=24&size=12"), "unet": _svhn(6)},
    many={"fc20": _tiny(60, "count=60&size=12"), "unet": _cifar(30)},
    growing=_growing((6, 12, 24), "tiny-imagenet:{data}/tiny-imagenet-200.zip?count=24&size=12&seed=42", "tiny"),
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
    by_both={"fc10": ("lrelu", "prelu"), "unet": ("softplus",)},
    trainings={
        "fc10-tiny600": 10,
        "unet-svhn50": 3,
        "unet-cifar1000": 2,
        "fc20-tiny25000": 2,
        **{f"fc10-tiny{count}-of-1000": 3 for count in GROWING},
    },
    growing=_growing(GROWING, "tiny-imagenet:{data}/tiny-imagenet-200.zip?per-class=5&seed=42", "tiny"),
    widths=(256, 512, 2048),
    sampled={"fc20": 2500, "unet": 1000},
)


def scale_named(name: str, data: str | None = None) -> Scale:
    scales = {"small": SMALL_REAL if data else SMALL, "full": FULL}
    if name not in scales:
        raise InputError(f"There is no scale {name!r}; choose from {', '.join(scales)}.")
    return scales[name]
