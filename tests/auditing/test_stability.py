from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from recollect.auditing.stability import Stability, sample_size
from tests.auditing.making import images, small_audit
from tests.planted import Memorizer


class Chaos(nn.Module):
    """The logistic map: after some steps every rounding has grown to the size of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(4.0))

    def forward(self, x: Tensor) -> Tensor:
        return (self.factor * x * (1 - x)).clamp(0, 1)


class Float32Alone(Chaos):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.float())


class BatchDependent(Chaos):
    """Answers for many images at once differ from those for few."""

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * x + 0.01 * len(x)


class OnDevice(nn.Module):
    """A memorizer that an audit meets on the device of its buffer."""

    def __init__(self, stored: Tensor) -> None:
        super().__init__()
        self.register_buffer("stored", stored)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = Memorizer(self.get_buffer("stored"))(x)
        return y


def facts(*runs: dict[str, Any]) -> dict[str, Any]:
    return {"method": "blind", "mask": "half", "images": ["a", "b", "c", "d"], "runs": list(runs)}


def run(change: str, mse: list[float | None], moved: list[float | None]) -> dict[str, Any]:
    return {"change": change, "mse": mse, "moved": moved}


def test_few_images_are_run_again() -> None:
    assert [sample_size(count) for count in (1, 2, 7, 8, 16, 32, 50_000)] == [1, 2, 2, 2, 4, 8, 8]


def test_an_answer_counts_once_however_often_it_moves() -> None:
    first = run("none", [0.0, 0.0, 1.0, 1.0], [0.0] * 4)
    exact = run("float64", [0.0, 1.0, 2.0, 1.0], [0.0, 1.0, 3.0, 1e-9])
    other = run("batches of 3", [0.0, 1.0, None, 1.0], [0.0, 1.0, None, 0.0])
    found = Stability.of(facts(first, exact, other), 1e-7)
    assert (found.images, found.moved, found.flipped, found.largest) == (4, 2, 1, float("inf"))
    assert found.changes == ["float64", "batches of 3"]
    assert Stability.of(facts(first, exact), 1e-10).moved == 3


def test_a_memorizer_is_stable_and_the_result_is_kept(tmp_path: Path) -> None:
    first = small_audit(out=tmp_path, methods="blind")
    kept = first.facts["stability"]
    assert [one["change"] for one in kept["runs"]] == ["none", "float64", "batches of 1"]
    assert Stability.of(kept, 1e-12).moved == 0
    (path,) = (tmp_path / "steps").glob("stability-*.json")
    written = path.stat().st_mtime_ns
    assert small_audit(out=tmp_path, methods="blind").facts["stability"] == kept
    assert path.stat().st_mtime_ns == written


def test_rounding_that_decides_is_seen_in_float64() -> None:
    found = small_audit(model=Chaos(), methods="iterate", fail_above=0.9, threshold=0.25)
    kept = Stability.of(found.facts["stability"], 0.25)
    assert kept.largest > 1e-2
    (check,) = [check for check in found.checks if check.name == "stability"]
    assert check.level in ("note", "warning")
    assert check.sentence.startswith("Answers depend on rounding. 2 recoveries of iterate under block")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_the_strongest_attack_is_run_again_in_float64_and_in_another_batch_size(device: str) -> None:
    given = images(32, 1)
    model = OnDevice(given.pixels).to(device)
    kept = small_audit(model=model, given=given, control=None, methods="refined", masks="half").facts["stability"]
    assert [one["change"] for one in kept["runs"]] == ["none", "float64", "batches of 3"]
    assert Stability.of(kept, 1e-7).moved == 0


def test_a_model_without_float64_is_run_in_another_batch_size_alone() -> None:
    kept = small_audit(model=Float32Alone(), methods="iterate", masks="half").facts["stability"]
    assert [one["change"] for one in kept["runs"]] == ["none", "batches of 1"]


def test_answers_that_depend_on_the_batch_are_seen() -> None:
    """Eight images are run again together and in batches of three."""
    given = images(32, 1)
    audited = small_audit(model=BatchDependent(), given=given, control=None, methods="iterate", masks="half")
    kept = audited.facts["stability"]
    assert [one["change"] for one in kept["runs"]] == ["none", "float64", "batches of 3"]
    assert Stability.of(kept, 1e-4).moved == 8
    assert Stability.of({**kept, "runs": kept["runs"][:2]}, 1e-4).moved == 0


@pytest.mark.parametrize(("rates", "mask"), [("block,half", "block"), ("half,block", "half")])
def test_of_masks_under_which_as_much_is_recovered_the_first_is_taken(rates: str, mask: str) -> None:
    assert small_audit(train=2, control=None, masks=rates, methods="iterate").facts["stability"]["mask"] == mask
