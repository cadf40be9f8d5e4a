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
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import table
from torch import Tensor

from recollect import Images, InputError, Score, load, mask, observe
from recollect.auditing.generic import STRONGEST
from recollect.degradation import SIX, Observation
from recollect.priors import Prior, bundled, open_prior
from recollect.records import provenance, read_json, write_json
from recollect.recovery import DDNM


def main() -> None:
    try:
        run(arguments())
    except InputError as error:
        raise SystemExit(str(error)) from None


def run(options: argparse.Namespace) -> None:
    if options.tables:
        print("\n\n".join(psnr_table(read_json(path)) for path in options.tables))
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
            results["psnr"][name][method] = round(mean_psnr(x, images), 3)
            print(
                f"{name}, {method}: {results['psnr'][name][method]:.2f} dB in {time.monotonic() - began:.0f} s",
                flush=True,
            )
            restored[f"{method}/{name}"] = (x.clamp(0, 1) * 255).round().byte().numpy()
        if options.json:
            write_json(options.json, results)
    print(psnr_table(results))
    if options.save:
        np.savez_compressed(options.save, original=(images.pixels * 255).round().byte().numpy(), **restored)


def about(images: Images, prior: Prior | None, device: str) -> dict[str, Any]:
    """What is measured, and whether the prior knows it."""
    facts = {"count": len(images), "shape": "x".join(map(str, images.shape)), "images_hash": images.hash, "psnr": {}}
    card = prior.card if prior else None
    overlap = str(card.overlap(images)) if card else "unknown"
    known = f"{prior}, trained on {card.trained_on if card else 'unknown'}; of these images it knows {overlap}"
    return facts | {"prior": known if prior else "none", "date": date.today().isoformat(), **provenance(device)}


def with_those_on_record(path: Path | None, results: dict[str, Any]) -> dict[str, Any]:
    """Numbers that the file holds of the same images and prior are kept: one machine restores, another interpolates."""
    if path is None or not path.exists():
        return results
    before = read_json(path)
    if before["images_hash"] != results["images_hash"] or results["prior"] not in ("none", before["prior"]):
        raise InputError(f"{path} is of other images or another prior: give --json another name.")
    return before


def contenders(prior: Prior | None, options: argparse.Namespace) -> dict[str, Callable[[Observation], Tensor]]:
    methods = [DDNM(prior, clip=options.clip, **way) for way in options.ways] if prior else []
    named = {named_by_settings(method): restorer(method) for method in methods}
    return {**named, **({"biharmonic": biharmonic} if "biharmonic" in options.methods else {})}


def named_by_settings(method: DDNM) -> str:
    mean = f", mean of {method.draws}" if method.draws > 1 else ""
    return f"ddnm, {method.steps} {method.spacing} steps, eta {method.eta:g}{mean}"


def restorer(method: DDNM) -> Callable[[Observation], Tensor]:
    return lambda seen: method(None, seen.y, seen.truth).estimate


def psnr_table(results: dict[str, Any]) -> str:
    """Mean PSNR in dB, a row a method."""
    masks = list(results["psnr"])
    methods = list(dict.fromkeys(method for row in results["psnr"].values() for method in row))
    rows = [[method, *(f"{results['psnr'][name][method]:.1f}" for name in masks)] for method in methods]
    return table(["mean PSNR, dB", *masks], rows)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", help="held-out images, spelled as in docs/sources.md")
    parser.add_argument("--count", type=int, help="only the first so many")
    parser.add_argument("--prior", help="a folder or a hub name; default: the bundled one")
    parser.add_argument("--methods", nargs="+", default=["ddnm", "biharmonic"], choices=["ddnm", "biharmonic"])
    parser.add_argument("--masks", default=",".join(SIX))
    parser.add_argument(
        "--ways", nargs="+", type=way, default=[{}, STRONGEST], metavar="STEPS,ETA,SPACING,DRAWS",
        help="of DDNM; by default the paper's and an audit's",
    )  # fmt: skip
    parser.add_argument("--clip", action="store_true", help="clip the clean estimate at every step")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path, help="also write the numbers here, beside those it holds")
    parser.add_argument("--tables", type=Path, nargs="+", help="print the tables of such files and run nothing")
    parser.add_argument("--save", type=Path, help="write what was restored to this .npz")
    options = parser.parse_args()
    if not options.images and not options.tables:
        parser.error("--images are needed, or --tables")
    return options


def way(text: str) -> dict[str, Any]:
    """Settings of DDNM, as argparse reads them."""
    steps, eta, spacing, draws = text.split(",")
    return {"steps": int(steps), "eta": float(eta), "spacing": spacing, "draws": int(draws)}


def opened(options: argparse.Namespace) -> Prior | None:
    if "ddnm" not in options.methods:
        return None
    return open_prior(options.prior, device=options.device) if options.prior else bundled(options.device)


def biharmonic(seen: Observation) -> Tensor:
    """Every image by itself; the mask is one for all."""
    from skimage.restoration import inpaint_biharmonic

    erased = ~seen.truth.keep[0, 0].numpy()
    images = seen.y.numpy().transpose(0, 2, 3, 1)
    found = np.stack([inpaint_biharmonic(image, erased, channel_axis=-1) for image in images])
    return torch.from_numpy(found.transpose(0, 3, 1, 2)).float()


def mean_psnr(x: Tensor, images: Images) -> float:
    """Pixels are clamped to their range first: no method should lose by what every viewer cuts off."""
    return Score.of(x.clamp(0, 1), images.pixels).mean_psnr


if __name__ == "__main__":
    main()
