"""The chart of Recollect beside the paper: approximate recovery from networks that were fitted to many images.

    python benchmarks/paper_figure.py docs/figures/paper.svg

Bars are means over three masks, dots are the single masks. The paper's pictures of its masks are lost, so each bar is
of its own three masks. The paper's rates are those in recollect/paper/experiments, ours come from results/paper/full.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from recollect.palette import PALETTE
from recollect.paper import RESULTS
from recollect.paper.experiments import moderate_fc, moderate_unet
from recollect.paper.render.draw import save_chart
from recollect.paper.render.summary import at_the_papers_gamma, shares
from recollect.paper.scales import FULL
from recollect.paper.store import Store

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROOT = Path(__file__).parents[1]
PANELS = {
    "FC-20 fitted to 25,000 Tiny ImageNet images": moderate_fc,
    "U-Net fitted to 1,000 CIFAR-10 images": moderate_unet,
}
METHODS = ("iterate", "blind", "refined", "known")
Rates = Mapping[str, Sequence[float]]


def main(drawing: str) -> None:
    path = Path(drawing)
    save_chart(draw(Store(ROOT / RESULTS / "full")), path.parent, path.stem)


def rates(experiment: ModuleType, store: Store) -> dict[str, list[float]]:
    """Read the rates of the paper's own network, which comes first, by method; one that lacks a mask is left out."""
    cells = at_the_papers_gamma(experiment.cells(FULL))
    own = [cell for cell in cells if cell.fit == cells[0].fit]
    by_method = {method: shares(own, store, method) for method in METHODS}
    return {method: list(map(float, found)) for method, found in by_method.items() if found and "-" not in found}


def draw(store: Store) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 5.4), layout="constrained")
    for axes, (title, experiment) in zip(figure.subplots(len(PANELS), 1), PANELS.items(), strict=True):
        panel(axes, title, {"paper": experiment.PAPER, "Recollect": rates(experiment, store)})
    figure.axes[0].legend(loc="upper left", frameon=False, fontsize=10)
    return figure


def panel(axes: Axes, title: str, series: Mapping[str, Rates]) -> None:
    """Draw the bars of one network."""
    for offset, (name, colour) in enumerate((("paper", "grey"), ("Recollect", "blue"))):
        for position, method in enumerate(METHODS):
            at, values = position + 0.4 * offset - 0.2, series[name].get(method)
            if values is None:
                why = "not in\nthe paper" if name == "paper" else "not\nmeasured"
                axes.text(at + 0.16, 2, why, ha="right", va="bottom", fontsize=8, color="#4b5560")
                continue
            mean = sum(values) / len(values)
            label = name if position == 0 else None
            axes.bar(at, mean, 0.36, color=PALETTE[colour].light, label=label)
            axes.plot([at - 0.11] * len(values), values, "o", ms=4, mfc="white", mec="black", mew=0.8)
            axes.text(at - 0.04, mean + 1, f"{mean:.0f}", ha="left", va="bottom", fontsize=9)  # beside the dots
    axes.set_title(title, fontsize=11, loc="left")
    axes.set(ylim=(0, 115), yticks=range(0, 101, 25), ylabel="recovered, %")
    axes.set_xticks(range(len(METHODS)), METHODS, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) == 2 else sys.exit(__doc__)
