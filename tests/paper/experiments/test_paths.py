"""The experiments that show images round by round."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recollect.auditing.pictures import load_arrays
from recollect.paper.experiments import EXPERIMENTS
from recollect.paper.render.figures import draw
from recollect.paper.run import run
from recollect.paper.scales import SMALL
from recollect.paper.workspace import Workspace
from tests.paper.making import IMAGES, make_workspace

SCALE = replace(
    SMALL, few={"fc10": IMAGES}, many={"fc20": IMAGES}, width={"fc10": 32}, many_width={"fc20": 32},
    seconds={"fc10": 2}, many_seconds={"fc20": 2}, masks=("block", "dust"), table_masks=("block",), patience=1,
)  # fmt: skip


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return make_workspace(tmp_path)


@pytest.mark.parametrize("name", ["mask-path", "recovery-path"])
def test_pictures_are_computed_once_and_drawn(name: str, workspace: Workspace) -> None:
    log: list[str] = []
    assert run([EXPERIMENTS[name]], SCALE, workspace, log=log.append)
    assert f"{name}: pictures are in {workspace.pictures(name)}" in log
    assert len(draw([EXPERIMENTS[name]], SCALE, workspace, lambda _: None)) == 2
    again: list[str] = []
    assert run([EXPERIMENTS[name]], SCALE, workspace, log=again.append)
    assert len(again) == 1


def test_the_last_mask_is_the_estimate_and_the_truth_is_the_mask(workspace: Workspace) -> None:
    run([EXPERIMENTS["mask-path"]], SCALE, workspace)
    arrays = load_arrays(workspace.pictures("mask-path"))
    assert sorted({key.split("/")[1] for key in arrays}) == ["block", "dust"]
    truth = arrays["truth/block"]
    assert truth.shape == (8, 8)
    assert np.array_equal(truth == 0, (arrays["degraded/block"] == 0).all(-1) | (truth == 0))
    assert (truth == 0).mean() == 0.25
    assert arrays["estimates/block"].shape[1:] == (8, 8)
