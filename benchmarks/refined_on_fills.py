"""Refined beside blind, iterate and the known mask, whatever erased pixels hold: the table of docs/methods.md.

    python benchmarks/refined_on_fills.py --cache CACHE --json results/refined-on-fills.json

Rules and constants of refined were chosen on other networks and planted memorizers. Networks are trained once, into
CACHE. A row is the accurate rate in percent over networks and masks, by fill; the last columns are applications of
the autoencoder to a training and to an unseen image. "below" counts cells in which refined recovers fewer images than
blind or iterate.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from recollect import Blind, FullyConnected, Images, Iterate, KnownMask, Score, Stop, mask, observe
from recollect.checkpoints import load_checkpoint
from recollect.degradation import FILLS, PAPER_MASKS, fill_erased
from recollect.methods import Method, Refined
from recollect.records import provenance, write_json
from recollect.sources import load
from recollect.training import train_to_loss

Autoencoder = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Memorizer:
    """An autoencoder that memorizes without training: softmax attention over stored images."""

    stored: Tensor
    sharpness: float

    def __call__(self, x: Tensor) -> Tensor:
        stored = self.stored.flatten(1)
        distances = torch.cdist(x.flatten(1), stored, compute_mode="donot_use_mm_for_euclid_dist").square()
        return (torch.softmax(-self.sharpness * distances, 1) @ stored).view_as(x)


@dataclass(frozen=True)
class Trained:
    """A fully connected network, trained to a loss on its images."""

    images: str
    loss: float
    gamma: float
    layers: int
    width: int
    seed: int

    def autoencoder(self, folder: Path) -> Autoencoder:
        """Take the network from its folder, or train it now."""
        file = folder / f"loss-{self.loss:.0e}.safetensors"
        if not file.exists():
            images = load(self.images)
            network = FullyConnected(images.shape, layers=self.layers, width=self.width, seed=self.seed)
            train_to_loss(network, images, self.loss, out=folder, device="cpu")
        return load_checkpoint(file).network.eval()


@dataclass(frozen=True)
class Planted:
    """A memorizer of the first two thirds of its images: the rest cannot be recovered."""

    images: str
    gamma: float
    sharpness: float

    def autoencoder(self, _folder: Path) -> Autoencoder:
        images = load(self.images)
        return Memorizer(images.pixels[: 2 * len(images) // 3], self.sharpness)


CASES: dict[str, Trained | Planted] = {
    "fc6": Trained("photos?count=40&size=24", 1e-8, gamma=0.5, layers=6, width=192, seed=7),
    "fc6-1e-6": Trained("photos?count=40&size=24", 1e-6, gamma=0.5, layers=6, width=192, seed=7),
    "fc10": Trained("photos?count=32&size=16", 1e-8, gamma=0.5, layers=10, width=256, seed=8),
    "fc20": Trained("photos?count=24&size=16", 1e-7, gamma=0.1, layers=20, width=160, seed=9),
    "sharp plant": Planted("photos?count=24&size=24", gamma=0.5, sharpness=20.0),
    "blunt plant": Planted("photos?count=24&size=24", gamma=2.0, sharpness=4.0),
}


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    torch.set_num_threads(options.threads)
    rows: list[dict[str, Any]] = []
    for name in options.cases.split(","):
        of_case = [{"case": name, **row} for row in measured(name, CASES[name], options)]
        print(f"{name}\n{table(of_case)}\n", flush=True)
        rows += of_case
    print(f"all\n{table(rows)}")
    if options.json:
        write_json(options.json, {"rows": rows, **provenance("cpu")})


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cache", type=Path, required=True, help="folder for the trained networks")
    parser.add_argument("--cases", default=",".join(CASES), help="comma-separated: " + ", ".join(CASES))
    parser.add_argument("--masks", default="half", help="comma-separated, of " + ", ".join(PAPER_MASKS))
    parser.add_argument("--fills", default=",".join(FILLS))
    parser.add_argument("--count", type=int, default=6, help="images of each set that are attacked, at the most")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    return parser.parse_args(arguments)


def measured(name: str, case: Trained | Planted, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Attack training and unseen images under every mask and fill with every method: a row each."""
    f = case.autoencoder(options.cache / name)
    for part in ("train", "unseen"):
        images = load(case.images + ("&part=control" if part == "unseen" else ""))
        images = images[images.spread(min(options.count, len(images)))]
        for mask_name in options.masks.split(","):
            for fill in options.fills.split(","):
                counts = attacked(f, images, mask_name, fill, case.gamma)
                yield {"set": part, "mask": mask_name, "fill": fill, "images": len(images), **counts}


def attacked(f: Autoencoder, images: Images, mask_name: str, fill: str, gamma: float) -> dict[str, Any]:
    """Count what each method recovers accurately, its applications of f, and the images that converge."""
    seen = observe(images, fill_erased(mask(mask_name, images.shape), images, fill))
    methods: dict[str, Method] = {
        "blind": Blind(gamma), "iterate": Iterate(), "refined": Refined(gamma), "known": KnownMask(gamma, 400)
    }  # fmt: skip
    found = {name: method(f, seen.y, seen.truth) for name, method in methods.items()}
    return {
        "accurate": {name: Score.of(r.estimate, images.pixels).accurate.count for name, r in found.items()},
        "steps": {name: int(r.steps.sum()) for name, r in found.items()},
        "converged": {name: r.stops.count(Stop.CONVERGED) for name, r in found.items()},
    }


def table(rows: list[dict[str, Any]]) -> str:
    fills = list(dict.fromkeys(row["fill"] for row in rows))
    train, unseen = of(rows, "set", "train"), of(rows, "set", "unseen")
    lines = [f"{'':<10}" + "".join(f"{name:>10}" for name in [*fills, "converged", "f, train", "f, unseen"])]
    lines += [line(method, fills, train, unseen) for method in rows[0]["accurate"]]
    found = sum(row["accurate"]["refined"] for row in unseen)
    return "\n".join([*lines, f"below blind or iterate: {below(train)} of {len(train)} cells; unseen found: {found}"])


def line(method: str, fills: list[str], train: list[dict[str, Any]], unseen: list[dict[str, Any]]) -> str:
    rates = [share(of(train, "fill", fill), "accurate", method) for fill in fills]
    cells = [f"{100 * rate:.1f}" for rate in [*rates, share(train, "converged", method)]]
    cells += [f"{share(part, 'steps', method):.0f}" for part in (train, unseen)]
    return f"{method:<10}" + "".join(f"{cell:>10}" for cell in cells)


def of(rows: list[dict[str, Any]], key: str, value: str) -> list[dict[str, Any]]:
    return [row for row in rows if row[key] == value]


def share(rows: list[dict[str, Any]], what: str, method: str) -> float:
    """Return the mean over images."""
    return sum(row[what][method] for row in rows) / max(1, sum(row["images"] for row in rows))


def below(rows: list[dict[str, Any]]) -> int:
    """Count cells in which refined recovers fewer images than blind or iterate."""
    return sum(row["accurate"]["refined"] < max(row["accurate"]["blind"], row["accurate"]["iterate"]) for row in rows)


if __name__ == "__main__":
    main()
