"""The kernels that recovery uses for layers beside PyTorch's: how exact, how fast, and what they recover.

    python benchmarks/layer_kernels.py --data DATA --out layer-kernels.json     # on a GPU, about two minutes
    python benchmarks/layer_kernels.py --cpu --checkpoint CHECKPOINT --out layer-kernels-cpu.json  # of the demo
    python benchmarks/layer_kernels.py --tables layer-kernels.json

The networks are those of `benchmarks/recovery.py`: FC-10 on 600 images and the U-Net on 50, fitted anew, or on a CPU
the demo's. Errors are against the same network in float64; times are of one application, on a GPU captured where that
is faster, by batch size. Recoveries are run with acceleration and without, from the same observations: the PSNR of
each image with it less that without, if both recover the image.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from recovery_cases import CASES, load_case
from reporting import check_writable, input_errors_end_it, read_result, table
from timing import quickest_call, timed
from torch import Tensor, nn

from recollect import Blind, Images, Recovery, Refined, Score, mask
from recollect.devices.precision import check_device, evaluation_mode
from recollect.engine import arithmetic_of, prepare, without_acceleration
from recollect.paper.origin import origin
from recollect.records import write_json

BATCHES = {"fc10": (8, 64, 128, 256, 512), "unet50": (1, 4, 16, 50, 256), "demo": (1, 8, 40, 100, 512)}
CASES_ON = {"cuda": ("fc10", "unet50"), "cpu": ("demo",)}
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def main(arguments: Sequence[str] | None = None) -> None:
    with input_errors_end_it():
        run(parse(arguments))


def run(options: argparse.Namespace) -> None:
    if options.tables:
        print(tables(read_result(options.tables, "cases", "products")))
        return
    check_device(options.device)
    check_writable(options.out, options.checkpoint)
    results: dict[str, Any] = {**origin(options.device), "cases": {}}
    for name in CASES_ON[options.device]:
        images, f = load_case(name, options)
        results |= {"products": arithmetic_of(f, images.pixels)}
        results["cases"][name] = compare(name, images, f, options.device)
        if options.out:
            write_json(options.out, results)
    print(tables(results))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with the data sets; without it images are random")
    parser.add_argument("--cpu", action="store_true", help="the demo's network on a CPU, in place of those on a GPU")
    parser.add_argument("--checkpoint", type=Path, help="the demo's network: read if there, else written")
    parser.add_argument("--out", type=Path, help="write all numbers here, as JSON")
    parser.add_argument("--tables", type=Path, help="print the tables of such a file and run nothing")
    options = parser.parse_args(arguments)
    options.device = "cpu" if options.cpu else "cuda"
    if options.checkpoint and not options.cpu:
        parser.error("--checkpoint holds the demo's network; it goes with --cpu")
    if options.data and options.cpu:
        parser.error("--data is for the networks on a GPU; the demo's has photographs of its own")
    return options


def compare(name: str, images: Images, f: nn.Module, device: str) -> dict[str, Any]:
    x = images.pixels.to(device)
    with torch.no_grad(), evaluation_mode(f):
        return {"errors": errors(f, x[:50]), "times": times(name, f, x)} | {
            "recoveries": {kind: recoveries(name, x, f, kind) for kind in ("blind", "refined")}
        }


def errors(f: nn.Module, x: Tensor) -> dict[str, dict[str, float]]:
    """Against float64: in the mean over all values, at the largest, and the bias, all in parts of the values' size."""
    exact = copy.deepcopy(f).double()(x.double())
    size = exact.square().mean().sqrt()

    def of(out: Tensor) -> dict[str, float]:
        wrong = (out - exact) / size
        return {"mean": wrong.square().mean().sqrt().item(), "largest": wrong.abs().max().item(),
                "bias": wrong.mean().item()}  # fmt: skip

    with prepare(f, x, None) as ours:
        return {"library": of(f(x)), "ours": of(ours(x))}


def times(name: str, f: nn.Module, x: Tensor) -> dict[str, dict[str, float]]:
    seconds = {}
    for size in BATCHES[name]:
        batch = x.repeat(-(-size // len(x)), 1, 1, 1)[:size]
        with prepare(f, batch, None) as ours:
            seconds[str(size)] = {"library": quickest_call(f, batch), "ours": quickest_call(ours, batch)}
    return seconds


def recoveries(name: str, x: Tensor, f: nn.Module, kind: str) -> dict[str, Any]:
    """Under a mask that leaves single pixels out, where answers come closest to the originals."""
    _, channels, height, width = x.shape
    case, y = CASES[name], mask("dust", (channels, height, width)).to(x.device).apply(x)
    method = (Blind if kind == "blind" else Refined)(gamma=case.gamma, start=case.start, limit=case.limit)

    def run() -> tuple[Recovery, float]:
        method(f, y)  # kernels and libraries are ready
        return timed(lambda: method(f, y), y.device.type)

    ours, seconds = run()
    with without_acceleration():
        library, library_seconds = run()
    psnr = [torch.from_numpy(Score.of(r.estimate, x).psnr) for r in (library, ours)]
    both = (psnr[0] > 60) & (psnr[1] > 60)
    gain = (psnr[1] - psnr[0])[both].double()
    return {
        "images": len(y), "found_by_both": int(both.sum()), "seconds": {"library": library_seconds, "ours": seconds},
        "median_psnr": {"library": psnr[0].median().item(), "ours": psnr[1].median().item()},
        "gain_in_db": {str(q): gain.quantile(q).item() for q in QUANTILES} if len(gain) else None,
    }  # fmt: skip


def tables(results: dict[str, Any]) -> str:
    head = f"{results['device']}; {results['products']}; torch {results['versions']['torch']}; {results['date']}"
    cases = results["cases"].items()
    exact = [
        [name, kind, *(f"{e[what]:.1e}" for what in ("mean", "largest", "bias"))]
        for name, case in cases
        for kind, e in case["errors"].items()
    ]
    fast = [
        [name, size, *(f"{1e3 * t[kind]:.3f}" for kind in ("library", "ours"))]
        for name, case in cases
        for size, t in case["times"].items()
    ]
    recovered = [[name, kind, *recovery_row(r)] for name, case in cases for kind, r in case["recoveries"].items()]
    return "\n\n".join([
        head,
        table(["network", "matrix multiplications", "error against float64", "the largest", "bias"], exact),
        table(["network", "images", "library, ms", "ours, ms"], fast),
        table(["network", "method", "seconds, library / ours", "median PSNR, dB", "gain of an image in dB"], recovered),
    ])  # fmt: skip


def recovery_row(r: dict[str, Any]) -> list[str]:
    """Library and ours side by side, and quantiles of what an image gains."""
    s, p, gain = r["seconds"], r["median_psnr"], r["gain_in_db"] or {}
    spread = ", ".join(f"{q}: {v:+.3f}" for q, v in gain.items())
    return [
        f"{s['library']:.2f} / {s['ours']:.2f}", f"{p['library']:.2f} / {p['ours']:.2f}",
        f"{spread} ({r['found_by_both']} of {r['images']})",
    ]  # fmt: skip


if __name__ == "__main__":
    main()
