"""How long what is missing will take: by what like cells took, and by the goals of trainings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from recollect.paper.cells import Cell, Fit
from recollect.paper.store import Store

Key = tuple[str, ...]


@dataclass
class SecondsOfCells:
    """Estimates what cells take from the records there are, of any version, on the device that measured most."""

    device: str | None = None
    _samples: dict[Key, list[float]] = field(default_factory=dict)  # seconds per image

    @classmethod
    def of(cls, cells: Iterable[Cell], store: Store) -> SecondsOfCells:
        shown = [(cell, record) for cell in cells if (record := store.shown(cell))]
        devices = Counter(record.provenance["device"] for _, record in shown)
        estimates = cls(devices.most_common(1)[0][0] if devices else None)
        for cell, record in shown:
            if record.provenance["device"] == estimates.device:
                for key in _keys(cell):
                    estimates._samples.setdefault(key, []).append(record.seconds / len(record.mse))
        return estimates

    def of_cell(self, cell: Cell) -> float | None:
        """Estimate the seconds of a cell from the most similar cells; None if its method was never measured."""
        samples = next((self._samples[key] for key in _keys(cell) if key in self._samples), None)
        if samples is None:
            return None
        return (cell.most_attacked or cell.fit.images.count) * sum(samples) / len(samples)


def _keys(cell: Cell) -> Iterator[Key]:
    """Yield what a cell has in common with others, the closest first."""
    kind, images = cell.fit.kind if cell.sees_network else "", cell.fit.images.name
    yield cell.method, kind, images, cell.set
    yield cell.method, kind, images
    yield cell.method, kind
    yield (cell.method,)


def time_left(fits: Iterable[Fit], cells: Iterable[Cell], store: Store, estimates: SecondsOfCells) -> str:
    """Say how long the missing trainings take at most by their goals, and the missing cells by like ones."""
    training = sum(fit.goal_seconds for fit in fits if not store.has_finished(fit))
    missing = [cell for cell in cells if store.is_missing(cell)]
    if not training and not missing:
        return "nothing is missing"
    return (
        f"missing: {training / 60:.1f} min of training by the goals, {len(missing)} cells{_about(missing, estimates)}"
    )


def _about(missing: Sequence[Cell], estimates: SecondsOfCells) -> str:
    """Say how long cells take, and how many are of methods that nothing tells about."""
    seconds = [one for cell in missing if (one := estimates.of_cell(cell)) is not None]
    text = f" (about {sum(seconds) / 60:.1f} min on {estimates.device})" if seconds else ""
    unknown = len(missing) - len(seconds)
    return f"{text}, {unknown} of methods without any record" if unknown else text
