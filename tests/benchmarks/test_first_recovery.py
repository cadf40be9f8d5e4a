"""That it runs and says what it found; times are no test's business."""

from pathlib import Path

from recollect.records import read_json
from tests.benchmarks.running import benchmark, run

first_recovery = benchmark("first_recovery")


def timed(first: float, estimate: str) -> dict[str, object]:
    return {"seconds": {"pytorch": 2.0, "first": first, "second": 0.1}, "estimate": estimate}


def test_a_table_of_one_network(tmp_path: Path) -> None:
    out = tmp_path / "first.json"
    printed = run("first_recovery", "--cases", "quick", "--out", str(out))
    assert [line.split(" | ")[1] for line in printed.splitlines()[2:5]] == ["fresh", "later", "PyTorch"]
    assert "Estimates of fresh and later processes are equal." in printed
    processes = read_json(out)["cases"]["quick"]
    assert set(processes) == {"fresh", "later", "PyTorch", "later, profiled"}
    assert "recollect/methods/base.py:__call__" in {row["function"] for row in processes["later, profiled"]["profile"]}


def test_answers_that_depend_on_the_cache_are_told() -> None:
    processes = {"fresh": timed(4.0, "a"), "later": timed(1.5, "b"), "PyTorch": timed(1.0, "c")}
    printed = first_recovery.tables({"unet50": processes})
    assert "| unet50 | fresh | 2.00 | 4.00 | 0.10 | 3.00 |" in printed
    assert "are DIFFERENT" in printed
