"""Which images of benchmarks/diffusion.py are so easy that biharmonic inpainting restores them, without any network?

    python benchmarks/diffusion_easy.py --images FOLDER --json results/diffusion/biharmonic.json

FOLDER is that benchmark's. The same images are damaged by the same masks, and the inpainting is told the masks.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from diffusion import FULL, SMALL, Scale, read_images
from diffusion_attacks import MASKS, Damaged, by_mask
from reporting import check_writable, input_errors_end_it

from recollect.images import Images
from recollect.methods import Biharmonic
from recollect.paper.origin import origin
from recollect.records import write_json

CPU = torch.device("cpu")
SEED = 42  # of the parts that attack the same training images


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, required=True, help="folder with train.npy and unseen.npy")
    parser.add_argument("--json", type=Path, required=True, help="file to write")
    parser.add_argument("--small", action="store_true", help="tiny sizes")
    with input_errors_end_it():
        options = parser.parse_args(arguments)
        check_writable(options.json)
        record = restored(options.images, SMALL if options.small else FULL)
        write_json(options.json, record)
        for mask, own in record["masks"].items():
            print(mask, *(f"{which}: {own[which]['recovered']} of {own[which]['total']}" for which in own))


def restored(folder: Path, scale: Scale) -> dict[str, Any]:
    """Inpaint the images that the benchmark scores."""
    train, unseen = (read_images(folder / f"{which}.npy", scale.pixels) for which in ("train", "unseen"))
    order = np.random.default_rng(SEED).permutation(len(train))
    sets: dict[str, Images] = {"train": train[order[: scale.scored].tolist()], "unseen": unseen[: scale.unseen]}
    damaged = Damaged.of(sets, MASKS, CPU)
    recovery = Biharmonic()(None, damaged.y, damaged.truth)
    masks = by_mask(recovery.estimate, damaged, recovery.steps)
    for own in masks.values():
        own.pop("membership")
        for part in own.values():
            part.pop("evaluations_an_image")
    return {"method": "biharmonic", "unseen_hash": unseen.hash, "masks": masks, **origin(CPU)}


if __name__ == "__main__":
    main()
