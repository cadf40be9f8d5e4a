"""The committed records: complete in themselves, and measured again where two cores can afford it."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from recollect.paper import accurate
from recollect.paper.experiment import Experiment
from recollect.paper.fitting import Bench
from recollect.paper.results import Results
from recollect.paper.running import run
from recollect.paper.scales import SMALL
from recollect.records import read_record

RESULTS = Path(__file__).parents[2] / "results" / "paper"


def test_every_committed_record_is_small_whole_and_of_an_experiment() -> None:
    paths = sorted(RESULTS.glob("*/cells/*.json.gz"))
    assert paths
    for path in paths:
        record = read_record(path)
        assert path.name == f"{record.key}.json.gz"
        assert not record.ids
        assert len(record.mse) == record.provenance["images"]["count"]
        assert path.stat().st_size < 170_000, path


@pytest.mark.slow
def test_a_committed_training_and_its_cells_measured_again(tmp_path: Path) -> None:
    """Weights differ between machines in their last bits, and so does an image or two."""
    committed = Results(RESULTS / "small")
    cells = [
        cell
        for cell in accurate.EXPERIMENT.cells(SMALL)
        if cell.fit.name == "fc10-lrelu-adam-photos24" and cell.loss == 1e-8
    ]
    patient = [replace(cell, fit=replace(cell.fit, limit_seconds=300)) for cell in cells]
    again = Bench(Results(tmp_path / "results"), tmp_path / "work", None, torch.device("cpu"))
    assert run([Experiment("again", "", "", lambda _: patient)], SMALL, again)
    for cell in cells:
        before, now = committed.find(cell), again.results.find(cell)
        assert before is not None
        assert now is not None
        assert abs(before.score.accurate.count - now.score.accurate.count) <= 4, cell
        assert abs(before.score.approximate.count - now.score.approximate.count) <= 4, cell
        assert before.provenance["images"] == now.provenance["images"]
