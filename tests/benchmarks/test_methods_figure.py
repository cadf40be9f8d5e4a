"""The figure and the table of fills, from records."""

from pathlib import Path

import pytest
import torch

from recollect import Images, audit
from recollect.record_lines import read_records_of
from tests.benchmarks.running import ROOT, benchmark, run
from tests.planted import Memorizer

methods_figure = benchmark("methods_figure")


@pytest.mark.slow
def test_the_figure_is_drawn_from_records_and_again_from_those_kept(tmp_path: Path) -> None:
    images = Images(torch.rand(3, 3, 8, 8, generator=torch.Generator().manual_seed(0)))
    audit(
        Memorizer(images.pixels), train=images, masks="half", fill="zero,noise", methods="blind,known", gamma=0.5,
        start="half_kept", out=tmp_path / "audit",
    )  # fmt: skip
    drawing, kept = tmp_path / "figures" / "methods.svg", tmp_path / "kept.jsonl"
    first = run("methods_figure", str(tmp_path / "audit"), str(drawing), "--keep", str(kept))
    text = drawing.read_text()
    assert "<svg" in text
    assert "erased: noise" in text  # matplotlib names each text in a comment
    assert run("methods_figure", str(kept), str(tmp_path / "again.svg")) == first
    assert (tmp_path / "again.svg").read_text() == text


def test_the_page_shows_what_the_committed_records_say() -> None:
    records = read_records_of(ROOT / "results" / "fills.jsonl")
    assert len(records) == 120  # six masks, four fills, five methods
    assert all(len(record.mse) == 40 for record in records)
    assert methods_figure.table(records) in (ROOT / "docs" / "concepts" / "methods.md").read_text()
