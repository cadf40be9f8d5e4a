"""Does a diffusion prior inpaint better than a simple method? Mean PSNR on held-out images, one row a mask.

    python benchmarks/prior.py --images 'cifar10:DATA/cifar-10-batches-py?count=50&seed=42'
    python benchmarks/prior.py --prior FOLDER --images held-out.npy --device cuda --methods ddnm --save restored.npz

The images must be ones that the prior was not trained on; how many it knows, by its card, stands above the table.
Biharmonic inpainting is scikit-image's and runs on the CPU; DDNM needs torch, numpy and diffusers alone. A restoration
by DDNM is a draw from what is plausible; --draws takes the mean of several, by other seeds, nearer to the truth.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from recollect import Images, Score, load, mask, observe
from recollect.degradation import SIX, Observation
from recollect.priors import Prior, bundled, open_prior
from recollect.recovery import DDNM


def main() -> None:
    options = arguments()
    images = load(options.images)
    images = images[: options.count] if options.count else images
    prior = opened(options)
    print(f"{len(images)} images of {'x'.join(map(str, images.shape))}: {images.name}")
    if prior:
        known = prior.card.overlap(images) if prior.card else "unknown"
        print(f"prior: {prior}, trained on {prior.card.trained_on if prior.card else 'unknown'}; among these: {known}")
    settings = list(itertools.product(options.steps, options.eta, options.draws)) if prior else []
    methods = {
        f"ddnm {s}, eta {e:g}, {d} drawn": mean_of(d, DDNM(prior, s, e, clip=options.clip)) for s, e, d in settings
    }
    names = [*methods, *(["biharmonic"] if "biharmonic" in options.methods else [])]
    print(f"{'mean PSNR (dB)':16}" + "".join(f"{name:>28}" for name in names))
    restored: dict[str, np.ndarray] = {}
    for name in options.masks.split(","):
        seen = observe(images, mask(name, images.shape))
        row = []
        for method in names:
            began = time.monotonic()
            x = methods[method](seen) if method in methods else biharmonic(seen)
            row.append(f"{mean_psnr(x, images):.2f} ({time.monotonic() - began:.0f} s)")
            restored[f"{method}/{name}"] = (x.clamp(0, 1) * 255).round().byte().numpy()
        print(f"{name:16}" + "".join(f"{cell:>28}" for cell in row), flush=True)
    if options.save:
        np.savez_compressed(options.save, original=(images.pixels * 255).round().byte().numpy(), **restored)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", required=True, help="held-out images, spelled as in docs/sources.md")
    parser.add_argument("--count", type=int, help="only the first so many")
    parser.add_argument("--prior", help="a folder or a hub name; default: the bundled one")
    parser.add_argument("--methods", default="ddnm,biharmonic")
    parser.add_argument("--masks", default=",".join(SIX))
    parser.add_argument("--steps", type=int, nargs="+", default=[100])
    parser.add_argument("--eta", type=float, nargs="+", default=[0.85])
    parser.add_argument("--draws", type=int, nargs="+", default=[1], help="restorations whose mean is taken")
    parser.add_argument("--clip", action="store_true", help="clip the clean estimate at every step")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--save", type=Path, help="write what was restored to this .npz")
    return parser.parse_args()


def opened(options: argparse.Namespace) -> Prior | None:
    if "ddnm" not in options.methods:
        return None
    return open_prior(options.prior, device=options.device) if options.prior else bundled(options.device)


def mean_of(draws: int, method: DDNM) -> Callable[[Observation], Tensor]:
    """What it restores, or the mean of what it restores with several seeds."""
    by_seed = [replace(method, seed=method.seed + i) for i in range(draws)]
    return lambda seen: torch.stack([one(None, seen.y, seen.truth).estimate for one in by_seed]).mean(0)


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
