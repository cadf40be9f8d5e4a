"""The tables beside the records, and the charts, are what the records say."""

import re
from pathlib import Path

from tests.benchmarks.running import ROOT, benchmark, run

notes = benchmark("research_notes")


def test_the_committed_tables_and_charts_are_those_of_the_records(tmp_path: Path) -> None:
    run("research_notes", "--results", str(tmp_path), "--figures", str(tmp_path))
    for name in notes.pages():
        committed = (ROOT / "results" / f"{name}.md").read_text()
        assert (tmp_path / f"{name}.md").read_text() == committed, "run: python benchmarks/research_notes.py"
    for name in notes.CHARTS:  # versions of matplotlib differ in how they draw, not in what a chart says
        drawn, committed = ((f / f"{name}.svg").read_text() for f in (tmp_path, ROOT / "docs" / "figures"))
        assert re.findall("<!-- .* -->", drawn) == re.findall("<!-- .* -->", committed)


def test_a_loss_that_was_not_reached_is_said_so() -> None:
    contender = {"reached": {"0.001": 2.04}, "steps_to": {"0.001": 10}, "seconds": 30.2}
    assert notes.cell(contender, 1e-3) == "2.0 s (10)"
    assert notes.cell(contender, 1e-4) == "not in 30 s"


def test_the_sentences_of_the_ablations_are_what_the_records_say() -> None:
    words = " ".join((ROOT / "docs" / "research" / "ablations.md").read_text().split())
    tables, fills = benchmark("refined_tables"), notes.record("refined-on-fills")
    train, unseen = (tables.of(fills["rows"], "set", part) for part in ("train", "unseen"))
    assert tables.below(train) == 0
    assert f"in all {len(train)} cells" in words
    assert sum(row["accurate"]["refined"] for row in unseen) == sum(row["over_cost"] for row in train + unseen) == 0
    average, worst = re.findall(r"([\d.]+) points on average, ([\d.]+) at worst", tables.gammas(fills["gammas"]))[0]
    assert f"It is {average} points behind the best of up to 17 gammas on average, and {worst} at worst" in words
    solved, trained = (row["masks"]["half"]["blind"]["accurate"] for row in notes.record("last-layer")["rows"][-2:])
    assert f"the trained network has {trained} images, the solved one {solved}" in words
    coverage = [row["coverage"] for row in notes.record("canary-coverage")["rows"]]
    assert f"each of {len(coverage)} rows" in words
    assert min(coverage) > 0.97
    assert notes.record("canaries")["private"]["above"] == 0
