from dataclasses import replace
from pathlib import Path

from recollect.paper.experiments import EXPERIMENTS, control
from recollect.paper.overview import overview
from recollect.paper.scales import SMALL
from tests.paper.making import ERRORS, add_records, records_alone

ONE_MASK = replace(SMALL, masks=("dust",), table_masks=("dust",))


def test_it_counts_what_is_recorded_of_each_experiment(tmp_path: Path) -> None:
    workspace = records_alone(tmp_path)
    cells = control.EXPERIMENT.cells(ONE_MASK)
    add_records(workspace.store, cells[:2], ERRORS)
    first, *lines, last = overview(ONE_MASK, workspace)
    assert first == f"scale small, records in {workspace.store.folder}"
    assert [line.split(":")[0] for line in lines[::2]] == list(EXPERIMENTS)
    counted = lines[2 * list(EXPERIMENTS).index("control") + 1]
    assert counted.startswith(f"  2 of {len({cell.key for cell in cells})} cells (2 s), 0 of ")
    assert last == "the paper's own cells at one seed: 0.0 min; all: 0.0 min"
    assert "pictures not computed here" in lines[2 * list(EXPERIMENTS).index("ddnm") + 1]
