"""That it runs and says what it found; times and errors are no test's business."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from recollect import FullyConnected, Images
from recollect.engine import arithmetic_of
from recollect.engine.runtime import IN_PYTORCH
from recollect.records import read_json
from tests.benchmarks.running import ROOT, benchmark

layer_kernels = benchmark("layer_kernels")

RECORD = {
    "device": "a GPU", "products": "on tensor cores", "versions": {"torch": "2"}, "date": "2026-11-16",
    "cases": {
        "fc10": {
            "errors": {"library": {"mean": 5e-7, "largest": 3e-6, "bias": 1e-8}},
            "times": {"64": {"library": 4e-4, "ours": 1e-4}},
            "recoveries": {
                "blind": {
                    "images": 9, "found_by_both": 7, "seconds": {"library": 2.0, "ours": 1.0},
                    "median_psnr": {"library": 80.0, "ours": 80.1}, "gain_in_db": {"0.5": 0.01},
                },
                "refined": {
                    "images": 9, "found_by_both": 0, "seconds": {"library": 2.0, "ours": 1.0},
                    "median_psnr": {"library": 8.0, "ours": 8.1}, "gain_in_db": None,
                },
            },
        }
    },
}  # fmt: skip


def test_tables_say_what_was_found() -> None:
    text = layer_kernels.tables(RECORD)
    assert "| fc10 | library | 5.0e-07 | 3.0e-06 | 1.0e-08 |" in text
    assert "| fc10 | 64 | 0.400 | 0.100 |" in text
    assert "| fc10 | blind | 2.00 / 1.00 | 80.00 / 80.10 | 0.5: +0.010 (7 of 9) |" in text
    assert "| fc10 | refined | 2.00 / 1.00 | 8.00 / 8.10 |  (0 of 9) |" in text


def test_the_page_shows_the_numbers_on_record() -> None:
    page = (ROOT / "docs/research/performance.md").read_text()
    assert "\n| network | PyTorch's kernels | three pairs of TF32 |\n" in page
    cases = read_json(ROOT / "results/layer-kernels.json")["cases"]
    for label, name in [("FC-10", "fc10"), ("U-Net", "unet50")]:
        library, ours = (cases[name]["errors"][kind]["mean"] for kind in ("library", "ours"))
        assert f"\n| {label} | {library:.1e} | {ours:.1e} |\n" in page
    psnr = [row["median_psnr"] for case in cases.values() for row in case["recoveries"].values()]
    assert max(abs(row["ours"] - row["library"]) for row in psnr) < 0.1
    assert "differs by less than 0.1 dB" in page


@pytest.mark.parametrize("name", ["missing.json", "speed-gpu.json"])
def test_a_file_that_is_no_record_of_it_is_told(name: str) -> None:
    with pytest.raises(SystemExit, match=name):
        layer_kernels.main(["--tables", str(ROOT / "results" / name)])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_a_sentence_says_so() -> None:
    with pytest.raises(SystemExit, match="The device cuda cannot be used"):
        layer_kernels.main([])


@pytest.mark.parametrize(
    "device", [pytest.param("cpu", marks=pytest.mark.slow), pytest.param("cuda", marks=pytest.mark.gpu)]
)
def test_both_ways_are_compared(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(layer_kernels.BATCHES, "quick", (4, 32))
    monkeypatch.setitem(layer_kernels.CASES, "quick", replace(layer_kernels.CASES["quick"], limit=2))
    images = Images(torch.rand(32, 3, 8, 8, generator=torch.Generator().manual_seed(0)))
    f: nn.Module = FullyConnected(images.shape, layers=3, width=1024).to(device)
    found = layer_kernels.compare("quick", images, f, device)
    if arithmetic_of(f, images.pixels) != IN_PYTORCH:
        assert found["errors"]["library"] != found["errors"]["ours"]
    assert set(found["times"]) == {"4", "32"}
    assert set(found["recoveries"]) == {"blind", "refined"}


def test_a_checkpoint_goes_with_the_demo_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        layer_kernels.main(["--checkpoint", "network.safetensors"])
    assert "it goes with --cpu" in capsys.readouterr().err
