import json
import math

import pytest
import torch

from recollect import InputError
from recollect.training import Recipe
from recollect.training.monitor import COLLAPSED, COLLAPSED_WHILE_ANNEALING, PATIENCE
from recollect.training.state import RunState, Snapshot
from tests.training.small import constant_loss, small_images, small_network


def start(recipe: Recipe | None = None) -> RunState:
    return RunState.start(small_network(), small_images(), recipe or Recipe(), torch.device("cpu"))


def test_a_run_starts_with_nothing_reached() -> None:
    state = start()
    assert (state.steps, state.seconds, state.best.loss) == (0, 0.0, math.inf)
    assert state.restarted_from is None
    assert [entry["step"] for entry in state.precision] == [0]


def test_lines_of_the_log_say_when() -> None:
    state = start()
    state.seconds = 1.25
    state.note("something")
    assert state.log == ["[1.2 s, step 0] something"]


def test_the_identity_survives_a_json_file_and_tells_runs_apart() -> None:
    state = start()
    assert json.loads(json.dumps(state.identity())) == state.identity() == start().identity()
    assert state.identity() != start(Recipe(rate=1e-5)).identity()


def test_a_snapshot_is_not_changed_by_training() -> None:
    weights = [torch.zeros(2)]
    copy = Snapshot(1.0, weights).copy()
    weights[0] += 1
    assert copy.weights[0].tolist() == [0, 0]


def test_a_run_with_short_annealing_has_less_patience() -> None:
    usual, short = start().monitor, start(Recipe(anneal_steps=100)).monitor
    assert (usual.patience, usual.collapsed) == (PATIENCE, COLLAPSED)
    assert (short.patience, short.collapsed) == (50, COLLAPSED_WHILE_ANNEALING)
    assert usual.constant_loss == pytest.approx(constant_loss(small_images()))


def test_a_network_for_other_images_is_refused_before_the_first_step() -> None:
    with pytest.raises(InputError, match="does not take these images of 1x8x8"):
        RunState.start(torch.nn.Linear(3, 3), small_images(), Recipe(), torch.device("cpu"))
