"""Make the tables and the chart of docs/performance.md from saved results, or measure these first.

    python -m benchmarks                       # print the tables, draw the chart
    python -m benchmarks --measure cpu         # on two quiet cores, after `recollect demo`: half an hour
    python -m benchmarks --measure gpu --data DATA

DATA is as for recovery.py.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reporting import input_errors_end_it, read_result, table

ROOT = Path(__file__).parents[1]
RESULTS, CHART = ROOT / "results", ROOT / "docs" / "figures" / "performance.svg"
RECORDS = {"cpu": ["speed-cpu", "speed-cpu-unet"], "gpu": ["speed-gpu", "speed-gpu-unet"]}
LABELS = {
    "demo": "FC-6, the demo's network, 32x32",
    "unet-small": "small U-Net (16-32-64), 32x32",
    "fc10": "FC-10, 64x64",
    "fc20": "FC-20, 64x64",
    "unet50": "U-Net, 32x32",
    "unet1000": "U-Net, 32x32, trained on 1,000 images",
}
GROWTH = ["--growth", "100", "400", "1600", "6400", "25000"]
DEMO = "demo/training/loss-1e-08.safetensors"
COMMANDS = {
    "cpu": [
        ["recovery.py", "--cases", "demo", "--threads", "2", "--checkpoint", DEMO, "--budget", "30", "--repeats", "10",
         "--turns", "40", *GROWTH, "--growth-rounds", "1", "--out", "results/speed-cpu.json"],
        ["recovery.py", "--cases", "unet-small", "--threads", "2", "--budget", "30", "--repeats", "2", "--turns", "7",
         "--growth", "--out", "results/speed-cpu-unet.json"],
        ["layer_kernels.py", "--cpu", "--checkpoint", DEMO, "--out", "results/layer-kernels-cpu.json"],
        ["saved_audit.py", "demo/audit", "--images", "1000", "--out", "results/saved-audit.json"],
    ],
    "gpu": [
        ["recovery.py", "--gpu", "--cases", "fc10", "fc20", "--data", "{data}", "--budget", "4", "--repeats", "8",
         "--turns", "5", *GROWTH, "--out", "results/speed-gpu.json"],
        ["recovery.py", "--gpu", "--cases", "unet50", "unet1000", "--data", "{data}", "--budget", "4", "--repeats", "8",
         "--turns", "5", "--growth", "--out", "results/speed-gpu-unet.json"],
        ["layer_kernels.py", "--data", "{data}", "--out", "results/layer-kernels.json"],
        ["first_recovery.py", "--gpu", "--out", "results/first-recovery.json"],
        ["refined_speed.py", "--gpu", "--data", "{data}", "--out", "results/refined-speed.json"],
    ],
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    with input_errors_end_it():
        run(parse(arguments))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--measure", choices=list(COMMANDS), help="run the benchmarks of this device first")
    parser.add_argument("--data", default="", help="folder with the data sets, for a GPU")
    parser.add_argument("--chart", type=Path, default=CHART, help="the file to draw")
    options = parser.parse_args(arguments)
    if options.measure == "gpu" and not options.data:
        parser.error("--measure gpu needs --data: networks are trained on the paper's data sets")
    return options


def run(options: argparse.Namespace) -> None:
    for command in COMMANDS.get(options.measure, []):
        script, *others = (part.format(data=options.data) for part in command)
        subprocess.run([sys.executable, str(ROOT / "benchmarks" / script), *others], cwd=ROOT, check=True)
    for device in RECORDS:
        print(f"{page_table(device)}\n")
    draw(options.chart)


def page_table(device: str) -> str:
    """Write the page's table of a device, under a line that names the machine."""
    results = [read_result(RESULTS / f"{name}.json", "cases", "growth") for name in RECORDS[device]]
    first = results[0]
    head = f"{first['device']}; torch {first['versions']['torch']}; {first['date']}"
    titles = [
        "network",
        "images",
        "loop of the paper, s",
        "network alone, s",
        "recollect, s",
        "of network alone",
        "times faster",
    ]
    rows = [row_of(name, case) for result in results for name, case in result["cases"].items()]
    return f"{head}\n\n{table(titles, rows)}"


def row_of(name: str, case: dict[str, Any]) -> list[str]:
    ours, loop, alone = (case[part]["seconds"] for part in ("recollect", "one_by_one", "network_alone"))
    over = statistics.median(case["over_network_alone"])
    return [
        LABELS[name], f"{case['images']:,}", f"{loop:,.1f}", f"{alone:.2f}", f"{ours:.2f}", f"{over:.2f}",
        f"{loop / ours:,.0f}",
    ]  # fmt: skip


def draw(chart: Path) -> None:
    """Draw the seconds of a recovery over the number of images, beside the network alone."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.2), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", xlabel="images", ylabel="seconds")
    for device, colour in (("cpu", "tab:blue"), ("gpu", "tab:orange")):
        for name, rows in read_result(RESULTS / f"speed-{device}.json", "growth")["growth"].items():
            images, seconds = ([row[part] for row in rows] for part in ("images", "seconds"))
            alone = [
                s * row["image_steps_per_second"] / row["network_alone_per_second"]
                for s, row in zip(seconds, rows, strict=True)
            ]
            label = f"{LABELS[name]}, {device.upper()}"
            axes.plot(images, seconds, "o-", color=colour, label=label)
            axes.plot(images, alone, ":", color=colour, label="the network alone")
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    chart.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": "performance"}):  # the same records give the same file
        figure.savefig(chart, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
