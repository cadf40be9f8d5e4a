"""The figure and the tables of docs/research/diffusion.md, from the records of benchmarks/diffusion.py.

    python benchmarks/diffusion_tables.py results/diffusion docs/figures/diffusion.svg

The tables of all trainings are written beside the records, as tables.md. The page has tables of the longest ones.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from reporting import input_errors_end_it, table

from recollect.errors import InputError
from recollect.palette import PALETTE
from recollect.records import read_json
from recollect.scoring import APPROXIMATE, wilson

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Record = dict[str, Any]
MASKS = ("block", "dust", "stripes", "half")
EASIEST, EASY, HARDEST = "dust", "block", "half"
SHOWN = {"loss": "loss", "secmi": "SecMI", "fixed_point": "fixed point"}  # membership attacks
BEGINS = 0.1  # the share from which recovery is drawn as present
HEADING = """\
# Diffusion models: every training

`python benchmarks/diffusion_tables.py results/diffusion docs/figures/diffusion.svg` wrote this file from the records
beside it. The page is docs/research/diffusion.md.
"""


class Training(NamedTuple):
    """One training of one part, with the record of the part."""

    record: Record
    found: Record

    @property
    def label(self) -> str:
        seed = "" if self.record["seed"] == 42 else f", seed {self.record['seed']}"
        return f"{self.record['images']:,}{seed}"

    @property
    def start(self) -> list[str]:
        """The cells that name the training in a table."""
        return [self.label, f"{self.found['epochs']:,.0f}"]

    def cell(self, attack: str, mask: str, which: str = "train") -> Record:
        cell: Record = self.found["attacks"][attack][mask][which]
        return cell


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path, help="the folder of the records")
    parser.add_argument("drawing", type=Path, help="the SVG to write")
    options = parser.parse_args(arguments)
    with input_errors_end_it():
        records = read(options.records)
        draw(records, options.drawing)
        (options.records / "tables.md").write_text(all_tables(records, read_speed(options.records)), encoding="utf-8")
        print("\n\n".join(page_tables(records).values()))


def read(folder: Path) -> list[Record]:
    """Read the records, smallest subset first."""
    records = [read_json(path) for path in folder.glob("diffusion-*.json")]
    if not records:
        raise InputError(f"There are no records in {folder}.")
    return sorted(records, key=lambda record: (record["images"], record["seed"], record["checkpoints"][-1]["steps"]))


def read_speed(folder: Path) -> Record:
    """Read the times of steps: rows by the precision of layers, at a fixed and at a falling noise level."""
    rows: Record = read_json(folder / "speed.json")["speed"]
    return rows


def trainings(records: Sequence[Record]) -> list[Training]:
    return [Training(record, found) for record in records for found in record["checkpoints"]]


def longest(records: Sequence[Record]) -> list[Training]:
    """Take the longest training of each part, which is attacked with all unseen images."""
    return [Training(record, record["checkpoints"][-1]) for record in records]


def page_tables(records: Sequence[Record]) -> dict[str, str]:
    """Make the tables of the page, by name."""
    last = longest(records)
    return {"recovery": with_unseen(last), "extraction": extraction(last), "membership": told_apart(last)}


def all_tables(records: Sequence[Record], speeds: Record) -> str:
    """Make the file of tables with a row for every training, and of those that the page only summarizes."""
    every, charted = trainings(records), at_levels(records)
    made: dict[str, Callable[[Sequence[Training]], str]] = {
        "Training images recovered by blind, in percent": recovery,
        "Training images recovered by known, in percent": known,
        "Unseen images recovered by blind": unseen,
        "Generate and filter": extraction,
        "Membership, AUC": told_apart,
    }
    parts = [f"## {title}\n\n{make(every)}\n" for title, make in made.items()]
    summarized = {
        "Attacks on the longest trainings, in percent": attacks(records),
        f"Noise levels: {charted.label} images, {charted.start[1]} epochs": noise_levels(charted),
        "A step of ADMM beside the network alone": speed(speeds),
    }
    parts += [f"## {title}\n\n{made_table}\n" for title, made_table in summarized.items()]
    return "\n".join([HEADING, *parts])


def at_levels(records: Sequence[Record]) -> Training:
    """Choose the training whose noise levels are shown."""
    return next(one for one in longest(records) if one.label == "1,000")


def recovery(rows: Sequence[Training]) -> str:
    """Show what blind recovery finds of the training images that are attacked."""
    made = [
        [*one.start, f"{one.found['steps']:,}", f"{one.found['seconds']:.0f}"]
        + [percent(one.cell("blind", mask)) for mask in MASKS]
        for one in rows
    ]
    return table(["images", "epochs", "steps", "seconds", *MASKS], made)


def known(rows: Sequence[Training]) -> str:
    """Show what is found of the training images that are attacked if the mask is known."""
    made = [[*one.start, *(percent(one.cell("known", mask)) for mask in MASKS)] for one in rows]
    return table(["images", "epochs", *MASKS], made)


def with_unseen(rows: Sequence[Training]) -> str:
    """Show what blind recovery finds of training and of unseen images, with a bound on the latter's rate."""
    made = []
    for one in rows:
        cells = [one.cell("blind", mask, "unseen") for mask in MASKS]
        recovered, total = (sum(cell[what] for cell in cells) for what in ("recovered", "total"))
        worst = max(cells, key=lambda cell: cell["recovered"])
        trained = [percent(one.cell("blind", mask)) for mask in MASKS]
        informed = percent(one.cell("known", HARDEST))
        bound = f"{100 * upper_bound(worst):.1f}%"
        made.append([*one.start, *trained, informed, f"{recovered} of {total:,}", bound])
    return table(["images", "epochs", *MASKS, f"known, {HARDEST}", "unseen", "unseen, at most"], made)


def unseen(rows: Sequence[Training]) -> str:
    """Count the unseen images that blind recovery reproduces under each mask."""
    made = [[*one.start, *(counted(one.cell("blind", mask, "unseen")) for mask in MASKS)] for one in rows]
    return table(["images", "epochs", *MASKS], made)


def extraction(rows: Sequence[Training]) -> str:
    """Set generate-and-filter beside blind recovery, with the network evaluations for each image found."""
    made = []
    for one in rows:
        found, blind = one.found["extraction"], one.cell("blind", EASIEST)
        distinct = [f"{found['distinct'][rule]:,}" for rule in ("approximate", "patches")]
        each = [evaluations(found["evaluations_each"]), evaluations(each_recovered(blind))]
        made.append([*one.start, *distinct, each[0], percent(blind), each[1]])
    head = ["images", "epochs", "copies by pixels", "by patches", "evaluations for each"]
    return table([*head, f"blind, {EASIEST}, %", "evaluations for each"], made)


def told_apart(rows: Sequence[Training]) -> str:
    """Compare AUCs of membership: by the error of recovery, and by three scores of the network."""
    made = []
    for one in rows:
        blind = [f"{one.found['attacks']['blind'][mask]['membership']['auc']:.2f}" for mask in (EASIEST, EASY, HARDEST)]
        made.append([*one.start, *blind, *(f"{chosen_auc(one.found, name):.2f}" for name in SHOWN)])
    names = [f"blind, {mask}" for mask in (EASIEST, EASY, HARDEST)]
    return table(["images", "epochs", *names, *SHOWN.values()], made)


def noise_levels(one: Training) -> str:
    """Show where the memory of one network sits; recovery is of the images on which settings are chosen."""
    made = []
    for row in one.found["noise_levels"]:
        recovered = [percent(row["blind"][mask]["train"]) for mask in (EASY, HARDEST)]
        errors = [row[kind][which] for kind in ("fixed_point_error", "denoising_loss") for which in ("train", "unseen")]
        made.append([f"{row['sigma']:g}", *recovered, *(f"{error:.1e}" for error in errors)])
    kinds = [f"{kind}, {which}" for kind in ("fixed point", "loss") for which in ("training", "unseen")]
    return table(["noise level", EASY, HARDEST, *kinds], made)


def attacks(records: Sequence[Record]) -> str:
    """List every attack on the longest trainings with its network evaluations."""
    made = []
    for one in longest(records):
        for name, own in attacks_on(one).items():
            cells = [percent(own[mask]["train"]) if mask in own else "" for mask in MASKS]
            mean = [own[mask]["train"]["evaluations_an_image"] for mask in own]
            made.append([*one.start, name, *cells, f"{sum(mean) / len(mean):,.0f}"])
    return table(["images", "epochs", "attack", *MASKS, "evaluations an image"], made)


def attacks_on(one: Training) -> dict[str, Record]:
    annealed = one.record.get("annealed", {})
    named = {f"{name}, annealed": annealed[name] for name in ("blind", "known") if name in annealed}
    others = {name: one.record[name] for name in ("iterate", "refined") if name in one.record}
    return {**one.found["attacks"], **named, **others}


def speed(speeds: Record) -> str:
    """Compare a step of ADMM with the network alone, at a fixed and at a falling noise level."""
    made = []
    for precision, rows in speeds.items():
        for fixed, falling in zip(steps_of(rows, False), steps_of(rows, True), strict=True):
            alone = f"{1000 * fixed['seconds_of_the_network']:.1f} ms"
            ratios = [f"{row['ratio']:.3f}" for row in (fixed, falling)]
            made.append([precision, str(fixed["batch"]), alone, *ratios])
    return table(["layers in", "batch", "network alone", "step / network", "annealed step / network"], made)


def steps_of(rows: Sequence[Record], annealed: bool) -> list[Record]:
    return sorted((row for row in rows if row["annealed"] is annealed), key=lambda row: row["batch"])


def changed_by_annealing(records: Sequence[Record], attack: str) -> tuple[int, int]:
    """Count training images under all masks that only the annealed attack recovers, and only the fixed level."""
    annealed = fixed = 0
    for one in longest([record for record in records if "annealed" in record]):
        for mask in MASKS:
            annealed_errors = one.record["annealed"][attack][mask]["train"]["mse"]
            for with_it, without in zip(annealed_errors, one.cell(attack, mask)["mse"], strict=True):
                annealed += with_it < APPROXIMATE <= without
                fixed += without < APPROXIMATE <= with_it
    return annealed, fixed


def chosen_auc(found: Record, name: str) -> float:
    """Read the AUC at the noise level that images left out of the score chose."""
    attack = found["membership"][name]
    return next(float(row["auc"]) for row in attack["levels"] if row["sigma"] == attack["chosen"])


def share(cell: Record) -> float:
    return float(cell["recovered"] / cell["total"])


def percent(cell: Record) -> str:
    return f"{100 * share(cell):.0f}"


def counted(cell: Record) -> str:
    return f"{cell['recovered']} of {cell['total']}"


def upper_bound(cell: Record) -> float:
    return wilson(cell["recovered"], cell["total"])[1]


def each_recovered(cell: Record) -> float | None:
    """Compute the network evaluations for each image that is recovered."""
    return cell["evaluations_an_image"] / share(cell) if cell["recovered"] else None


def evaluations(count: float | None) -> str:
    return "" if count is None else f"{count:,.0f}"


def draw(records: Sequence[Record], drawing: Path) -> None:
    """Draw the trainings in the plane of images and epochs, once for an easy and once for a hard mask.

    The plots stand one above the other, and texts are large: the figure is read on phones too.
    """
    from matplotlib import pyplot as plt

    with plt.rc_context({"svg.hashsalt": "recollect", "font.size": 11, "svg.fonttype": "none"}):
        figure, axes = plt.subplots(2, 1, figsize=(4.7, 7.6), sharex=True, layout="constrained")
        for axis, mask, erased in zip(axes, (EASY, HARDEST), ("25% erased", "50% erased"), strict=True):
            draw_mask(axis, trainings(records), mask)
            axis.set_title(f"{mask}: {erased}", fontsize=11)
            axis.set_ylabel("epochs of training")
        axes[1].set_xlabel("training images")
        figure.suptitle("Training images recovered, in percent", fontsize=12)
        drawing.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(drawing, metadata={"Date": None})
        plt.close(figure)


class Point(NamedTuple):
    """A training in the plane; a second seed is drawn beside the first."""

    images: int
    epochs: float
    share: float
    place: float  # on the axis of images

    @property
    def recovers(self) -> bool:
        return self.share >= BEGINS


def draw_mask(axis: Axes, rows: Sequence[Training], mask: str) -> None:
    points = list(points_of(rows, mask))
    for point in points:
        draw_point(axis, point)
    draw_border(axis, points)
    axis.set(xscale="log", yscale="log", xlim=(60, 19_000), ylim=(7, 6000))
    axis.set_xticks([100, 300, 1000, 3000, 10_000], ["100", "300", "1,000", "3,000", "10,000"])
    axis.set_yticks([10, 100, 1000], ["10", "100", "1,000"])
    axis.minorticks_off()
    axis.grid(alpha=0.25)


def points_of(rows: Sequence[Training], mask: str) -> Iterator[Point]:
    for one in rows:
        images, found = one.record["images"], share(one.cell("blind", mask))
        beside = 1.58 if one.record["seed"] != 42 else 1.0
        yield Point(images, one.found["epochs"], found, beside * images)


def draw_point(axis: Axes, point: Point) -> None:
    blue = PALETTE["blue"].light
    fill, text = (blue, "white") if point.recovers else ("white", PALETTE["grey"].light)
    axis.scatter(point.place, point.epochs, s=430, color=fill, edgecolors=blue, zorder=3)
    where = (point.place, point.epochs)
    axis.annotate(f"{100 * point.share:.0f}", where, color=text, fontsize=10, ha="center", va="center", zorder=4)


def draw_border(axis: Axes, points: Sequence[Point]) -> None:
    """Draw where recovery ends: between the longest training without it and the shortest with it.

    Nothing but a question mark stands above subsets that no training memorized.
    """
    orange = PALETTE["orange"].light
    borders = []
    for size in sorted({point.images for point in points}):
        own = [point for point in points if point.images == size]
        without, with_it = ([point.epochs for point in own if point.recovers is kind] for kind in (False, True))
        if with_it:
            borders.append((size, max(without), min(with_it)))
        else:
            axis.text(size, 2.2 * max(without), "?", color=orange, fontsize=16, ha="center", va="center")
    sizes, lows, highs = zip(*borders, strict=True)
    middles = [math.sqrt(low * high) for _, low, high in borders]
    axis.fill_between(sizes, lows, highs, color=orange, alpha=0.2, linewidth=0)
    axis.plot(sizes, middles, color=orange, linestyle="--", linewidth=2)
    axis.text(0.02, 0.03, "recovery ends near the dashed line", transform=axis.transAxes, color=orange, fontsize=10)


if __name__ == "__main__":
    main()
