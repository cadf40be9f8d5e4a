"""Write the images of benchmarks/diffusion.py: training images, and unseen images that have no copy among them.

    python benchmarks/diffusion_images.py --train cifar10:DATA --unseen 'folder:OTHERS?count=500&seed=42' --out FOLDER

Unseen images that equal or nearly equal a training image, mirrored or not, are left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from reporting import input_errors_end_it

from recollect.diffusion import without
from recollect.diffusion.train import eight_bit
from recollect.errors import InputError
from recollect.sources import load


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", required=True, help="source of the training images")
    parser.add_argument("--unseen", required=True, help="source of the others; 100 more than are kept")
    parser.add_argument("--keep", type=int, default=400, help="unseen images to keep; default: 400")
    parser.add_argument("--out", type=Path, required=True, help="folder for train.npy and unseen.npy")
    with input_errors_end_it():
        write(parser.parse_args(arguments))


def write(options: argparse.Namespace) -> None:
    train, given = load(options.train), load(options.unseen)
    unseen = without(given, train)
    if len(unseen) < options.keep:
        raise InputError(f"{len(unseen)} unseen images are left of {len(given)}; {options.keep} are needed.")
    options.out.mkdir(parents=True, exist_ok=True)
    for name, images in (("train", train), ("unseen", unseen[: options.keep])):
        np.save(options.out / f"{name}.npy", eight_bit(images).numpy())
        print(f"{name}: {len(images)} images, {images.hash}")
    print(f"{len(given) - len(unseen)} of {len(given)} unseen images have a copy among the training images")


if __name__ == "__main__":
    main()
