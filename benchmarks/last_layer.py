"""Does a fully connected network memorize as much when its last layer is solved for as when all of it is trained?

    python benchmarks/last_layer.py --out last-layer.json
    python benchmarks/last_layer.py --tables last-layer.json

The trainer can move the last layer of such a network towards its least-squares solution below a loss of 1e-5. Here
the same network is fitted to the same photographs with that and without, to the same losses, and recovered images are
counted.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reporting import check_writable, input_errors_end_it, read_result, table

from recollect import Blind, FullyConnected, Images, KnownMask, Score, load, mask, observe
from recollect.degradation import PAPER_MASKS
from recollect.paper.origin import origin
from recollect.records import write_json
from recollect.training import Recipe, train_to_loss

GAMMA = 0.5


def main(arguments: Sequence[str] | None = None) -> None:
    with input_errors_end_it():
        run(parse(arguments))


def run(options: argparse.Namespace) -> None:
    if options.tables:
        print(tables(read_result(options.tables, "rows", "gamma")))
        return
    check_writable(options.out)
    images = load(options.images)
    results: dict[str, Any] = {
        **origin("cpu"), "images": options.images, "layers": options.layers,
        "width": options.width, "gamma": GAMMA, "rows": [],
    }  # fmt: skip
    for loss in options.losses:
        for solved in (True, False):
            results["rows"].append({"solved": solved, **fit_and_recover(images, loss, solved, options)})
            if options.out:
                write_json(options.out, results)
    print(tables(results))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--images", default="photos?count=60&size=16&seed=42", help="as `recollect data show` takes them"
    )
    parser.add_argument("--layers", type=int, default=10)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--losses", type=float, nargs="+", default=[1e-6, 1e-7, 1e-8])
    parser.add_argument("--max-seconds", type=float, default=300, help="of each training")
    parser.add_argument("--max-steps", type=int, help="of each training")
    parser.add_argument("--out", type=Path, help="write all numbers here, as JSON")
    parser.add_argument("--tables", type=Path, help="print the table of such a file and run nothing")
    return parser.parse_args(arguments)


def fit_and_recover(images: Images, loss: float, solved: bool, options: argparse.Namespace) -> dict[str, Any]:
    f = FullyConnected(images.shape, layers=options.layers, width=options.width)
    recipe = Recipe.for_network(f, len(images))
    recipe = replace(recipe, solve_below=1e-5) if solved else recipe
    done = train_to_loss(f, images, loss, recipe=recipe, max_seconds=options.max_seconds, max_steps=options.max_steps)
    f.eval()
    return {
        "wanted": loss, "loss": done.loss, "seconds": done.history[-1].seconds, "images": len(images),
        "masks": {name: counts(f, images, name) for name in PAPER_MASKS},
    }  # fmt: skip


def counts(f: FullyConnected, images: Images, name: str) -> dict[str, dict[str, int]]:
    """Images recovered accurately and approximately, by blind and with the mask known."""
    seen = observe(images, mask(name, images.shape))
    recoveries = {"blind": Blind(GAMMA)(f, seen.y), "known": KnownMask(GAMMA)(f, seen.y, seen.truth)}
    scores = {method: Score.of(recovery.estimate, images.pixels) for method, recovery in recoveries.items()}
    return {m: {"accurate": s.accurate.count, "approximate": s.approximate.count} for m, s in scores.items()}


def tables(results: dict[str, Any]) -> str:
    rows = results["rows"]
    network = f"FC-{results['layers']}, {results['width']} wide, {results['images']}, gamma {results['gamma']}"
    head = f"{results['device']}; torch {results['versions']['torch']}; {results['date']}; {network}"
    words = f"Accurate / approximate recovery by blind, of {rows[0]['images']} images:"
    shown = table(["last layer", "train loss", *rows[0]["masks"]], [row_of(row) for row in rows])
    return "\n\n".join([head, words, shown])


def row_of(row: dict[str, Any]) -> list[str]:
    blind = (counts["blind"] for counts in row["masks"].values())
    return [
        "solved for" if row["solved"] else "trained", f"{row['loss']:.1e}",
        *(f"{b['accurate']} / {b['approximate']}" for b in blind),
    ]  # fmt: skip


if __name__ == "__main__":
    main()
