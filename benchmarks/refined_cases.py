"""Networks, images, masks and fills that refined is tried on: one collection to choose by, one to report.

The two share nothing but black erased pixels: settings of refined and of the search for gamma may be changed on
`validation`, and what is reported is `reported`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from recollect import Erasure, FullyConnected, Images, InputError, UNet, load, mask
from recollect.auditing.tuning import papers_setting_for
from recollect.degradation import FILLS, Start, half_kept
from recollect.degradation.fills import Filled
from recollect.training import train_to_loss

UNSEEN = 24  # images of the same kind that no network of the case was trained on
UNET_TIME = 2.5  # U-Nets take this many times as long as others: their rate is annealed over tens of thousands of steps
SMALL = 16  # the divisor of widths in a dry run
SMALL_IMAGES, SMALL_SIDE = 12, 8  # of each network in a dry run, and their size
PHOTOGRAPHS = "photos?count=80&size=8"  # enough for a dry run without data

Shape = tuple[int, int, int]
Build = Callable[[Shape, int, int], nn.Module]  # shape of the images, seed, divisor of all widths


class Memorizer(nn.Module):
    """An autoencoder that memorizes without training: softmax attention over stored images."""

    def __init__(self, stored: Tensor, sharpness: float) -> None:
        super().__init__()
        self.register_buffer("stored", stored.flatten(1))
        self.sharpness = sharpness

    def forward(self, x: Tensor) -> Tensor:
        stored = self.get_buffer("stored")
        distances = torch.cdist(x.flatten(1), stored, compute_mode="donot_use_mm_for_euclid_dist").square()
        return (torch.softmax(-self.sharpness * distances, 1) @ stored).view_as(x)


def fully_connected(layers: int, width: int, activation: str = "lrelu") -> Build:
    return lambda shape, seed, divisor: FullyConnected(
        shape, layers=layers, width=width // divisor, activation=activation, seed=seed
    )


def smooth(layers: int, width: int) -> Build:
    """Fully connected with SiLU: no network of the paper, so an audit searches for its gamma and start."""

    def build(shape: Shape, seed: int, divisor: int) -> nn.Module:
        plain = fully_connected(layers, width)(shape, seed, divisor).get_submodule("net")
        return nn.Sequential(*(nn.SiLU() if isinstance(part, nn.LeakyReLU) else part for part in plain.children()))

    return build


def unet(activation: str, skip: bool = False) -> Build:
    return lambda shape, seed, divisor: UNet(
        channels=shape[0], widths=[width // divisor for width in (32, 64, 128)], activation=activation, skip=skip,
        seed=seed,
    )  # fmt: skip


@dataclass(frozen=True)
class Trained:
    """A network that is trained to a loss, or as far as its time allows."""

    images: str  # the name of a file of images
    count: int
    loss: float
    build: Build
    seed: int
    gamma: float = 0.5  # where the paper has none for the network
    start: Start = half_kept
    time: float = 1.0  # that training may take, as a multiple of --train-seconds

    def fit(self, images: Images, device: str, seconds: float, small: bool) -> tuple[nn.Module, float]:
        """Train the network; return it with its train loss."""
        network = self.untrained(images.image_shape, small)
        done = train_to_loss(network, images, self.loss, milestones=(), device=device, max_seconds=seconds)
        return network, done.loss

    def untrained(self, shape: Shape, small: bool) -> nn.Module:
        return self.build(shape, self.seed, SMALL if small else 1)


@dataclass(frozen=True)
class Planted:
    """A memorizer of the first two thirds of its images: the rest cannot be recovered."""

    images: str
    count: int
    sharpness: float
    seed: int
    gamma: float
    start: Start = half_kept
    time: float = 0.0  # nothing is trained

    def fit(self, images: Images, device: str, _seconds: float, _small: bool) -> tuple[nn.Module, float]:
        network = Memorizer(images.pixels[: 2 * len(images) // 3], self.sharpness).to(device)
        with torch.no_grad():
            moved = network(network.get_buffer("stored")) - network.get_buffer("stored")
        return network, float(moved.square().mean())

    def untrained(self, shape: Shape, small: bool) -> nn.Module:
        count = SMALL_IMAGES if small else self.count
        return Memorizer(torch.zeros(2 * count // 3, *shape), self.sharpness)


Case = Trained | Planted


@dataclass(frozen=True)
class Collection:
    """What is attacked, and how images are damaged."""

    cases: dict[str, Case]
    masks: tuple[str, ...]
    fills: tuple[str, ...]
    gamma_fills: tuple[str, ...]  # fewer, for the grid of gammas
    half: int  # of the images of a file: 0 or 1
    seed: int


VALIDATION = Collection(
    cases={
        "fc10-lrelu": Trained("svhn", 70, 1e-8, fully_connected(10, 384), 11),
        "fc12-silu": Trained("cifar10", 50, 1e-7, smooth(12, 384), 12),
        "fc20-lrelu": Trained("cifar10", 60, 1e-7, fully_connected(20, 384), 13),
        "fc20-crowded": Trained("cifar10", 160, 1e-5, fully_connected(20, 384), 14),
        "unet-prelu": Trained("cifar10", 50, 1e-8, unet("prelu"), 15, time=UNET_TIME),
        "unet-skip": Trained("svhn", 50, 1e-7, unet("lrelu", skip=True), 16, time=UNET_TIME),
        "plant": Planted("svhn", 60, 0.3, 17, gamma=0.5),
    },
    masks=("half", "stripes", "scatter"),
    fills=("zero", "constant", "dim", "mirrored"),
    gamma_fills=("zero", "dim", "mirrored"),
    half=0,
    seed=7,
)
REPORTED = Collection(
    cases={
        "fc10-lrelu": Trained("cifar10", 100, 1e-8, fully_connected(10, 512), 101),
        "fc10-prelu": Trained("svhn", 60, 1e-8, fully_connected(10, 512, "prelu"), 102),
        "fc10-silu": Trained("cifar10", 60, 1e-8, smooth(10, 512), 103),
        "fc20-lrelu": Trained("cifar10", 80, 1e-8, fully_connected(20, 512), 104),
        "fc20-prelu": Trained("svhn", 60, 1e-7, fully_connected(20, 512, "prelu"), 105),
        "fc20-crowded": Trained("cifar10", 200, 1e-5, fully_connected(20, 512), 106),
        "unet-lrelu": Trained("svhn", 50, 1e-8, unet("lrelu"), 107, time=UNET_TIME),
        "unet-softplus": Trained("cifar10", 50, 1e-8, unet("softplus"), 108, time=UNET_TIME),
        "unet-skip": Trained("cifar10", 50, 1e-7, unet("lrelu", skip=True), 109, time=UNET_TIME),
        "sharp plant": Planted("cifar10", 60, 4.0, 110, gamma=0.5),
        "blunt plant": Planted("svhn", 60, 0.2, 111, gamma=2.0),
    },
    masks=("block", "dust", "frame", "random:0.6"),
    fills=("zero", "white", "salt", "noise", "images", "mean"),
    gamma_fills=("zero", "noise", "images"),
    half=1,
    seed=42,
)
COLLECTIONS = {"validation": VALIDATION, "reported": REPORTED}


def attack_settings(case: Case, network: nn.Module) -> tuple[float, Start]:
    """Return the paper's gamma and start for its networks, the case's own for others."""
    paper = papers_setting_for(network)
    return (case.gamma, case.start) if paper is None else (paper.gamma, paper.start)


def images_of(case: Case, collection: Collection, data: Path | None, small: bool) -> tuple[Images, Images]:
    """Draw the training images of a case and unseen ones, from the collection's own half of a file."""
    every = load(data / f"{case.images}.npy") if data else load(PHOTOGRAPHS)
    size, count = len(every) // 2, SMALL_IMAGES if small else case.count
    if size < count + UNSEEN:
        raise InputError(f"{case.images} has {len(every)} images; half of them should be {count + UNSEEN} at least.")
    order = torch.randperm(size, generator=torch.Generator().manual_seed(case.seed)) + collection.half * size
    chosen = every[order[: count + UNSEEN].tolist()]
    if small:
        step = chosen.shape[1] // SMALL_SIDE
        chosen = Images(chosen.pixels[:, :, ::step, ::step], chosen.ids)
    return chosen[:count], chosen[count:]


FillValues = Callable[[Tensor, int], Tensor]  # images, seed -> N x C x H x W, or N x C x 1 x 1 for one colour


def _salt(x: Tensor, seed: int) -> Tensor:
    return (FILLS["noise"].values(x, seed)[:, :1] > 0.5).to(x).expand_as(x)


FILL_VALUES: dict[str, FillValues] = {
    **{name: fill.values for name, fill in FILLS.items()},
    "white": lambda x, _seed: torch.ones_like(x[:, :, :1, :1]),
    "salt": _salt,  # each pixel black or white
    "mean": lambda x, _seed: x.mean((2, 3), keepdim=True),
    "dim": lambda x, seed: FILLS["noise"].values(x, seed) / 2,
    "mirrored": lambda x, _seed: x.roll(-2, 0).flip(3),
}


@dataclass(frozen=True, eq=False)
class Damaged:
    """Images under every mask with every fill, one cell after the other: a GPU takes them in one batch."""

    images: Images
    y: Tensor
    truth: Erasure
    cells: list[tuple[str, str]]  # mask and fill of so many images at a time

    def rows(self, cell: int) -> slice:
        size = len(self.y) // len(self.cells)
        return slice(cell * size, (cell + 1) * size)


def damage(images: Images, masks: tuple[str, ...], fills: tuple[str, ...], seed: int) -> Damaged:
    x, cells, truths = images.pixels, [], []
    for name in masks:
        keep = mask(name, images.shape, count=len(images), seed=seed).expand(x).keep
        for fill in fills:
            values = FILL_VALUES[fill](x, seed).expand_as(x)
            cells.append((name, fill))
            truths.append(Filled(keep, values))
    y = torch.cat([truth.apply(x) for truth in truths])
    repeated = Images(x.repeat(len(cells), 1, 1, 1), name=images.name)
    return Damaged(repeated, y, Erasure(torch.cat([truth.keep for truth in truths])), cells)
