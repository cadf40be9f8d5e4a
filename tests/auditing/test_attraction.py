from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from recollect import InputError
from recollect.attractors import SpectralRadius
from recollect.auditing.attraction import Attraction, examine, examine_images, is_attractor, with_outcome
from recollect.auditing.progress import no_progress
from recollect.auditing.store import Store
from recollect.records import Record
from tests.auditing.making import images
from tests.planted import Memorizer

STORED = images(4, 1)


class Scaled:
    """Stays at the stored image and moves away from it, or towards it, by a factor."""

    def __init__(self, factor: float, offset: float = 0.0) -> None:
        self.factor, self.offset, self.calls = factor, offset, 0

    def __call__(self, x: Tensor) -> Tensor:
        self.calls += 1
        return STORED.pixels[:1] + self.factor * (x - STORED.pixels[:1]) + self.offset


@pytest.mark.parametrize(
    ("factor", "offset", "attractor"), [(0.5, 0.0, True), (1.5, 0.0, False), (-1.5, 0.0, False), (0.5, 0.1, False)]
)
def test_an_attractor_is_a_fixed_point_that_draws_near(factor: float, offset: float, attractor: bool) -> None:
    (row,) = examine_images(Scaled(factor, offset), STORED[:1], "hash", Store(None), no_progress)
    assert row["spectral_radius"] == pytest.approx(abs(factor), rel=1e-3)
    assert row["fixed_point_error"] == pytest.approx(offset**2, abs=1e-8)
    assert row["attractor"] is attractor


@pytest.mark.parametrize(
    ("error", "radius", "attractor"),
    [
        (1e-9, SpectralRadius(0.5, converged=True), True),
        (1e-9, SpectralRadius(0.95, converged=True), False),  # steps of 3e-5 lead 6e-4 away
        (1e-9, SpectralRadius(1.5, converged=True), False),
        (1e-9, SpectralRadius(0.9995, converged=True), None),
        (1e-9, SpectralRadius(0.5, converged=False), None),
        (1e-6, SpectralRadius(0.5, converged=False), False),  # it is no fixed point, whatever the radius
    ],
)
def test_an_attractor_takes_in_how_far_small_errors_lead(
    error: float, radius: SpectralRadius, attractor: bool | None
) -> None:
    assert is_attractor(error, radius) is attractor


def test_iteration_ends_at_what_is_called_an_attractor_and_nowhere_near_what_is_not() -> None:
    for factor, offset in [(0.5, 1e-5), (0.9, 1e-5), (0.97, 1e-5), (0.99, 1e-5)]:
        f = Scaled(factor, offset)
        (row,) = examine_images(f, STORED[:1], "hash", Store(None), no_progress)
        x = STORED.pixels[:1]
        for _ in range(2000):
            x = f(x)
        assert row["attractor"] is bool((x - STORED.pixels[:1]).square().mean() < 1e-7)


def test_each_image_is_examined_once_per_model(tmp_path: Path) -> None:
    f = Scaled(0.5)
    first = examine_images(f, STORED[:2], "hash", Store(tmp_path), no_progress)
    calls = f.calls
    assert examine_images(f, STORED[:2], "hash", Store(tmp_path), no_progress) == first
    assert f.calls == calls
    examine_images(f, STORED[:2], "another", Store(tmp_path), no_progress)
    assert f.calls == 2 * calls


def test_a_model_without_derivatives_ends_in_a_sentence() -> None:
    def through_numpy(x: Tensor) -> Tensor:
        return torch.from_numpy(np.asarray(x) * 0.5)

    with pytest.raises(InputError, match="The Jacobian of this model cannot be taken"):
        examine_images(through_numpy, STORED[:1], "hash", Store(None), no_progress)
    outcome = examine(through_numpy, STORED[:1], "hash", Store(None), no_progress)
    assert outcome.rows is None
    assert outcome.problem.startswith("The Jacobian of this model cannot be taken")


def test_recovered_means_accurately_in_any_of_the_records() -> None:
    def record(*errors: float) -> Record:
        none = [0] * len(errors)
        return Record({}, {}, ["a", "b", "c"][: len(errors)], list(errors), none, none, ["done"] * len(errors))

    rows = [{"id": name} for name in "abc"]
    found = with_outcome(rows, [record(1e-9, 1.0, float("nan")), record(1.0, 1e-6, 1e-6)])
    assert [r["recovered"] for r in found] == [True, False, False]
    assert [r["recovered"] for r in with_outcome(rows, [])] == [False] * 3


def test_progress_is_reported() -> None:
    reported: list[tuple[float, float]] = []
    f = Memorizer(STORED.pixels)
    outcome = examine(f, STORED[:2], "h", Store(None), lambda _, done, total: reported.append((done, total)))
    assert reported == [(0, 2), (1, 2), (2, 2)]
    assert outcome == Attraction(examine_images(f, STORED[:2], "h", Store(None), no_progress))
