"""Time the commands on a saved audit of many images: report, verify and compare.

    recollect demo
    python benchmarks/saved_audit.py demo/audit --images 1000 --out results/saved-audit.json

The records of DIR are stretched to this many training and as many unseen images: errors are drawn from its own, and ids
are numbers. With --masks its cells are repeated under more names. Each command runs in a process of its own; its CPU
time and the wall time count.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from reporting import check_writable, input_errors_end_it, table

from recollect.auditing.manifest import write_manifest
from recollect.auditing.result import Audit
from recollect.auditing.store import write_csv
from recollect.records import (
    AUDIT_FORMAT,
    OF_SUITE,
    PER_IMAGE,
    Record,
    cpu_name,
    write_json,
    write_record,
    write_sealed,
)
from recollect.report.read import read_audit
from recollect.version import __version__

COMMANDS = {"--help": 0, "verify": 1, "report": 1, "compare": 2}  # and how many audits each takes


def main(arguments: Sequence[str] | None = None) -> None:
    with input_errors_end_it():
        run(parse(arguments))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("audit", type=Path, metavar="DIR", help="the folder of an audit")
    parser.add_argument("--images", type=int, default=1000, help="of each set")
    parser.add_argument("--masks", type=int, default=1, help="times that every cell is repeated, under another name")
    parser.add_argument("--out", type=Path, help="write all numbers here, as JSON")
    return parser.parse_args(arguments)


def run(options: argparse.Namespace) -> None:
    check_writable(options.out)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "audit"
        cells = stretch(options.audit, folder, options.images, options.masks)
        rows = {name: time_command(name, [str(folder)] * audits) for name, audits in COMMANDS.items()}
    results = {
        "date": date.today().isoformat(), "device": cpu_name(), "versions": {"recollect": __version__},
        "images": options.images, "cells": cells, "commands": rows,
    }  # fmt: skip
    print(tables(results))
    if options.out:
        write_json(options.out, results)


def stretch(source: Path, folder: Path, images: int, masks: int = 1) -> int:
    """Write an audit of more images to a folder, with everything that follows from its records."""
    saved = read_audit(source)
    records = [stretched(record, images, number) for number in range(masks) for record in saved.records]
    for record in records:
        write_record(folder / "cells", record)
    for name in ("samples.npz", "traces.npz"):
        if (source / name).exists():
            shutil.copy(source / name, folder / name)
    audit = Audit.of(replace(saved, records=records))
    write_csv(folder / "images.csv", records)
    train, control = audit.finding.train, audit.finding.control
    unseen = f" Of {control.total} images it never saw: {control.count}." if control else ""
    headline = f"The model recovers {train.count} of {train.total} training images.{unseen}"
    write_sealed(folder / "audit.json", AUDIT_FORMAT, {**saved.facts, **audit.to_dict(), "headline": headline})
    (folder / "report.html").touch()  # verify expects every file of an audit
    write_manifest(folder, [record.key for record in records])
    return len(records)


def stretched(record: Record, images: int, number: int) -> Record:
    rows = np.random.default_rng(0).integers(len(record.ids), size=images)
    columns = {name: getattr(record, name) for name in PER_IMAGE if getattr(record, name) is not None}
    drawn: dict[str, Any] = {name: [column[row] for row in rows] for name, column in columns.items()}
    drawn |= dict.fromkeys(OF_SUITE)
    drawn["ids"] = [str(number) for number in range(images)]
    cell = {**record.cell, "mask": record.cell["mask"] if number == 0 else f"{record.cell['mask']} {number}"}
    return replace(record, cell=cell, **drawn, pictures_hash=None)


def time_command(name: str, folders: list[str]) -> dict[str, Any]:
    before, began = os.times(), time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "recollect", name, *folders], stdout=subprocess.DEVNULL, check=False)
    after = os.times()
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return {"wall_seconds": time.perf_counter() - began, "cpu_seconds": cpu, "exit_code": done.returncode}


def tables(results: dict[str, Any]) -> str:
    rows = [
        [f"`recollect {name}`", f"{row['cpu_seconds']:.2f}", f"{row['wall_seconds']:.2f}"]
        for name, row in results["commands"].items()
    ]
    head = f"{results['device']}; {results['images']} + {results['images']} images, {results['cells']} cells"
    return f"{head}; {results['date']}\n\n{table(['command', 'CPU time, s', 'wall time, s'], rows)}"


if __name__ == "__main__":
    main()
