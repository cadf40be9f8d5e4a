"""How often the masks of blind repeat in a cycle, how long cycles are, and how far the answers in one differ."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from recollect.paper.cells import Cell, Fit
from recollect.paper.experiment import BEYOND, Experiment
from recollect.paper.experiments import accurate, moderate_fc, moderate_unet
from recollect.paper.render.tables import markdown, network_name
from recollect.paper.scales import Scale
from recollect.paper.store import Store
from recollect.records import Record
from recollect.scoring import APPROXIMATE


def cells(scale: Scale) -> list[Cell]:
    """List the blind cells of other tables at the last loss."""
    listed = [*accurate.cells(scale), *moderate_fc.cells(scale), *moderate_unet.cells(scale)]
    own = [cell for cell in listed if cell.method == "blind" and cell.set == "train" and cell.is_at_last_loss]
    return list(dict.fromkeys(own))


def table(scale: Scale, store: Store) -> str:
    """Make a row for each network and gamma, over all masks and trainings; only records that have cycles."""
    groups: dict[tuple[Fit, float | None], list[Record]] = {}
    for cell in cells(scale):
        record = store.shown(cell)
        if record and record.cycles is not None:
            groups.setdefault((cell.fit.first, cell.gamma), []).append(record)
    if not groups:
        return ""
    rows = [[_name(*network), network[0].optimizer, *_row(records)] for network, records in groups.items()]
    titles = ["network", "optimizer", "runs", "in a cycle", "members: median, most", "error changes in it", "straddle"]
    return (
        "Runs of blind whose masks repeat, at the last train loss, over all masks. The error changes in a cycle if its "
        "highest is more than 1% above its lowest. A cycle straddles if some of its members count as approximately "
        f"recovered and others do not.\n\n{markdown(titles, rows)}"
    )


def _name(fit: Fit, gamma: float | None) -> str:
    name = f"{network_name(fit)}, {fit.images.count:,} images"
    return name if gamma is None else f"{name}, gamma {gamma:g}"


def _row(records: Iterable[Record]) -> list[str]:
    records = list(records)
    runs = sum(len(record.mse) for record in records)
    cycles = [cycle for record in records for cycle in record.cycles or ()]
    lengths = [int(length) for _, length, _, _ in cycles]
    changing = sum(highest > 1.01 * lowest for _, _, lowest, highest in cycles)
    straddling = sum(lowest < APPROXIMATE <= highest for _, _, lowest, highest in cycles)
    members = f"{median(lengths):g}, {max(lengths)}" if lengths else "-"
    return [str(runs), f"{len(cycles)} ({100 * len(cycles) / runs:.0f}%)", members, str(changing), str(straddling)]


EXPERIMENT = Experiment(
    name="cycles",
    summary="how many runs of blind end in a cycle of masks, how long cycles are, how far their answers differ",
    location=BEYOND,
    cells=cells,
    table=table,
    order=16,
)
