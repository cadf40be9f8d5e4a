import json
from pathlib import Path

import pytest
import torch

from recollect import Blind, FullyConnected
from tests.benchmarks.running import benchmark

refinement = benchmark("refinement")


@pytest.mark.slow
def test_the_benchmark_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That it runs on a toy, and what it says; never how well."""

    def toy(shape: tuple[int, int, int]) -> FullyConnected:
        return FullyConnected(shape, layers=2, width=32)

    monkeypatch.setitem(refinement.CASES, "toy", refinement.Case("photos?count=4&size=8", toy, 1e-2, Blind(limit=5)))
    out = tmp_path / "numbers.json"
    threads = torch.get_num_threads()
    refinement.main(
        ["--cache", str(tmp_path), "--cases", "toy", "--masks", "half", "--json", str(out), "--threads", str(threads)]
    )
    rows = json.loads(out.read_text())["cases"]["toy"]["rows"]
    assert set(rows) == {*refinement.VARIANTS, "control: blind", "control: refined"}
    assert rows["blind"]["half"]["cost"] == 1
    assert rows["refined (restarts)"]["half"]["cost"] > 1


def test_anderson_mixes_to_the_fixed_point_of_a_linear_map() -> None:
    """On a linear map of dimension 2, three states determine the fixed point."""
    matrix, offset = torch.tensor([[0.9, 0.1], [0.0, 0.5]]), torch.tensor([1.0, 2.0])
    states: list[torch.Tensor] = []
    moves: list[torch.Tensor] = []
    state = torch.zeros(1, 2)
    for _ in range(3):
        following = state @ matrix.T + offset
        states, moves = [*states, following], [*moves, following - state]
        state = following
    expected = torch.linalg.solve(torch.eye(2) - matrix, offset)
    assert torch.allclose(refinement.mix_states(states, moves)[0], expected, rtol=1e-2)
