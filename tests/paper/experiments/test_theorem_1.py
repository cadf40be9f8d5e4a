from dataclasses import replace
from pathlib import Path

import numpy as np

from recollect.paper.experiments import EXPERIMENTS
from recollect.paper.experiments.theorem_1 import table
from recollect.paper.run import run
from recollect.paper.scales import SMALL, ImageSet
from tests.paper.making import make_workspace


def test_the_theorem_holds_where_its_condition_does_and_not_elsewhere(tmp_path: Path) -> None:
    images = np.random.default_rng(1).integers(0, 256, (12, 3, 16, 16), dtype=np.uint8)
    np.savez(tmp_path / "made12-train.npz", images=images)
    scale = replace(SMALL, few={"fc10": ImageSet("made12", "photos", 12)})
    workspace = make_workspace(tmp_path)
    run([EXPERIMENTS["theorem-1"]], scale, workspace)
    facts = workspace.store.facts("theorem-1")
    assert facts is not None
    random, trained, broken = facts["networks"]
    for row in (random, trained):
        assert row["asymmetry"] < 1e-12
        assert row["lowest"] > -1e-9
        assert row["highest"] < 1 + 1e-9
        assert (row["passed"], row["firm_pairs"]) == (row["points"], row["pairs"])
    assert trained["reconstruction_mse"] < 0.9 * random["reconstruction_mse"]
    assert broken["highest"] > 2
    assert broken["passed"] == 0
    assert broken["firm_pairs"] < broken["pairs"]
    assert "8 of 8" in table(scale, workspace.store)
