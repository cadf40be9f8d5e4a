"""The pictures of the first screen: a few recoveries of training images, beside one of an unseen image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from recollect.records import SET_LABELS, Record
from recollect.report.numbers import grey_levels, two_digits
from recollect.report.read import Cell, SavedAudit
from recollect.report.results import Results
from recollect.report.sprites import pictures
from recollect.scoring import APPROXIMATE

TRAINING = 4  # examples of training images
SIDE = 96  # of a picture on the page, about


@dataclass(frozen=True)
class Example:
    """One image under one mask: what the attack was given, what it recovered, and the original."""

    set: str
    mask: str
    name: str
    error: float
    recovered: bool
    given: str  # PNG in base64, like the two below
    estimate: str
    original: str
    ended_on: str | None = None  # another training image that was recovered instead

    @property
    def label(self) -> str:
        return SET_LABELS[self.set]

    @property
    def outcome(self) -> str:
        if self.ended_on is not None:
            return "shows another training image" if self.set == "train" else "shows a training image"
        return "recovered" if self.recovered else "not recovered"

    @property
    def level(self) -> str:
        """What the colour of the outcome says; an unseen image that is recovered gives nothing away."""
        if self.ended_on is not None:
            return "shows"
        return "recovered" if self.recovered and self.set == "train" else "other"

    @property
    def levels(self) -> str:
        return two_digits(grey_levels(self.error))

    @property
    def rows(self) -> list[tuple[str, str]]:
        return [("given", self.given), ("result", self.estimate), ("original", self.original)]


@dataclass(frozen=True)
class Showcase:
    """Examples of one method, and how large their pictures are drawn."""

    method: str
    examples: list[Example]
    width: int
    height: int

    @property
    def side(self) -> int:
        """The width on the page: a whole multiple for small pictures, so that all pixels are equally large."""
        return max(1, SIDE // self.width) * self.width if self.width <= SIDE // 2 else SIDE

    @property
    def is_enlarged(self) -> bool:
        return self.width <= SIDE // 2

    @property
    def training(self) -> int:
        return sum(example.set == "train" for example in self.examples)


def build_showcase(audit: SavedAudit, results: Results, method: str, threshold: float) -> Showcase | None:
    """Choose examples of a method; None without pictures of it."""
    examples = list(_training(audit, results, method, threshold))
    if not examples:
        return None
    examples += _unseen(audit, results, method, threshold, examples[-1].mask)
    height, width = audit.samples["original/train"].shape[1:3]
    return Showcase(method, examples, width, height)


def _training(audit: SavedAudit, results: Results, method: str, threshold: float) -> Iterator[Example]:
    """Take another image for each mask, a recovered one if there is one."""
    cells = [Cell("train", mask, method) for mask in results.masks]
    pictured = [cell for cell in cells if _is_pictured(audit, cell)]
    used: set[int] = set()
    for number in _spread(len(pictured), TRAINING):
        cell = pictured[number]
        record = results.record(cell)
        if record is None:
            continue
        position = _choose(audit, cell, record, threshold, used, want_recovered=True)
        used.add(position)
        yield _example(audit, cell, record, threshold, position)


def _unseen(audit: SavedAudit, results: Results, method: str, threshold: float, mask: str) -> Iterator[Example]:
    """Take an unseen image that is not recovered, if there is one: best, one whose recovery shows a training image."""
    cell = Cell("control", mask, method)
    record = results.record(cell)
    if record is not None and _is_pictured(audit, cell):
        others = {at for at, image in enumerate(audit.samples["index/control"]) if not _ended_on(record, int(image))}
        position = _choose(audit, cell, record, threshold, others, want_recovered=False)
        yield _example(audit, cell, record, threshold, position)


def _is_pictured(audit: SavedAudit, cell: Cell) -> bool:
    names = (
        f"index/{cell.set}",
        f"original/{cell.set}",
        f"degraded/{cell.set}/{cell.mask}",
        f"estimate/{cell.set}/{cell.mask}/{cell.method}",
    )
    return all(name in audit.samples for name in names)


def _choose(
    audit: SavedAudit, cell: Cell, record: Record, threshold: float, avoided: set[int], *, want_recovered: bool
) -> int:
    """Choose a position in the sample: not one to avoid, with the outcome that is wanted, rich in contrast."""
    errors = record.score.mse[audit.samples[f"index/{cell.set}"]]
    originals = audit.samples[f"original/{cell.set}"]
    contrast = originals.reshape(len(originals), -1).std(1)
    fits = (errors < threshold) == want_recovered
    fresh = np.array([position not in avoided for position in range(len(errors))])
    return int(np.lexsort((contrast, fits, fresh))[-1])


def _example(audit: SavedAudit, cell: Cell, record: Record, threshold: float, position: int) -> Example:
    where = f"{cell.set}/{cell.mask}"
    image = int(audit.samples[f"index/{cell.set}"][position])
    names = (f"degraded/{where}", f"estimate/{where}/{cell.method}", f"original/{cell.set}")
    given, estimate, original = (pictures(audit.samples[name][position : position + 1]).base64 for name in names)
    error = float(record.score.mse[image])
    return Example(
        cell.set, cell.mask, record.ids[image], error, error < threshold, given=given, estimate=estimate,
        original=original, ended_on=_ended_on(record, image),
    )  # fmt: skip


def _ended_on(record: Record, image: int) -> str | None:
    """Name the training image of another picture that the recovery ended on, by eye, if it did."""
    if record.nearest is None or record.nearest_mse is None or record.score.mse[image] < APPROXIMATE:
        return None
    error, name = record.nearest_mse[image], record.nearest[image]
    own = record.cell["set"] == "train" and name == record.ids[image]
    return name if error is not None and error < APPROXIMATE and not own else None


def _spread(count: int, most: int) -> Sequence[int]:
    """Choose numbers below `count`, evenly spaced."""
    if count <= most:
        return range(count)
    return [round(number) for number in np.linspace(0, count - 1, most)]
