from dataclasses import replace
from pathlib import Path

import torch

from recollect.paper.experiments import EXPERIMENTS
from recollect.paper.experiments.rounding import compare
from recollect.paper.render.figures import table_of
from recollect.paper.run import run
from tests.paper.making import SHORT_SCALE, make_workspace, records_alone

EXPERIMENT = EXPERIMENTS["rounding"]


def test_both_precisions_arecompare_once_the_network_is_trained(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    log: list[str] = []
    assert run([EXPERIMENT], replace(SHORT_SCALE, many_width={"fc20": 16}), workspace, log=log.append)
    assert "rounding: done" in log
    facts = workspace.store.facts("rounding")
    assert facts is not None
    assert {row["mask"] for row in facts["masks"]} == {"block"}
    assert facts["images"] == 4
    assert facts["provenance"]["precision"] == ["float32", "float64"]
    assert {"commit", "date", "device", "seed"} <= set(facts["provenance"])
    assert "| block | " in table_of(EXPERIMENT, SHORT_SCALE, records_alone(tmp_path))


def test_images_that_move_and_images_recovered_are_counted() -> None:
    originals = torch.zeros(3, 1, 2, 2)
    single = torch.stack([torch.zeros(1, 2, 2), torch.full((1, 2, 2), 0.1), torch.zeros(1, 2, 2)])
    double = single.double()
    double[0, 0, 0, 0] += 1.5e-3
    double[2] += 0.1
    expected = {"moved": 2, "moved_on_average": 1, "float32": 2, "float64": 1, "both": 1}
    assert compare(single, double, originals) == expected
