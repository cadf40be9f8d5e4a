"""Can less be recovered from a U-Net that is trained for longer, and what is the cause?

    python benchmarks/shorter_training.py --out shorter-training.json
    python benchmarks/shorter_training.py --tables shorter-training.json

The same small U-Net is trained on the same images, with a learning rate that is annealed over fewer or more steps. Each
length is trained in four variants: with the recipe, with a weight decay that adds up to that of the shortest training,
with no weight decay, and without an average of the weights. Recovered images are counted at each train loss that is
passed, and at the end. Lengths are in steps, so a run does not depend on the speed of the machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from reporting import check_writable, input_errors_end_it, read_result, table

from recollect import Blind, Images, Score, UNet, load, mask, observe
from recollect.checkpoints import load_checkpoint
from recollect.degradation import all_erased
from recollect.devices.precision import choose_device
from recollect.paper.origin import origin
from recollect.records import write_json
from recollect.training import Recipe, train_to_loss

MASKS = ("block", "half", "dust")
GAMMA = 1.0  # the paper's for U-Nets
LOSSES = (1e-4, 1e-5, 1e-6, 1e-7)
VARIANTS = ("recipe", "equal total decay", "no decay", "no average")


def main(arguments: Sequence[str] | None = None) -> None:
    with input_errors_end_it():
        run(parse(arguments))


def run(options: argparse.Namespace) -> None:
    if options.tables:
        print(tables(read_result(options.tables, "rows", "widths")))
        return
    check_writable(options.out)
    torch.set_num_threads(options.threads)
    device = choose_device(options.device)
    images = load(options.images)
    results: dict[str, Any] = {
        **origin(device), "images": options.images, "widths": options.widths, "activation": options.activation,
        "until": options.until, "rows": [],
    }  # fmt: skip
    for seed in options.seeds:
        for steps in options.steps:
            for variant in options.variants:
                results["rows"] += fit_and_recover(images, variant, steps, seed, options, device)
                if options.out:
                    write_json(options.out, results)
    print(tables(results))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", default="photos?count=8&size=16&seed=7", help="as `recollect data show` takes them")
    parser.add_argument("--widths", type=int, nargs="+", default=[16, 32, 64])
    parser.add_argument("--activation", default="softplus", choices=["lrelu", "prelu", "softplus"])
    parser.add_argument(
        "--steps", type=int, nargs="+", default=[2000, 4000, 8000], help="that the rate is annealed over"
    )
    parser.add_argument("--variants", nargs="+", default=VARIANTS, choices=VARIANTS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[42, 43, 44])
    parser.add_argument("--until", type=float, default=1e-8, help="train loss at which a training ends")
    parser.add_argument("--device")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write all numbers here, as JSON")
    parser.add_argument("--tables", type=Path, help="print the tables of such a file and run nothing")
    return parser.parse_args(arguments)


def recipe_of(variant: str, network: UNet, images: int, steps: int, shortest: int, seed: int) -> Recipe:
    """Return the recipe with its rate annealed over the steps, changed as the variant says."""
    usual = Recipe.for_network(network, images, seed=seed)
    changes: dict[str, Mapping[str, Any]] = {
        "equal total decay": {"weight_decay": usual.weight_decay * shortest / steps},
        "no decay": {"weight_decay": 0.0},
        "no average": {"average_steps": None},
    }
    return replace(usual, anneal_steps=steps, **changes.get(variant, {}))


def fit_and_recover(
    images: Images, variant: str, steps: int, seed: int, options: argparse.Namespace, device: torch.device
) -> list[dict[str, Any]]:
    """Train once; count what is recovered at each loss that was passed, and from the last weights."""
    network = UNet(channels=images.image_shape[0], widths=options.widths, activation=options.activation, seed=seed)
    recipe = recipe_of(variant, network, len(images), steps, min(options.steps), seed)
    losses = [loss for loss in LOSSES if loss > options.until]
    about = {"variant": variant, "steps": steps, "seed": seed, "images": len(images)}
    about["weight_decay"] = recipe.weight_decay
    with TemporaryDirectory() as folder:
        done = train_to_loss(
            network, images, options.until, losses, recipe=recipe, out=folder, device=device, max_steps=steps
        )
        passed = [(one.wanted, one.loss, one.steps, load_checkpoint(one.path, device).network)
                  for one in done.milestones if one.path]  # fmt: skip
    last = done.history[-1].steps if done.history else 0
    stages = [*passed, (None, done.loss, last, network)]
    return [
        {**about, "wanted": wanted, "loss": loss, "taken": taken, "masks": recovered(f.eval(), images)}
        for wanted, loss, taken, f in stages
    ]


def recovered(f: torch.nn.Module, images: Images) -> dict[str, list[int]]:
    """Count images recovered accurately and approximately by blind, under each mask."""
    counts = {}
    for name in MASKS:
        seen = observe(images, mask(name, images.shape))
        score = Score.of(Blind(GAMMA, start=all_erased)(f, seen.y).estimate, images.pixels)
        counts[name] = [score.accurate.count, score.approximate.count]
    return counts


def tables(results: dict[str, Any]) -> str:
    """Make a row for each length and variant: the images recovered at each loss, over all masks and trainings."""
    rows = results["rows"]
    head = f"{results['device']}; torch {results['versions']['torch']}; {results['date']}; {results['images']}; "
    head += f"U-Net {'-'.join(map(str, results['widths']))}, {results['activation']}"
    runs: dict[tuple[int, str], dict[float | None, list[dict[str, Any]]]] = {}
    for row in rows:
        runs.setdefault((row["steps"], row["variant"]), {}).setdefault(row["wanted"], []).append(row)
    losses = [*dict.fromkeys(row["wanted"] for row in rows if row["wanted"]), None]
    titles = ["steps", "variant", "last train loss", *(f"{loss:.0e}" for loss in losses if loss), "end"]
    lines = [
        [f"{steps:,}", variant, last_losses(stages[None]), *(counts_of(stages.get(loss, [])) for loss in losses)]
        for (steps, variant), stages in sorted(runs.items())
    ]
    words = "Images recovered accurately / approximately by blind in percent, over all masks and trainings:"
    return "\n\n".join([head, words, table(titles, lines)])


def last_losses(rows: Sequence[Mapping[str, Any]]) -> str:
    losses = sorted(row["loss"] for row in rows)
    return f"{losses[0]:.1e} to {losses[-1]:.1e}"


def counts_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write both shares in percent; a dash if no training passed the loss."""
    total = sum(row["images"] * len(row["masks"]) for row in rows)
    if not total:
        return "-"
    accurate, approximate = (sum(counts[i] for row in rows for counts in row["masks"].values()) for i in (0, 1))
    return f"{100 * accurate / total:.0f} / {100 * approximate / total:.0f}"


if __name__ == "__main__":
    main()
