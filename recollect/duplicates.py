"""Images that occur twice: between train and control, and inside train. They inflate rates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import torch
from torch import Tensor

from recollect.errors import InputError
from recollect.images import Images, check_alike
from recollect.sources.resize import overlaps

# One estimate can count as the approximate recovery (MSE < 5e-4) of two images exactly when these are no further
# apart than twice that error: (2 sqrt(5e-4))^2.
NEAR = 2e-3
_GRID = 8  # images are first compared by the averages of a grid of 8 x 8 cells
_AT_ONCE = 1024  # images compared with as many others at a time; bounds memory
_AT_ONCE_CUDA = 8192  # where small matrices do not keep the device busy
_PAIRS = 512  # pairs compared in full at a time
_TRIES = 16  # candidates of an image that are compared one by one, in one block of others
_ROUNDING = 1e-5  # of a product of factors, in float32
_SHIFT = 4  # pixels by which a copy may be shifted, but no more than an eighth of the image
_MOVED_SHARE = 0.1  # of an image's variance between it and a moved copy, at most: night skies are alike in some move
_TELLING = 4  # times `near` that two images of a set have to be apart along the directions, on average
_CONTROL = 8192  # control images that are compared with moved copies at a time
_DIRECTIONS = 16  # moved copies are first compared along the directions in which images differ most ...
_MORE_DIRECTIONS, _SMALL_SET = 64, 2000  # ... along more of them in small sets, where full comparisons cost more


@dataclass(frozen=True)
class Pair:
    """Two images that are alike: the first, and the closest other that there is."""

    first: str
    second: str
    mse: float
    moved: str = ""  # mirrored, shifted, or both; then the error is that of the part that both show

    @property
    def exact(self) -> bool:
        """Return whether every pixel is the same."""
        return self.mse == 0 and not self.moved

    def __str__(self) -> str:
        moved = f", {self.moved}" if self.moved else ""
        return f"{self.first} is like {self.second} (MSE {self.mse:.2g}{moved})"


@dataclass(frozen=True, eq=False)
class _View:
    """A part of every image of a set, mirrored or not; no copy is made before pixels are read."""

    images: Images
    rows: slice
    columns: slice
    mirrored: bool = False

    @classmethod
    def whole(cls, images: Images) -> _View:
        return cls(images, slice(None), slice(None))

    @property
    def shape(self) -> tuple[int, int, int]:
        channels, height, width = picture_shape(self.images.shape)
        return channels, len(range(height)[self.rows]), len(range(width)[self.columns])

    @property
    def ids(self) -> tuple[str, ...]:
        return self.images.ids

    @property
    def pixels(self) -> Tensor:
        return self._part_of(self.images.pixels)

    def pixels_at(self, positions: Tensor) -> Tensor:
        return self._part_of(self.images.pixels_at(positions))

    def _part_of(self, pixels: Tensor) -> Tensor:
        whole = pixels.view(len(pixels), *picture_shape(self.images.shape))
        if self.mirrored:
            whole = whole.flip(3)
        return whole[:, :, self.rows, self.columns]

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: Any) -> _View:
        return replace(self, images=self.images[index])


def picture_shape(shape: Sequence[int]) -> tuple[int, int, int]:
    """Return channels, height and width; a signal is a picture of one row, and so is a row of a table."""
    if len(shape) == 3:
        return shape[0], shape[1], shape[2]
    return (shape[0] if len(shape) == 2 else 1), 1, shape[-1]


@dataclass(frozen=True)
class Duplicates:
    """`across`: control images with their twin in train; `inside`: train images with an earlier twin."""

    across: tuple[Pair, ...]
    inside: tuple[Pair, ...]
    train_count: int
    control_count: int
    near: float = NEAR

    def __bool__(self) -> bool:
        return bool(self.across or self.inside)

    def __str__(self) -> str:
        return (
            f"Of {self.control_count} control images, {_twins(self.across)} in train; "
            f"of {self.train_count} train images, {_twins(self.inside)} earlier in train (near: MSE <= {self.near:g})."
        )

    def record(self) -> dict[str, Any]:
        """Return plain values that can be written as JSON."""
        return {
            "near": self.near,
            "train_count": self.train_count,
            "control_count": self.control_count,
            "across": [[pair.first, pair.second, pair.mse, pair.moved] for pair in self.across],
            "inside": [[pair.first, pair.second, pair.mse, pair.moved] for pair in self.inside],
        }


def _twins(pairs: tuple[Pair, ...]) -> str:
    exact, moved = sum(pair.exact for pair in pairs), sum(bool(pair.moved) for pair in pairs)
    counts = f"{exact} have an exact and {len(pairs) - exact - moved} a near duplicate"
    return f"{counts} and {moved} a mirrored or shifted one" if moved else counts


def find_duplicates(
    train: Images, control: Images | None = None, *, near: float = NEAR, device: torch.device | str = "cpu"
) -> Duplicates:
    """Find images with another at most `near` (MSE) away, each with its closest: control in train, and inside train.

    Control images are also compared with mirrored and slightly shifted training images. Averages of the images are
    compared on `device`.
    """
    if control is not None:
        check_alike(train, control)
    if near < 0:
        raise InputError(f"near={near} is negative; it is the largest MSE at which two images count as alike.")
    whole = _View.whole(train)
    averages = _averages(whole)
    centre, directions = _principal_directions(averages, _count_of_directions(train, control or train), near)
    described = ((averages - centre) @ directions).to(device)
    inside = _closest(whole, described, whole, described, near, earlier=True)
    if control is None:
        return Duplicates((), inside, len(train), 0, near)
    unseen = _View.whole(control)
    across = _closest(unseen, ((_averages(unseen) - centre) @ directions).to(device), whole, described, near)
    if train.kind != "rows":  # whose columns have no order
        across = _in_order(control, [*across, *_moved_copies(control, across, train, near, device)])
    return Duplicates(across, inside, len(train), len(control), near)


def _in_order(images: Images, pairs: list[Pair]) -> tuple[Pair, ...]:
    position = {name: number for number, name in enumerate(images.ids)}
    return tuple(sorted(pairs, key=lambda pair: position[pair.first]))


def _moved_copies(
    control: Images, known: tuple[Pair, ...], train: Images, near: float, device: torch.device | str
) -> Iterator[Pair]:
    """Find mirrored and shifted copies among the control images that have no twin yet.

    The middle of every training image is compared with the part of every control image that a move would bring there.
    """
    left = _without(control, {pair.first for pair in known})
    if left is None:
        return
    middle, targets, frame = _middles(train, _count_of_directions(train, left), near, device)
    for start in range(0, len(left), _CONTROL):  # every image has averages for each move
        yield from _moved_copies_of(left[start : start + _CONTROL], middle, targets, frame, near)


def _middles(
    train: Images, directions: int, near: float, device: torch.device | str
) -> tuple[_View, Tensor, tuple[Tensor, Tensor]]:
    """Return the middles of training images with their averages along few directions, and these directions."""
    _, height, width = picture_shape(train.shape)
    down, right = _margin(height), _margin(width)
    middle = _View(train, slice(down, height - down), slice(right, width - right))
    averages = _averages(middle)
    frame = _principal_directions(averages, directions, near)
    targets = (averages - frame[0]) @ frame[1]
    order = targets[:, 0].argsort()  # neighbours in this order are alike, so that most blocks need not be compared
    return middle[order.numpy()], targets[order].to(device), frame


def _moved_copies_of(
    left: Images, middle: _View, targets: Tensor, frame: tuple[Tensor, Tensor], near: float
) -> Iterator[Pair]:
    _, height, width = picture_shape(left.shape)
    down, right = _margin(height), _margin(width)
    parts = _averages_of_parts(left, *frame)
    position_in_middle = {name: number for number, name in enumerate(middle.ids)}
    position = {name: number for number, name in enumerate(left.ids)}
    waiting = torch.ones(len(left), dtype=torch.bool)
    for number, (mirrored, dy, dx) in enumerate(_moves(height, width)):
        rows = waiting.nonzero().flatten()
        if not len(rows):
            return
        rows = rows[parts[number, rows, 0].argsort()]
        shifted_rows = slice(down + dy, height - down + dy)
        shifted_columns = slice(right + dx, width - right + dx)
        part = _View(left[rows.numpy()], shifted_rows, shifted_columns, mirrored)
        pairs = _closest(part, parts[number, rows].to(targets.device), middle, targets, near)
        for pair in pairs:
            if pair.mse <= _MOVED_SHARE * _variance(middle, position_in_middle[pair.second]):
                waiting[position[pair.first]] = False
                yield replace(pair, moved=_move(mirrored, dy, dx))


def _variance(images: _View, position: int) -> float:
    return float(images.pixels_at(torch.tensor([position])).var(correction=0))


def _count_of_directions(train: Images, control: Images) -> int:
    return _MORE_DIRECTIONS if max(len(train), len(control)) <= _SMALL_SET else _DIRECTIONS


def _margin(side: int) -> int:
    return min(_SHIFT, side // 8)


def _shifts(side: int) -> list[int]:
    """List the shifts along a side, the smallest first."""
    return sorted(range(-_margin(side), _margin(side) + 1), key=abs)


def _moves(height: int, width: int) -> list[tuple[bool, int, int]]:
    """List what a copy may have undergone: whether it is mirrored, and its shift down and to the right."""
    every = product((False, True), _shifts(height), _shifts(width))
    return [(mirrored, dy, dx) for mirrored, dy, dx in every if mirrored or dy or dx]


def _move(mirrored: bool, dy: int, dx: int) -> str:
    parts = []
    if mirrored:
        parts.append("mirrored")
    if dy or dx:
        parts.append(f"shifted by {dy}, {dx} pixels")
    return " and ".join(parts)


def _averages_of_parts(images: Images, centre: Tensor, directions: Tensor) -> Tensor:
    """Compute, for each move, the averages of the part that the move would bring to the middle: moves x N x values.

    They are computed for all moves at once from two matrix products, along the directions alone.
    """
    channels, height, width = picture_shape(images.shape)
    rows, columns = _cells_by_shift(height), _cells_by_shift(width)
    columns = torch.cat([columns, columns.flip(2)])  # the second half averages a mirrored image
    cells = rows.shape[1] * columns.shape[1]
    order = [
        (_shifts(height).index(dy), _shifts(width).index(dx) + mirrored * len(_shifts(width)))
        for mirrored, dy, dx in _moves(height, width)
    ]
    described = torch.empty(len(order), len(images), directions.shape[1])
    for start in range(0, len(images), _PAIRS):
        pixels = _View.whole(images[start : start + _PAIRS]).pixels
        averages = torch.einsum("dih,nchw,ejw->dencij", rows, pixels, columns).flatten(3) / (channels * cells) ** 0.5
        moved = (averages - centre) @ directions
        described[:, start : start + len(pixels)] = torch.stack([moved[dy, dx] for dy, dx in order])
    return described


def _cells_by_shift(side: int) -> Tensor:
    """Return, for each shift, the matrix that averages the shifted middle of a side over the cells of the grid."""
    margin, inner = _margin(side), side - 2 * _margin(side)
    averaging = torch.from_numpy(overlaps(inner, min(_GRID, inner)) / inner).to(torch.float32)
    matrices = torch.zeros(2 * margin + 1, len(averaging), side)
    for matrix, shift in zip(matrices, _shifts(side), strict=True):
        matrix[:, margin + shift : margin + shift + inner] = averaging
    return matrices


def _without(images: Images, ids: set[str]) -> Images | None:
    if not ids:
        return images
    stay = [number for number, name in enumerate(images.ids) if name not in ids]
    return images[stay] if stay else None


def _principal_directions(averages: Tensor, count: int, near: float) -> tuple[Tensor, Tensor]:
    """Return the mean and the directions of largest variance; along them distances only become smaller.

    At least `count`, and more where images such as noise differ alike in all: others must not appear near along them.
    """
    centre = averages.mean(0)
    around = (averages - centre).double()
    scatter, directions = torch.linalg.eigh(around.T @ around)  # from the smallest variance to the largest
    apart = 2 * scatter.flip(0).cumsum(0) / len(averages)  # squared distances of two images, on average
    count = max(count, int((apart < _TELLING * near).sum()) + 1)
    return centre, directions[:, -count:].flip(1).to(averages.dtype)


def _averages(images: _View) -> Tensor:
    """Average over the cells of a grid, N x values; two images are never closer than their averages are.

    (Jensen: the cells are equally large and together cover every pixel equally.) They are scaled so that squared
    distances are means over the values.
    """
    _, height, width = images.shape
    rows, columns = (
        torch.from_numpy(overlaps(side, min(_GRID, side)) / side).to(torch.float32) for side in (height, width)
    )
    parts = [
        (rows @ images[start : start + _PAIRS].pixels.cpu() @ columns.T).flatten(1)
        for start in range(0, len(images), _PAIRS)
    ]
    averages = torch.cat(parts)
    return averages / averages.shape[1] ** 0.5


def _closest(
    images: _View,
    averages: Tensor,
    others: _View,
    other_averages: Tensor,
    near: float,
    *,
    earlier: bool = False,
) -> tuple[Pair, ...]:
    """Find the closest other of each image within near; `earlier` compares each with those before it in the set."""
    closest = _Closest(images, others, near)
    at_once = _AT_ONCE_CUDA if averages.is_cuda else _AT_ONCE
    for top in range(0, len(images), at_once):
        end = min(top + at_once, len(others)) if earlier else len(others)
        rows = averages[top : top + at_once]
        for left in range(0, end, at_once):
            columns = other_averages[left : left + at_once]
            if _apart(rows, columns) > closest.limit:
                continue
            distance = _squared_distances(rows, columns)
            if earlier and left + at_once > top:
                distance.masked_fill_(~_before(distance, top, left), torch.inf)
            closest.compare(distance, top, left)
    return closest.pairs()


class _Closest:
    """The closest other of each image among those compared so far."""

    def __init__(self, images: _View, others: _View, near: float) -> None:
        self._images, self._others, self._near = images, others, near
        self.limit = near + _ROUNDING  # of distances that are computed from factors
        self._best = torch.full((len(images),), torch.inf, dtype=torch.float64)
        self._twin = torch.full((len(images),), -1)

    def pairs(self) -> tuple[Pair, ...]:
        """Pair each image that has an other within near with the closest."""
        alike = (self._best <= self._near).nonzero().flatten().tolist()
        ids, others = self._images.ids, self._others.ids
        return tuple(Pair(ids[i], others[int(self._twin[i])], float(self._best[i])) for i in alike)

    def compare(self, distance: Tensor, top: int, left: int) -> None:
        """Compare in full what is near by averages; where too many averages are near, what is near in full.

        `distance` is between the averages of images from `top` on and of others from `left` on.
        """
        rows = (distance.amin(1) <= self.limit).nonzero().flatten()
        if not len(rows):
            return
        distance, rows = distance[rows].cpu(), rows.cpu()
        gaining = self._try(distance, rows + top, left)
        if not bool(gaining.any()):
            return
        for few, bound in zip(rows[gaining].split(_PAIRS), distance[gaining].split(_PAIRS), strict=True):
            full = _distances(self._images, few + top, self._others, left, distance.shape[1])
            full.masked_fill_(bound > self.limit, torch.inf)
            self._try(full, few + top, left)

    def _try(self, distance: Tensor, rows: Tensor, left: int) -> Tensor:
        """Compare with the nearest _TRIES, in order, while an image could gain; return which could gain by more."""
        bounds, columns = distance.topk(min(_TRIES, distance.shape[1]), largest=False)
        for bound, column in zip(bounds.T, columns.T, strict=True):
            gaining = self._could_gain(bound, rows)
            if not bool(gaining.any()):
                break
            first, second = rows[gaining], column[gaining] + left
            mse = _mse(self._images, first, self._others, second)
            closer = mse < self._best[first]
            self._best[first[closer]] = mse[closer]
            self._twin[first[closer]] = second[closer]
        return self._could_gain(bounds[:, -1], rows) & (distance.shape[1] > _TRIES)

    def _could_gain(self, bound: Tensor, rows: Tensor) -> Tensor:
        """Say which rows could have a closer other at a distance of no less than this."""
        return (bound <= self.limit) & (bound - _ROUNDING < self._best[rows]) & (self._best[rows] > 0)


def _before(distance: Tensor, top: int, left: int) -> Tensor:
    """Mark the pairs whose second image comes before the first in the set."""
    rows, columns = (torch.arange(length, device=distance.device) for length in distance.shape)
    return columns + left < (rows + top)[:, None]


def _squared_distances(rows: Tensor, columns: Tensor) -> Tensor:
    left, right = _factors(rows, columns)
    return left @ right.T


def _apart(rows: Tensor, columns: Tensor) -> float:
    """Return a bound below the squared distances of all pairs: that of the boxes that hold the two blocks."""
    gap = torch.maximum(rows.amin(0) - columns.amax(0), columns.amin(0) - rows.amax(0))
    return float(gap.clamp(min=0).square().sum())


def _factors(rows: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """Return two matrices whose product holds the squared distances of all pairs: |a|^2 + |b|^2 - 2 a.b in one pass."""
    left = torch.cat([-2 * rows, rows.square().sum(1, keepdim=True), torch.ones_like(rows[:, :1])], dim=1)
    right = torch.cat([columns, torch.ones_like(columns[:, :1]), columns.square().sum(1, keepdim=True)], dim=1)
    return left, right


def _distances(images: _View, rows: Tensor, others: _View, left: int, count: int) -> Tensor:
    """Return the MSE of each of the rows to `count` others from `left` on, but for the rounding of float32."""
    mine = _scaled(images.pixels_at(rows))
    parts = []
    for start in range(left, left + count, _PAIRS):
        one, other = _factors(mine, _scaled(others.pixels_at(torch.arange(start, min(start + _PAIRS, left + count)))))
        parts.append(one @ other.T)
    return torch.cat(parts, dim=1)


def _scaled(pixels: Tensor) -> Tensor:
    """Return all values, N x values, scaled so that squared distances are means over the values."""
    values = pixels.flatten(1)
    return values / values.shape[1] ** 0.5


def _mse(images: _View, first: Tensor, others: _View, second: Tensor) -> Tensor:
    parts = []
    for start in range(0, len(first), _PAIRS):
        piece = slice(start, start + _PAIRS)
        difference = images.pixels_at(first[piece]) - others.pixels_at(second[piece])
        parts.append(difference.square().flatten(1).mean(1, dtype=torch.float64))
    return torch.cat(parts)
