from dataclasses import replace
from pathlib import Path

from recollect.paper.experiments import EXPERIMENTS, control
from recollect.paper.order import OWN, PARTS
from recollect.paper.overview import overview
from recollect.paper.scales import SMALL
from tests.paper.making import ERRORS, add_records, records_alone

ONE_MASK = replace(SMALL, masks=("dust",), table_masks=("dust",))


def test_it_counts_what_is_recorded_of_each_experiment(tmp_path: Path) -> None:
    workspace = records_alone(tmp_path)
    cells = control.EXPERIMENT.cells(ONE_MASK)
    add_records(workspace.store, cells[:2], ERRORS)
    lines = list(overview(ONE_MASK, workspace))
    assert lines[0] == f"scale small, records in {workspace.store.folder}"
    end = lines.index("parts, in the order of a run:")
    assert [line.split(":")[0] for line in lines[1:end:2]] == list(EXPERIMENTS)
    counted = lines[2 * list(EXPERIMENTS).index("control") + 2]
    assert counted.startswith(f"  2 of {len({cell.key for cell in cells})} cells (2 s), 0 of ")
    assert "pictures not computed here" in lines[2 * list(EXPERIMENTS).index("ddnm") + 2]
    assert lines[end + 1].startswith(f"  {OWN}: 0.0 min on invented; missing: ")
    assert [line.split(":")[0].strip() for line in lines[end + 1 :]] == list(PARTS)
