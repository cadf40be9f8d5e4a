"""The tables beside the records, and the charts, are what the records say."""

import re
from pathlib import Path
from typing import Any

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
    lost = [tables.below(train, what) for what in tables.THRESHOLDS]
    assert f"in {len(train) - lost[0]} of {len(train)} cells at 1e-7, and in {len(train) - lost[1]} at 5e-4" in words
    assert sum(row["accurate"]["refined"] for row in unseen) == sum(row["over_cost"] for row in train + unseen) == 0
    numbers = re.findall(r"([\d.]+) points on average, ([\d.]+) at worst, on (\d+)", tables.gammas(fills["gammas"]))
    average, worst, counted = numbers[0]
    assert f"It is {average} points behind the best of up to 17 gammas on average, and {worst} at worst" in words
    assert f"This counts the {counted} networks from which any gamma recovers an image" in words
    convolutional, others = _by_kind(train)
    cycling = {key: sum(row["cycling"][key] for row in others) for key in others[0]["cycling"]}
    assert f"cycles for {cycling['images']} images there and recovers {cycling['blind']} of them" in words
    assert f"converges on {cycling['converged']} and recovers {cycling['refined']}" in words
    assert f"Only {100 * tables.converged(convolutional, 'refined'):.0f}% of the images converge" in words
    later = tables.of(notes.record("refined-on-fills-cpu")["rows"], "set", "train")
    assert [tables.below(later, what) for what in tables.THRESHOLDS] == [0, 0]
    assert f"below `blind` or `iterate` in 0 of {len(later)} cells" in words
    lost, images = (sum(row[what] for row in later) for what in ("lost", "images"))
    assert f"It misses {lost} of {images:,} images that one of these recovers accurately" in words
    solved, trained = (row["masks"]["half"]["blind"]["accurate"] for row in notes.record("last-layer")["rows"][-2:])
    assert f"There {trained} of 60 images are recovered from the trained network, and {solved} from the solved" in words
    coverage = [row["coverage"] for row in notes.record("canary-coverage")["rows"]]
    assert f"each of {len(coverage)} rows" in words
    assert min(coverage) > 0.97
    assert notes.record("canaries")["private"]["above"] == 0


def _by_kind(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of U-Nets, and those of all other networks."""
    convolutional = [row for row in rows if row["case"].startswith("unet")]
    return convolutional, [row for row in rows if row not in convolutional]
