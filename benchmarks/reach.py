"""Which losses are reached, how fast: the networks of the paper with one recipe each kind and no tuning by hand.

    python benchmarks/reach.py --data DATA --rows fc10-lrelu,unet-softplus-svhn --out results/training.json

DATA holds `tiny-imagenet-200.zip`, `svhn/` and `cifar-10-batches-py/`. A row that is in the results file already is
not run again; checkpoints go to --checkpoints and can be audited. Needs torch, numpy, Pillow and safetensors (scipy
for SVHN).
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import torch

from recollect import FullyConnected, UNet
from recollect.records import provenance, read_json, write_json
from recollect.sources import load
from recollect.training import Recipe, train_to_loss


@dataclass(frozen=True)
class Row:
    """A goal: this network, these images, this loss, within this time on one H200."""

    network: str  # fc10, fc20, unet
    activation: str
    source: str
    until: float
    seconds: float
    width: int = 1024


TINY = "tiny-imagenet:{data}/tiny-imagenet-200.zip"
SVHN = "svhn:{data}/svhn?count=50&seed=42"
CIFAR = "cifar10:{data}/cifar-10-batches-py?count=1000&seed=42"
ROWS = {
    **{f"fc10-{a}": Row("fc10", a, TINY + "?per-class=3&seed=42", 1e-8, 60) for a in ("lrelu", "prelu")},
    **{f"fc20-{a}": Row("fc20", a, TINY + "?per-class=3&seed=42", 1e-8, 180) for a in ("lrelu", "prelu")},
    **{f"unet-{a}-svhn": Row("unet", a, SVHN, 1e-8, 240) for a in ("lrelu", "prelu", "softplus")},
    **{f"unet-{a}-cifar": Row("unet", a, CIFAR, 1e-4, 120) for a in ("lrelu", "prelu", "softplus")},
    "fc20-25k": Row("fc20", "lrelu", TINY + "?per-class=125&seed=42", 1e-4, 500, width=2048),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--rows", default=",".join(ROWS), help="comma-separated: " + ", ".join(ROWS))
    parser.add_argument("--out", type=Path, default=Path("results/training.json"))
    parser.add_argument("--checkpoints", type=Path, default=None)
    parser.add_argument("--optimizer", choices=("adam", "muon"), default=None)
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the time limits, for a dry run")
    options = parser.parse_args()
    results = read_json(options.out) if options.out.exists() else {}
    for name in options.rows.split(","):
        key = f"{name}-{options.optimizer}" if options.optimizer else name
        if key not in results:
            results[key] = reach(ROWS[name], options, name)
            write_json(options.out, results)
        print_row(key, results[key])


def reach(row: Row, options: argparse.Namespace, name: str) -> dict[str, object]:
    """Train one row and say how far it got."""
    images = load(row.source.format(data=options.data))
    network = build(row, images.shape)
    recipe = Recipe.for_network(network, len(images), optimizer=options.optimizer)
    folder = options.checkpoints / name if options.checkpoints else None
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    done = train_to_loss(
        network, images, row.until, recipe=recipe, folder=folder, max_seconds=row.seconds * options.scale
    )
    return {
        "goal": {"loss": row.until, "seconds": row.seconds}, "loss": done.loss, "reached": done.reached,
        "milestones": {f"{m.wanted:.0e}": round(m.seconds, 1) for m in done.milestones}, "recipe": recipe.record(),
        "network": network.settings, "images": images.name, "log": done.log,
        "history": [[round(p.seconds, 2), p.steps, p.loss, p.averaged, p.rate] for p in done.history[::20]],
        "provenance": provenance("cuda" if torch.cuda.is_available() else "cpu"),
    }  # fmt: skip


def build(row: Row, shape: tuple[int, int, int]) -> FullyConnected | UNet:
    if row.network == "unet":
        return UNet(channels=shape[0], activation=row.activation)
    return FullyConnected(shape, layers=int(row.network[2:]), width=row.width, activation=row.activation)


def print_row(name: str, result: dict[str, object]) -> None:
    print(name, json.dumps(result["milestones"]), f"loss {result['loss']:.2e}", result["log"][-1], flush=True)  # type: ignore[index]


if __name__ == "__main__":
    main()
