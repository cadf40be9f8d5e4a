"""Make the tables and the chart of docs/research/performance.md from saved results, or measure these first.

    python -m benchmarks                       # write the tables into the page, draw the chart
    python -m benchmarks --measure cpu         # on two quiet cores, after `recollect demo`: half an hour
    python -m benchmarks --measure gpu --data DATA
    python -m benchmarks --measure gpu --data DATA --only first_recovery refined_speed whole_audit   # ten minutes

DATA is as for recovery.py. Each benchmark writes its record as soon as it ends.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reporting import input_errors_end_it, read_result, table

from recollect.errors import InputError
from recollect.palette import PALETTE

ROOT = Path(__file__).parents[1]
RESULTS, CHART = ROOT / "results", ROOT / "docs" / "figures" / "performance.svg"
PAGE = ROOT / "docs" / "research" / "performance.md"
RECORDS = {"cpu": ["speed-cpu", "speed-cpu-unet", "speed-cpu-foreign"], "gpu": ["speed-gpu", "speed-gpu-unet"]}
LABELS = {
    "demo": "FC-6, the demo's network, 32x32",
    "unet-small": "small U-Net (16-32-64), 32x32",
    "kl-small": "small `AutoencoderKL` of diffusers (16-32), 32x32",
    "fc10": "FC-10, 64x64",
    "fc20": "FC-20, 64x64",
    "unet50": "U-Net, 32x32",
    "unet1000": "U-Net, 32x32, trained on 1,000 images",
}
GROWTH = ["--growth", "100", "400", "1600", "6400", "25000"]
SHORT_LABELS = {"fc10": "FC-10", "unet50": "U-Net"}
WHOLE_AUDITS = ("whole-audit-cpu-before", "whole-audit-cpu", "whole-audit-gpu")
VERSIONS = ("recollect", "torch")
DEMO = "demo/training/loss-1e-08.safetensors"
FC10 = "{work}/fc10.safetensors"  # trained by the first benchmark that needs it
COMMANDS = {
    "cpu": [
        ["recovery.py", "--cases", "demo", "--threads", "2", "--checkpoint", DEMO, "--budget", "30", "--repeats", "10",
         "--turns", "40", *GROWTH, "--growth-rounds", "1", "--out", "results/speed-cpu.json"],
        ["recovery.py", "--cases", "unet-small", "--threads", "2", "--budget", "30", "--repeats", "2", "--turns", "7",
         "--growth", "--out", "results/speed-cpu-unet.json"],
        ["recovery.py", "--cases", "kl-small", "--threads", "2", "--budget", "3", "--repeats", "3", "--turns", "7",
         "--growth", "--out", "results/speed-cpu-foreign.json"],
        ["layer_kernels.py", "--cpu", "--checkpoint", DEMO, "--out", "results/layer-kernels-cpu.json"],
        ["whole_audit.py", "--cases", "demo", "--threads", "2", "--checkpoint", DEMO, "--turns", "3",
         "--out", "results/whole-audit-cpu.json"],
        ["saved_audit.py", "demo/audit", "--images", "1000", "--out", "results/saved-audit.json"],
    ],
    "gpu": [
        ["recovery.py", "--gpu", "--cases", "fc10", "fc20", "--data", "{data}", "--budget", "4", "--repeats", "8",
         "--turns", "5", *GROWTH, "--out", "results/speed-gpu.json"],
        ["recovery.py", "--gpu", "--cases", "unet50", "unet1000", "--data", "{data}", "--budget", "4", "--repeats", "8",
         "--turns", "5", "--growth", "--out", "results/speed-gpu-unet.json"],
        ["layer_kernels.py", "--data", "{data}", "--out", "results/layer-kernels.json"],
        ["first_recovery.py", "--gpu", "--out", "results/first-recovery.json"],
        ["refined_speed.py", "--gpu", "--cases", "fc10", "--data", "{data}", "--checkpoint", FC10,
         "--out", "results/refined-speed.json"],
        ["whole_audit.py", "--gpu", "--cases", "fc10", "--data", "{data}", "--checkpoint", FC10,
         "--out", "results/whole-audit-gpu.json"],
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
    parser.add_argument("--only", nargs="+", metavar="NAME", help="of these benchmarks, only those of these names")
    parser.add_argument("--data", default="", help="folder with the data sets, for a GPU")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page whose tables are written")
    parser.add_argument("--chart", type=Path, default=CHART, help="the file to draw")
    options = parser.parse_args(arguments)
    if options.measure == "gpu" and not options.data:
        parser.error("--measure gpu needs --data: networks are trained on the paper's data sets")
    names = [name_of(command) for command in COMMANDS.get(options.measure, [])]
    if unknown := [name for name in options.only or () if name not in names]:
        parser.error(
            f"--only names benchmarks of --measure: there is no {unknown[0]} among {', '.join(names) or 'none'}"
        )
    return options


def run(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as work:
        for script, *others in commands_of(options, work):
            subprocess.run([sys.executable, str(ROOT / "benchmarks" / script), *others], cwd=ROOT, check=True)
    tables = page_tables()
    print("\n\n".join(tables.values()))
    write_tables(options.page, tables)
    draw(options.chart)


def commands_of(options: argparse.Namespace, work: str) -> Iterator[list[str]]:
    """Yield the commands to run; networks that several of them need are kept in the folder `work`."""
    for command in COMMANDS.get(options.measure, []):
        if not options.only or name_of(command) in options.only:
            yield [part.format(data=Path(options.data).resolve(), work=work) for part in command]


def name_of(command: Sequence[str]) -> str:
    return command[0].removesuffix(".py")


def write_tables(page: Path, tables: Mapping[str, str]) -> None:
    """Replace the first table below each heading, with the line that names its machine if there is one."""
    text = before = page.read_text(encoding="utf-8")
    for heading, written in tables.items():
        rows = r"(?:\|[^\n]+\n)+" if written.startswith("|") else r"[^\n]+\n\n(?:\|[^\n]+\n)+"
        start = text.find(f"## {heading}\n")
        end = text.find("\n## ", start + 1)
        found = re.compile(rows).search(text, start, end) if start >= 0 else None
        if not found:
            raise InputError(f"{page} has no table below the heading '{heading}'.")
        text = f"{text[: found.start()]}{written}\n{text[found.end() :]}"
    if text != before:
        page.write_text(text, encoding="utf-8")


def page_tables() -> dict[str, str]:
    """Write every table of the page, by the heading above it."""
    tables = {f"On a {device.upper()}": page_table(device) for device in RECORDS}
    tables["First recovery"] = first_recoveries()
    tables["Refined and whole audits"] = whole_audits()
    tables["Matrix multiplication on tensor cores"] = multiplication_errors()
    return tables


def first_recoveries() -> str:
    """Write the seconds of a process's first recovery."""
    cases = read_result(RESULTS / "first-recovery.json", "cases")["cases"]
    titles = {"PyTorch": "PyTorch's kernels", "fresh": "Triton's, compiled", "later": "Triton's, from disk"}
    rows = [
        [LABELS[name], *(f"{processes[kind]['seconds']['first']:.1f}" for kind in titles)]
        for name, processes in cases.items()
    ]
    return table(["network", *titles.values()], rows)


def whole_audits(results: Path = RESULTS) -> str:
    """Write the network calls and seconds of whole audits; those of a GPU once they are measured."""
    rows = []
    for name in WHOLE_AUDITS:
        path = results / f"{name}.json"
        for case in read_result(path, "cases")["cases"].values() if path.exists() else ():
            calls = sum(row["calls"] for row in case["profile"] if row["function"] == "engine/runtime.py:__call__")
            rows.append(
                [f"`results/{name}.json`", f"{calls:,}", f"{case['audit_seconds']:.1f}", f"{case['ratio']:.2f}"]
            )
    return table(["record", "network calls", "seconds", "times its recoveries alone"], rows)


def multiplication_errors() -> str:
    """Write the mean errors of a network's values with each kind of kernels."""
    cases = read_result(RESULTS / "layer-kernels.json", "cases")["cases"]
    rows = [
        [label, *(f"{cases[name]['errors'][kernels]['mean']:.1e}" for kernels in ("library", "ours"))]
        for name, label in SHORT_LABELS.items()
    ]
    return table(["network", "PyTorch's kernels", "three pairs of TF32"], rows)


def page_table(device: str) -> str:
    """Write the page's table of a device, under a line that names the machine, the versions and the days."""
    results = [read_result(RESULTS / f"{name}.json", "cases", "growth") for name in RECORDS[device]]
    facts = [(r["device"], *(f"{name} {r['versions'][name]}" for name in VERSIONS), r["date"]) for r in results]
    head = "; ".join(" and ".join(sorted(set(each))) for each in zip(*facts, strict=True))
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
    """Write the row of a case: recollect and the network alone as they ran in turns."""
    ours, alone = map(statistics.median, zip(*case["turns"], strict=True))
    loop = case["one_by_one"]["seconds"]
    over = statistics.median(case["over_network_alone"])
    return [
        LABELS[name], f"{case['images']:,}", f"{loop:,.1f}", f"{alone:.2f}", f"{ours:.2f}", f"{over:.2f}",
        f"{loop / ours:,.0f}",
    ]  # fmt: skip


def draw(chart: Path) -> None:
    """Draw the seconds of a recovery over the number of images, beside the network alone."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.4), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", xlabel="images", ylabel="seconds")
    axes.set_title("Seconds of a recovery by number of images", loc="left", fontsize=11)
    for device, colour in (("cpu", PALETTE["blue"].light), ("gpu", PALETTE["orange"].light)):
        for name, rows in read_result(RESULTS / f"speed-{device}.json", "growth")["growth"].items():
            images, seconds = ([row[part] for row in rows] for part in ("images", "seconds"))
            alone = [
                s * row["image_steps_per_second"] / row["network_alone_per_second"]
                for s, row in zip(seconds, rows, strict=True)
            ]
            label = f"{LABELS[name]}, {device.upper()}"
            axes.plot(images, seconds, "o-", color=colour, label=label)
            axes.plot(images, alone, ":", color=colour, label="the network alone")
    axes.legend(frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    chart.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": "performance"}):  # the same records give the same file
        figure.savefig(chart, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
