"""How often the bound on stored images holds: memorizers that store a known number of images are extracted from.

    PYTHONPATH=. python benchmarks/extraction_coverage.py --json results/extraction-coverage.json

A memorizer stores half of its training images. "even": all images have one contrast, so that basins are alike.
"uneven": contrasts differ, and images of low contrast draw most starts. "families": images come in groups of nearly
equal ones. "held" counts extractions in which the bound from below is at most the stored number. "two-sided" counts
those in which the usual 95% interval of Chao's estimate holds the number; it assumes that images are caught alike.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from reporting import check_writable, input_errors_end_it, table
from torch import Tensor

from recollect import Images
from recollect.extraction import extract
from recollect.extraction.capture_recapture import Z, estimate_unseen
from recollect.paper.origin import origin
from recollect.records import write_json
from recollect.scoring import APPROXIMATE
from tests.planted import Memorizer

SHAPE = (3, 8, 8)
FAMILY = 5  # images in a group
SIZES, SAMPLES, REPEATS = (10, 40, 160), (40, 160, 640), 10


def even(rng: np.random.Generator, count: int) -> np.ndarray:
    return 0.5 + 0.4 * (2 * rng.random((count, *SHAPE)) - 1)


def uneven(rng: np.random.Generator, count: int) -> np.ndarray:
    contrast = np.exp(rng.normal(0, 0.5, (count, 1, 1, 1)))
    return 0.5 + 0.2 * np.minimum(contrast, 2.4) * (2 * rng.random((count, *SHAPE)) - 1)


def families(rng: np.random.Generator, count: int) -> np.ndarray:
    parents = even(rng, -(-count // FAMILY)).repeat(FAMILY, 0)[:count]
    return np.clip(parents + 0.1 * rng.standard_normal((count, *SHAPE)), 0, 1)


KINDS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "even": even, "uneven": uneven, "families": families,
}  # fmt: skip


def extraction_of(kind: str, stored: int, samples: int, seed: int) -> dict[str, Any]:
    """Extract from one memorizer, and compare with what it stores."""
    pixels: Tensor = torch.from_numpy(KINDS[kind](np.random.default_rng(seed), 2 * stored)).float()
    extraction = extract(Memorizer(pixels[:stored]), Images(pixels), samples=samples, seed=seed)
    estimated = extraction.stored
    assert estimated is not None
    captures = extraction.nearest.captures(APPROXIMATE, 2 * stored)
    low, high = two_sided(captures[captures > 0])
    return {
        "seen": estimated.seen, "at_least": estimated.at_least, "estimate": estimated.estimate,
        "held": estimated.at_least <= stored, "two_sided": low <= stored <= high,
    }  # fmt: skip


def two_sided(captures: np.ndarray) -> tuple[float, float]:
    """Compute the log-normal interval of Chao (1987), which holds where images are caught alike."""
    if not len(captures):
        return 0.0, 0.0
    unseen, variance = estimate_unseen(captures)
    spread = np.exp(Z * np.sqrt(np.log(1 + variance / unseen**2))) if unseen > 0 else 1.0
    return len(captures) + unseen / spread, len(captures) + unseen * spread


def row_of(kind: str, stored: int, samples: int, repeats: int) -> dict[str, Any]:
    extractions = [extraction_of(kind, stored, samples, seed) for seed in range(repeats)]
    means = {name: float(np.mean([one[name] for one in extractions])) for name in ("seen", "at_least", "estimate")}
    counts = {name: sum(bool(one[name]) for one in extractions) for name in ("held", "two_sided")}
    return {"kind": kind, "stored": stored, "samples": samples, "extractions": repeats, **means, **counts}


def as_table(rows: Sequence[dict[str, Any]]) -> str:
    head = ["plants", "stored", "samples", "seen", "at least", "estimate", "held", "two-sided"]
    return table(
        head,
        [
            [
                row["kind"], str(row["stored"]), str(row["samples"]), f"{row['seen']:.1f}", f"{row['at_least']:.1f}",
                f"{row['estimate']:.1f}", f"{row['held']} of {row['extractions']}",
                f"{row['two_sided']} of {row['extractions']}",
            ]
            for row in rows
        ],
    )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=REPEATS, help="memorizers of each kind")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="images that a memorizer stores")
    parser.add_argument("--samples", type=int, nargs="+", default=SAMPLES, help="samples of an extraction")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    with input_errors_end_it():
        check_writable(options.json)
        rows = [
            row_of(kind, stored, samples, options.repeats)
            for kind in KINDS
            for stored in options.sizes
            for samples in options.samples
        ]
    print(as_table(rows))
    if options.json:
        write_json(options.json, {**origin("cpu"), "rows": rows})


if __name__ == "__main__":
    main()
