"""Refined beside blind, from records."""

from recollect.records import Record
from tests.benchmarks.running import benchmark

refined_against_blind = benchmark("refined_against_blind")


def record(method: str, mask: str, mse: list[float], steps: int) -> Record:
    cell = {"set": "train", "mask": mask, "method": method}
    return Record(cell, {}, [], mse, [1] * len(mse), [steps] * len(mse), ["done"] * len(mse))


def test_cells_that_both_were_run_on_are_compared() -> None:
    pairs = refined_against_blind.pair_up(
        [
            record("blind", "half", [1e-8, 1e-5], 40),
            record("refined", "half", [1e-8, 1e-8], 60),
            record("refined", "block", [1e-5, 1.0], 80),
            record("blind", "block", [1e-8, 1.0], 40),
            record("blind", "dust", [1e-8], 40),
            record("known", "dust", [1e-8], 40),
        ],
        "blind",
        "refined",
    )
    assert [(blind.cell["mask"], refined.cell["mask"]) for blind, refined in pairs] == [("half",) * 2, ("block",) * 2]
    assert refined_against_blind.summary(pairs) == (
        "2 cells; accurate at least as many in 1, more in 1; approximate at least as many in 2, more in 0; "
        "mean accurate 50.0% to 50.0%; mean approximate 75.0% to 75.0%; steps over blind's: mean 1.75, worst 2.00"
    )
