"""Does a diffusion prior inpaint better than a simple method? Mean PSNR on held-out images, one row a mask.

    python benchmarks/prior.py --images 'cifar10:DATA/cifar-10-batches-py?count=50&seed=42'
    python benchmarks/prior.py --prior FOLDER --images held-out.npy --device cuda --methods ddnm --json prior.json
    python benchmarks/prior.py --images held-out.npy --methods biharmonic --json prior.json    # on another machine

The images must be ones that the prior was not trained on; how many it knows, by its card, is said first.
Biharmonic inpainting is scikit-image's and runs on the CPU; DDNM needs torch, numpy and diffusers alone. A restoration
by DDNM is a draw from what is plausible; the mean of several is nearer to the truth.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from reporting import input_errors_end_it, read_result, table
from torch import Tensor

from recollect import Images, InputError, Score, load, mask, observe
from recollect.degradation import PAPER_MASKS, Observation
from recollect.diffusion import Denoiser, bundled, open_denoiser
from recollect.methods import DDNM, Biharmonic
from recollect.methods.ddnm import STRONGEST
from recollect.paper.origin import origin
from recollect.records import read_json, write_json


def main(arguments: Sequence[str] | None = None) -> None:
    with input_errors_end_it():
        run(parse(arguments))


def run(options: argparse.Namespace) -> None:
    if options.tables:
        print("\n\n".join(psnr_table(read_result(path, "psnr")) for path in options.tables))
        return
    images = load(options.images)
    images = images[: options.count] if options.count else images
    prior = opened(options)
    results = with_those_on_record(options.json, about(images, prior, options.device))
    print(f"{results['count']} images of {results['shape']}, prior: {results['prior']}", flush=True)
    methods = contenders(prior, options)
    restored: dict[str, np.ndarray] = {}
    for name in options.masks.split(","):
        seen = observe(images, mask(name, images.shape))
        results["psnr"].setdefault(name, {})
        for method, restore in methods.items():
            began = time.monotonic()
            x = restore(seen)
            each = psnr_of_each(x, images)
            results["psnr"][name][method] = round(float(each.mean()), 3)
            results["psnr_of_each"].setdefault(name, {})[method] = [round(float(psnr), 2) for psnr in each]
            print(
                f"{name}, {method}: {results['psnr'][name][method]:.2f} dB in {time.monotonic() - began:.0f} s",
                flush=True,
            )
            restored[f"{method}/{name}"] = (x.clamp(0, 1) * 255).round().byte().numpy()
        if options.json:
            write_json(options.json, results)
    print(psnr_table(results))
    if options.save:
        arrays: dict[str, Any] = {"original": (images.pixels * 255).round().byte().numpy(), **restored}
        np.savez_compressed(options.save, **arrays)


def about(images: Images, prior: Denoiser | None, device: str) -> dict[str, Any]:
    """What is measured, and whether the prior knows it."""
    facts = {"count": len(images), "shape": "x".join(map(str, images.shape)), "images_hash": images.hash}
    facts |= {"psnr": {}, "psnr_of_each": {}}
    card = prior.card if prior else None
    overlap = str(card.overlap(images)) if card else "unknown"
    known = f"{prior}, trained on {card.trained_on if card else 'unknown'}; of these images it knows {overlap}"
    return facts | {"prior": known if prior else "none", **origin(device)}


def with_those_on_record(path: Path | None, results: dict[str, Any]) -> dict[str, Any]:
    """Numbers that the file holds of the same images and prior are kept: one machine restores, another interpolates."""
    if path is None or not path.exists():
        return results
    before = {"psnr_of_each": {}, **read_json(path)}
    if before["images_hash"] != results["images_hash"] or len({before["prior"], results["prior"]} - {"none"}) > 1:
        raise InputError(f"{path} is of other images or another prior: give --json another name.")
    about_prior = before if before["prior"] != "none" else results
    return {**about_prior, "psnr": before["psnr"], "psnr_of_each": before["psnr_of_each"]}


def contenders(prior: Denoiser | None, options: argparse.Namespace) -> dict[str, Callable[[Observation], Tensor]]:
    methods = [DDNM(prior, clip=options.clip, **settings) for settings in options.settings] if prior else []
    named: dict[str, Any] = {named_by_settings(method): method for method in methods}
    named |= {"biharmonic": Biharmonic()} if "biharmonic" in options.methods else {}
    return {name: restorer(method) for name, method in named.items()}


def named_by_settings(method: DDNM) -> str:
    mean = f", mean of {method.draws}" if method.draws > 1 else ""
    return f"ddnm, {method.steps} {method.spacing} steps, eta {method.eta:g}{mean}"


def restorer(method: Any) -> Callable[[Observation], Tensor]:
    return lambda seen: method(None, seen.y, seen.truth).estimate


def psnr_table(results: dict[str, Any]) -> str:
    """Mean PSNR in dB, a row a method; and how far each is ahead of biharmonic inpainting, image by image."""
    masks, each = list(results["psnr"]), results.get("psnr_of_each", {})
    methods = list(dict.fromkeys(method for row in results["psnr"].values() for method in row))
    rows = [[method, *(rounded(results["psnr"][name].get(method)) for name in masks)] for method in methods]
    for method in methods:
        if method != "biharmonic" and all({method, "biharmonic"} <= set(each.get(name, {})) for name in masks):
            leads = [ahead(each[name][method], each[name]["biharmonic"]) for name in masks]
            rows.append([f"{method}: ahead of biharmonic by", *leads])
    return table(["mean PSNR, dB", *masks], rows)


def rounded(psnr: float | None) -> str:
    return "-" if psnr is None else f"{psnr:.1f}"


def ahead(psnrs: list[float], others: list[float]) -> str:
    """Write the mean difference with its standard error."""
    differences = np.subtract(psnrs, others)
    error = differences.std(ddof=1) / len(differences) ** 0.5 if len(differences) > 1 else np.nan
    return f"{differences.mean():+.2f} ± {error:.2f}"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", help="held-out images, spelled as in docs/guide/choose-images.md")
    parser.add_argument("--count", type=int, help="only the first so many")
    parser.add_argument("--prior", help="a folder or a hub name; default: the bundled one")
    parser.add_argument("--methods", nargs="+", default=["ddnm", "biharmonic"], choices=["ddnm", "biharmonic"])
    parser.add_argument("--masks", default=",".join(PAPER_MASKS))
    parser.add_argument(
        "--settings", nargs="+", type=ddnm_settings, default=[{}, STRONGEST], metavar="STEPS,ETA,SPACING,DRAWS",
        help="of DDNM; by default the paper's and an audit's",
    )  # fmt: skip
    parser.add_argument("--clip", action="store_true", help="clip the clean estimate at every step")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path, help="also write the numbers here, beside those it holds")
    parser.add_argument("--tables", type=Path, nargs="+", help="print the tables of such files and run nothing")
    parser.add_argument("--save", type=Path, help="write what was restored to this .npz")
    options = parser.parse_args(arguments)
    if not options.images and not options.tables:
        parser.error("--images are needed, or --tables")
    return options


def ddnm_settings(text: str) -> dict[str, Any]:
    """Settings of DDNM, as argparse reads them."""
    steps, eta, spacing, draws = text.split(",")
    return {"steps": int(steps), "eta": float(eta), "spacing": spacing, "draws": int(draws)}


def opened(options: argparse.Namespace) -> Denoiser | None:
    if "ddnm" not in options.methods:
        return None
    return open_denoiser(options.prior, device=options.device) if options.prior else bundled(options.device)


def psnr_of_each(x: Tensor, images: Images) -> Tensor:
    """Pixels are clamped to their range first: no method should lose by what every viewer cuts off."""
    return torch.from_numpy(Score.of(x.clamp(0, 1), images.pixels).psnr)


if __name__ == "__main__":
    main()
