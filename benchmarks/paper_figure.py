"""The chart of Recollect beside the paper: approximate recovery from networks that were fitted to many images.

    python benchmarks/paper_figure.py docs/figures/paper.svg

Bars are means over three masks, dots are the single masks. The paper's pictures of its masks are lost, so each bar is
of its own three masks. The paper's rates are those in recollect/paper/experiments, ours come from results/paper/full.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.palette import PALETTE
from recollect.paper import RESULTS
from recollect.paper.experiments import moderate_fc, moderate_unet
from recollect.paper.render.draw import save_chart
from recollect.paper.scales import FULL
from recollect.paper.store import Store

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROOT = Path(__file__).parents[1]
PANELS = {
    "FC-20 fitted to 25,000 Tiny ImageNet images": ("fc20-lrelu-muon-tiny25000", moderate_fc.PAPER),
    "U-Net fitted to 1,000 CIFAR-10 images": ("unet-softplus-muon-cifar1000", moderate_unet.PAPER),
}
METHODS = ("iterate", "blind", "refined", "known")
Rates = Mapping[str, Sequence[float]]


def main(drawing: str) -> None:
    path = Path(drawing)
    save_chart(draw(ROOT / RESULTS), path.parent, path.stem)


def rates(results: Path, training: str) -> dict[str, list[float]]:
    """Read our rates in percent at the paper's gamma, by method, in the order of the masks."""
    records = [
        record
        for record in Store(results / "full").records()
        if record.cell.get("training") == training and record.cell["set"] == "train" and "gamma" not in record.cell
    ]
    by_cell = {(record.cell["method"], record.cell["mask"]): record for record in records}
    return {
        method: [100 * by_cell[method, mask].score.approximate.value for mask in FULL.table_masks] for method in METHODS
    }


def draw(results: Path) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 5.6), layout="constrained")
    for axes, (title, (training, paper)) in zip(figure.subplots(len(PANELS), 1), PANELS.items(), strict=True):
        panel(axes, title, {"paper": paper, "Recollect": rates(results, training)})
    figure.axes[0].legend(loc="upper left", frameon=False, fontsize=10)
    return figure


def panel(axes: Axes, title: str, series: Mapping[str, Rates]) -> None:
    """Draw the bars of one network."""
    for offset, (name, colour) in enumerate((("paper", "grey"), ("Recollect", "blue"))):
        for position, method in enumerate(METHODS):
            at, values = position + 0.4 * offset - 0.2, series[name].get(method)
            if values is None:
                axes.text(at, 2, "not in\nthe paper", ha="center", va="bottom", fontsize=8, color="#4b5560")
                continue
            mean = sum(values) / len(values)
            label = name if position == 0 else None
            axes.bar(at, mean, 0.36, color=PALETTE[colour].light, label=label)
            axes.plot([at] * len(values), values, "o", ms=4, mfc="white", mec="black", mew=0.8)
            axes.text(at, max(*values, mean) + 3, f"{mean:.0f}", ha="center", fontsize=9)
    axes.set_title(title, fontsize=11, loc="left")
    axes.set(ylim=(0, 115), yticks=range(0, 101, 25), ylabel="recovered, %")
    axes.set_xticks(range(len(METHODS)), METHODS, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) == 2 else sys.exit(__doc__)
