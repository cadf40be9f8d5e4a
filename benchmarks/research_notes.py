"""Write the tables beside the records, and the charts of the pages about them. Nothing is measured.

    python benchmarks/research_notes.py

Tables go to results/NAME.md, charts to docs/figures.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import canaries
import canary_coverage
import last_layer
import prior
import refined_tables
from large_sets import milliseconds
from reporting import table

from recollect.methods import METHODS
from recollect.palette import PALETTE
from recollect.paper.render.draw import save_chart
from recollect.records import read_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).parents[1]
TITLES = {
    "training-cpu": "The demo's network, 2 CPU cores",
    "training-gpu": "FC-10 on 600 Tiny ImageNet images, one H200",
}
LARGE_SETS = {"large-sets-cpu": "one CPU core, iterate", "large-sets-gpu": "one H200, blind"}
COLOURS = ("blue", "orange", "grey")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="folder for the tables")
    parser.add_argument("--figures", type=Path, default=ROOT / "docs" / "figures", help="folder for the charts")
    options = parser.parse_args(arguments)
    for name, text in pages().items():
        (options.results / f"{name}.md").write_text(text)
    for name, draw in CHARTS.items():
        save_chart(draw(), options.figures, name)


def pages() -> dict[str, str]:
    """Write each page of tables from its records."""
    return {
        "training": page("Seconds to each train loss, with steps in brackets", *map(training_part, TITLES)),
        "refined-on-fills": page(
            "Refined on networks that it was not developed on", refined_tables.tables(record("refined-on-fills"))
        ),
        "refined-on-fills-cpu": page(
            "Version 5 of refined on three of these networks", refined_tables.tables(record("refined-on-fills-cpu"))
        ),
        "prior-32": page("The bundled prior, 32 x 32", prior.psnr_table(record("prior-32"))),
        "prior-64": page("A prior for 64 x 64", prior.psnr_table(record("prior-64"))),
        "canaries": page("Canaries in trained networks", canaries.tables(record("canaries"))),
        "canary-coverage": page("How often the bound holds", canary_coverage.tables(record("canary-coverage"))),
        "last-layer": page("The last layer solved or trained", last_layer.tables(record("last-layer"))),
    }


def page(title: str, *parts: str) -> str:
    """Put tables below a title."""
    return "\n\n".join([f"# {title}", *parts]) + "\n"


def record(name: str) -> dict[str, Any]:
    """Read a record of results/."""
    content: dict[str, Any] = read_json(ROOT / "results" / f"{name}.json")
    return content


def training_part(name: str) -> str:
    """Make the table of one run of benchmarks/training.py."""
    comparison = record(name)
    rows = [
        [f"{milestone:.0e}", *(cell(c, milestone) for c in comparison["contenders"])]
        for milestone in comparison["milestones"]
    ]
    return f"## {TITLES[name]}\n\n" + table(["train loss", *(c["name"] for c in comparison["contenders"])], rows)


def cell(contender: dict[str, Any], milestone: float) -> str:
    """Say when a contender reached a loss."""
    key = repr(milestone)
    if key not in contender["reached"]:
        return f"not in {contender['seconds']:.0f} s"
    return f"{contender['reached'][key]:.1f} s ({contender['steps_to'][key]})"


def draw_training() -> Figure:
    """Draw the time to each loss; a loss that was not reached is named."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 5.2), layout="constrained")
    for axes, (name, title) in zip(figure.subplots(len(TITLES), 1), TITLES.items(), strict=True):
        comparison = record(name)
        losses = comparison["milestones"]
        for colour, contender in zip(COLOURS, comparison["contenders"], strict=True):
            reached = [loss for loss in losses if repr(loss) in contender["reached"]]
            seconds = [contender["reached"][repr(loss)] for loss in reached]
            missing = "" if len(reached) == len(losses) else f" (stopped at a loss of {contender['loss']:.0e})"
            label = contender["name"].replace("recollect", "Recollect").replace("plain Adam", "plain Adam at") + missing
            axes.plot(range(len(reached)), seconds, "o-", color=PALETTE[colour].light, label=label)
        axes.set_title(title, fontsize=11, loc="left")
        axes.set_xticks(range(len(losses)), [f"{loss:.0e}" for loss in losses])
        axes.set(ylabel="seconds", xlabel="train loss", ylim=(0, None), xlim=(-0.2, len(losses) - 0.8))
        axes.legend(frameon=False, fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def draw_refined() -> Figure:
    """Draw the accurate rate of each method by fill."""
    from matplotlib.figure import Figure

    rows = refined_tables.of(record("refined-on-fills")["rows"], "set", "train")
    fills = refined_tables.distinct(rows, "fill")
    figure = Figure(figsize=(5, 3.4), layout="constrained")
    axes = figure.subplots()
    for number, method in enumerate(refined_tables.METHODS):
        shares = [
            float(refined_tables.percent(refined_tables.of(rows, "fill", name), "accurate", method)) for name in fills
        ]
        positions = [position + 0.2 * number - 0.3 for position in range(len(fills))]
        colour = PALETTE[METHODS[method].colour or "grey"].light
        axes.bar(positions, shares, 0.18, color=colour, label=method)
    axes.set_title("Accurate recovery by what erased pixels hold", fontsize=11, loc="left")
    labels = [refined_tables.FILL_LABELS.get(fill, fill) for fill in fills]
    axes.set_xticks(range(len(fills)), [textwrap.fill(label, 9) for label in labels], fontsize=9)
    axes.set(ylabel="recovered, %", xlabel="erased pixels hold", ylim=(0, 75))
    axes.legend(frameon=False, fontsize=9, ncols=4, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


STEPS = {
    "training image": ("grey", "x, an image the model\nwas trained on"),
    "damage": ("orange", "erases pixels"),
    "damaged image": ("grey", "y, all that the\nattack is given"),
    "attack": ("blue", "uses the model f,\nknows no mask"),
    "result": ("grey", "an estimate of x"),
    "score": ("green", "error below the\nthreshold: recovered"),
}
POSITIONS = ((0, 1), (1, 1), (2, 1), (2, 0), (1, 0), (0, 0))  # two rows, so that a phone can show them
ARROWS = ((0.52, 1, ">"), (1.46, 1, ">"), (2, 0.34, "v"), (1.55, 0, "<"), (0.42, 0, "<"))
SIGNS = {">": "\u2192", "<": "\u2190", "v": "\u2193"}


def draw_pipeline() -> Figure:
    """Draw the steps from an image to its score."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3), layout="constrained")
    axes = figure.subplots()
    for (x, y), (name, (colour, text)) in zip(POSITIONS, STEPS.items(), strict=True):
        box = {"boxstyle": "round,pad=0.4", "facecolor": PALETTE[colour].light, "edgecolor": "none"}
        axes.text(x, y, name, ha="center", va="center", color="white", fontsize=10, fontweight="bold", bbox=box)
        axes.text(x, y - 0.17, text, ha="center", va="top", fontsize=9)
    for along, height, sign in ARROWS:
        axes.text(along, height, SIGNS[sign], ha="center", va="center", fontsize=15)
    axes.set_title("Unseen images take exactly the same path", fontsize=11)
    axes.set(xlim=(-0.55, 2.55), ylim=(-0.6, 1.25))
    axes.axis("off")
    return figure


def draw_large_sets() -> Figure:
    """Draw how long an audit takes and how much memory it needs, by the number of images."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 4.6), layout="constrained")
    panels = figure.subplots(2, 1, sharex=True)
    for colour, (name, label) in zip(COLOURS, LARGE_SETS.items(), strict=False):
        rows = record(name)["rows"]
        images = [row["images"] for row in rows]
        for axes, values in zip(panels, large_set_values(rows), strict=True):
            axes.plot(images, values, "o-", color=PALETTE[colour].light, label=label)
    for axes, title in zip(panels, ("Milliseconds an image", "Peak memory of the process, GB"), strict=True):
        axes.set_title(title, fontsize=11, loc="left")
        axes.set(xscale="log", ylim=(0, None))
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False, fontsize=9)
    panels[1].set_xlabel("training images")
    return figure


def large_set_values(rows: Sequence[dict[str, Any]]) -> tuple[list[float], list[float]]:
    """Return the milliseconds an image and the peak of memory in GB."""
    return [milliseconds(row) for row in rows], [row["peak_bytes"] / 1e9 for row in rows]


def draw_monitor() -> Figure:
    """Draw what the monitor and full audits see along a training."""
    from matplotlib.figure import Figure

    checkpoints = record("monitor")["checkpoints"]
    epochs = [checkpoint["epoch"] for checkpoint in checkpoints]
    seen = {
        "full audit": [checkpoint["audit"]["train"] for checkpoint in checkpoints],
        "monitor": [checkpoint["monitor"] for checkpoint in checkpoints],
        "full audit, unseen images": [checkpoint["audit"]["control"] for checkpoint in checkpoints],
    }
    figure = Figure(figsize=(5, 2.8), layout="constrained")
    axes = figure.subplots()
    for colour, marker, (label, rates), size in zip(COLOURS, "os^", seen.items(), (9, 4, 6), strict=True):
        shares = [100 * rate["count"] / rate["total"] for rate in rates]
        axes.plot(epochs, shares, f"{marker}-", color=PALETTE[colour].light, label=label, ms=size)
    axes.set_title("Training images recovered, by epoch", fontsize=11, loc="left")
    axes.set(ylabel="recovered, %", xlabel="epochs", ylim=(-4, 104))
    axes.legend(frameon=False, fontsize=9, loc="center right")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


CHARTS: dict[str, Callable[[], Figure]] = {
    "training": draw_training,
    "refined": draw_refined,
    "pipeline": draw_pipeline,
    "large-sets": draw_large_sets,
    "monitor": draw_monitor,
}

if __name__ == "__main__":
    main()
