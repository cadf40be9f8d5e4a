"""The tables of recovery.py, for the terminal and for docs/research/performance.md."""

from __future__ import annotations

import statistics
from typing import Any

from reporting import table
from timing import CONTENDERS


def tables(results: dict[str, Any]) -> str:
    """Write all tables of a result in Markdown."""
    versions, cases = results["versions"], results["cases"]
    text = [
        f"{results['device']}, {results['threads']} threads, {results['clock']} time; torch {versions['torch']}, "
        f"CUDA {versions['cuda']}, recollect {versions['recollect']}; {results['date']}",
        table(["case", "images", "rounds at most", "stops of (c)", "image-steps", "(a) one by one", "(b) batched",
               "(c) recollect", "network alone", "same batches"],
              [times_row(name, case) for name, case in cases.items()]),
        table(["case", "(c) / network alone", "(c) / same batches", "(a) / (c)", "(b) / (c)",
               "image-steps/s of (a), (b), (c), network alone", "peak of (a), (b), (c), MiB", "(c) against (a)",
               "(c) against (b)"],
              [ratio_row(name, case) for name, case in cases.items()]),
    ]  # fmt: skip
    for name, rows in results["growth"].items():
        head = [f"{name}: images", "seconds", "ms an image", "image-steps/s", "the network alone", "working memory"]
        text.append(table(head, [growth_row(row) for row in rows]))
    return "\n\n".join([*text, *results["notes"]])


def times_row(name: str, case: dict[str, Any]) -> list[str]:
    alone = case["network_alone"]
    contenders = (case[key] for key in CONTENDERS)
    stops = ", ".join(f"{stop} {count}" for stop, count in case["stops"].items())
    return [
        name, str(case["images"]), str(case["limit"]), stops, f"{case['image_steps']:,}",
        *[show(c) for c in contenders],
        f"{alone['seconds']:.2f} s (batch {alone['best_batch']})", f"{alone['seconds_same_batches']:.2f} s",
    ]  # fmt: skip


def ratio_row(name: str, case: dict[str, Any]) -> list[str]:
    ours, alone = case["recollect"], case["network_alone"]
    speeds = (case[key]["image_steps_per_second"] for key in (*CONTENDERS, "network_alone"))
    over_alone = statistics.median(case.get("over_network_alone", [ours["seconds"] / alone["seconds"]]))
    return [
        name, f"{over_alone:.2f}", f"{ours['seconds'] / alone['seconds_same_batches']:.2f}",
        f"{case['one_by_one']['seconds'] / ours['seconds']:.1f}", f"{case['batched']['seconds'] / ours['seconds']:.1f}",
        " / ".join(f"{speed:,.0f}" for speed in speeds),
        " / ".join(f"{case[key]['peak_bytes'] / 2**20:,.0f}" for key in CONTENDERS),
        same(case["one_by_one"]["difference"]), same(case["batched"]["difference"]),
    ]  # fmt: skip


def show(contender: dict[str, Any]) -> str:
    share = contender["measured_share"]
    return f"{contender['seconds']:.2f} s" + ("" if share == 1 else f" (from {contender.get('part', f'{share:.0%}')})")


def same(difference: dict[str, Any]) -> str:
    apart = "-" if difference["largest"] is None else f"{difference['largest']:.1e}"
    recovered = difference.get("apart_and_recovered", 0)
    others = f"; {difference['apart']} apart, {recovered} of them recovered" if difference.get("apart") else ""
    return f"{apart} ({difference['settled']} of {difference['of']}{others})"


def growth_row(row: dict[str, Any]) -> list[str]:
    alone = row.get("network_alone_per_second")
    return [
        f"{row['images']:,}", f"{row['seconds']:.2f}", f"{1e3 * row['seconds'] / row['images']:.2f}",
        f"{row['image_steps_per_second']:,.0f}", f"{alone:,.0f}" if alone else "-",
        f"{row['peak_bytes'] / 2**20:.0f} MiB",
    ]  # fmt: skip
