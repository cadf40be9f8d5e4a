"""The figure and the table of fills, from records."""

import subprocess
import sys
from pathlib import Path

import torch

from recollect import Images, audit
from recollect.records import read_records
from tests.benchmarks.running import ROOT, benchmark
from tests.planted import Memorizer

methods_figure = benchmark("methods_figure")


def test_the_figure_is_drawn_from_records_and_again_from_those_kept(tmp_path: Path) -> None:
    images = Images(torch.rand(3, 3, 8, 8, generator=torch.Generator().manual_seed(0)))
    audit(
        Memorizer(images.pixels), train=images, masks="half", fill="zero,noise", methods="blind,known", gamma=0.5,
        start="half_kept", out=tmp_path / "audit",
    )  # fmt: skip
    drawing, kept = tmp_path / "figures" / "methods.svg", tmp_path / "kept"
    command = [sys.executable, str(ROOT / "benchmarks" / "methods_figure.py")]
    first = subprocess.run([*command, tmp_path / "audit", drawing, "--keep", kept], check=True, capture_output=True)
    text = drawing.read_text()
    assert "<svg" in text
    assert "erased pixels hold noise" in text  # matplotlib names each text in a comment
    again = subprocess.run([*command, kept, tmp_path / "again.svg"], check=True, capture_output=True)
    assert again.stdout == first.stdout
    assert (tmp_path / "again.svg").read_text() == text


def test_the_page_shows_what_the_committed_records_say() -> None:
    records = read_records(ROOT / "results" / "fills" / "cells")
    assert len(records) == 120  # six masks, four fills, five methods
    assert all(len(record.mse) == 40 for record in records)
    assert methods_figure.table(records) in (ROOT / "docs" / "methods.md").read_text()
