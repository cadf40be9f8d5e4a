"""Pack the images that a run of the paper's suite needs into arrays, for a machine without the data sets.

    python benchmarks/pack_images.py --data DATA --out gpu --sets tiny600,svhn50,cifar1000
    recollect paper run accurate --scale full --data gpu

`recollect paper` reads DIR/NAME-PART.npz in place of the original files. Without --sets, all sets of at most
--largest images are packed. Unseen images are left out where no experiment attacks any.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from recollect.errors import InputError
from recollect.images import Images
from recollect.paper.cells import Cell, ImageSet
from recollect.paper.experiments import EXPERIMENTS
from recollect.paper.scales import Scale, scale_named

LARGEST = 1000


def main(arguments: list[str] | None = None) -> None:
    options = _options(arguments)
    scale = scale_named(options.scale, options.data)
    wanted = options.sets.split(",") if options.sets else None
    attacked = {(cell.fit.images.first_of or cell.fit.images.name, cell.set) for cell in cells_of(scale)}
    for name, images in sets_of(scale, wanted, options.largest).items():
        for part in (part for part in images.parts if part == "train" or (name, part) in attacked):
            print(pack(images.load(part, options.data), options.out / f"{name}-{part}.npz"))


def cells_of(scale: Scale) -> Iterator[Cell]:
    for experiment in EXPERIMENTS.values():
        yield from experiment.cells(scale)


def sets_of(scale: Scale, wanted: Iterable[str] | None, largest: int) -> dict[str, ImageSet]:
    """Return the sets of all experiments by the names of their arrays; sets that are parts of one share it."""
    sets = _largest_sets(scale)
    if wanted is None:
        return {name: images for name, images in sets.items() if images.count <= largest}
    if unknown := [name for name in wanted if name not in sets]:
        raise InputError(f"There is no set {unknown[0]}; choose from {', '.join(sets)}.")
    return {name: sets[name] for name in wanted}


def _largest_sets(scale: Scale) -> dict[str, ImageSet]:
    sets: dict[str, ImageSet] = {}
    for experiment in EXPERIMENTS.values():
        shown = [experiment.pictures.fit(scale)] if experiment.pictures else []
        for fit in (*experiment.fits(scale), *shown):
            name = fit.images.first_of or fit.images.name
            if name not in sets or fit.images.count > sets[name].count:
                sets[name] = fit.images
    return sets


def pack(images: Images, path: Path) -> str:
    """Write images as one 8-bit array; return a line that says so."""
    values = (255 * images.pixels).round().byte().numpy()
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, images=values)
    return f"{path}: {len(images)} images, {path.stat().st_size / 1e6:.1f} MB"


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder of the original data sets")
    parser.add_argument("--out", type=Path, required=True, help="folder of the arrays, for recollect paper --data")
    parser.add_argument("--scale", default="full")
    parser.add_argument("--sets", help="names of sets, separated by commas")
    parser.add_argument("--largest", type=int, default=LARGEST, help=f"most images of a set, by default {LARGEST}")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
