"""The tables of refined_on_fills: rates by fill, masks that cycle, and the gamma that an audit chooses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from reporting import table

from recollect.auditing.tuning import Tuning

Row = dict[str, Any]
METHODS = ("blind", "iterate", "refined", "known")
THRESHOLDS = ("accurate", "approximate")
FILL_LABELS = {  # what erased pixels hold, by the fills of refined_cases.py
    "zero": "black",
    "salt": "black or white pixels",
    "images": "another image",
    "mean": "mean colour",
    "dim": "dark noise",
    "mirrored": "a mirrored image",
}


def tables(results: dict[str, Any]) -> str:
    train, unseen = (of(results["rows"], "set", part) for part in ("train", "unseen"))
    parts = [networks(results["networks"])]
    if train:
        parts += [rates(train, unseen), by_case(train), limits(train, unseen), cycles(train)]
    if results["gammas"]:
        parts.append(gammas(results["gammas"]))
    return "\n\n".join(parts)


def networks(trained: dict[str, Any]) -> str:
    reached = {name: one for name, one in trained.items() if one is not None}
    rows = [[name, str(n["images"]), f"{n['loss']:.1e}", f"{n['seconds']:.0f}"] for name, n in reached.items()]
    return table(["network", "images", "train loss", "seconds"], rows)


def rates(train: list[Row], unseen: list[Row]) -> str:
    """Accurate rates in percent by fill, images that converged, and applications of the autoencoder."""
    fills = distinct(train, "fill")
    rows = []
    for method in METHODS:
        cells = [percent(of(train, "fill", fill), "accurate", method) for fill in fills]
        cells += [percent(train, "approximate", method), f"{100 * converged(train, method):.1f}"]
        cells += [f"{share(part, 'steps', method):.0f}" for part in (train, unseen)]
        rows.append([method, *cells])
    labels = [FILL_LABELS.get(fill, fill) for fill in fills]
    return table(["method", *labels, "approximate", "converged", "f, training image", "f, unseen image"], rows)


def by_case(train: list[Row]) -> str:
    """Accurate rates in percent by network, cells and images in which refined is below, and images that converged."""
    rows = []
    for case in distinct(train, "case"):
        own = of(train, "case", case)
        counted = [*(str(below(own, what)) for what in THRESHOLDS), str(sum(row["lost"] for row in own))]
        settled = [f"{100 * converged(own, method):.1f}" for method in ("blind", "refined")]
        rows.append([case, *(percent(own, "accurate", method) for method in METHODS), *counted, *settled])
    head = [*(f"cells below, {what}" for what in THRESHOLDS), "images lost", "blind converged", "refined converged"]
    return table(["network", *METHODS, *head], rows)


def limits(train: list[Row], unseen: list[Row]) -> str:
    images, lost = (sum(row[what] for row in train) for what in ("images", "lost"))
    over = sum(row["over_cost"] for row in train + unseen)
    unseen_recovered = sum(row["accurate"]["refined"] for row in unseen)
    cells = " and ".join(f"{below(train, what)} of {len(train)} cells ({what})" for what in THRESHOLDS)
    return (
        f"refined below blind or iterate: {cells}; recovered accurately by one of these and not by "
        f"refined: {lost} of {images} images; above three times blind's cost plus iterate's: {over} of "
        f"{images + sum(row['images'] for row in unseen)} images; unseen images recovered: {unseen_recovered}"
    )


def cycles(train: list[Row]) -> str:
    """How images fare under black erased pixels whose blind masks cycle."""
    rows = []
    for case in distinct(train, "case"):
        own = of(of(train, "case", case), "fill", "zero")
        images = sum(row["images"] for row in own)
        cycling = {key: sum(row["cycling"][key] for row in own) for key in own[0]["cycling"]}
        cells = [percent_of(cycling["images"], images), f"{100 * converged(own, 'refined'):.1f}"]
        cells += [percent_of(cycling[key], cycling["images"]) for key in ("converged", "blind", "refined")]
        rows.append([case, str(images), *cells])
    head = ["black fill", "images", "blind cycles", "refined converged", "of cycling: converged", "blind", "refined"]
    return table(head, rows)


def gammas(found: dict[str, Any]) -> str:
    """The accurate rate of refined in percent at the gamma that an audit chooses, beside the best of the grid.

    The gamma is chosen from the recorded trials by the present rule, and its rate is read off between the gammas of
    the grid. Where no gamma recovers anything there is nothing to choose well: such networks are not averaged.
    """
    rows, behind = [], []
    for case, one in found.items():
        grid = {tried["gamma"]: 100 * tried["accurate"] for tried in sorted(one["grid"], key=lambda row: row["gamma"])}
        if len(grid) < 2:
            continue
        chosen, best = Tuning([], [], one["tuning"]).best.gamma, max(grid, key=lambda gamma: grid[gamma])
        rate = float(np.interp(np.log(chosen), np.log(list(grid)), list(grid.values())))
        cells = [f"{chosen:g}", f"{rate:.1f}", f"{best:g}", f"{grid[best]:.1f}", "-"]
        if grid[best] > 0:
            behind.append(grid[best] - rate)
            cells[-1] = f"{behind[-1]:.1f}"
        rows.append([case, *cells, str(len(grid))])
    text = table(["network", "chosen gamma", "refined", "best gamma", "refined", "points behind", "gammas"], rows)
    if not behind:
        return text
    mean = sum(behind) / len(behind)
    return (
        f"{text}\n\nbehind the best gamma: {mean:.1f} points on average, {max(behind):.1f} at worst, on {len(behind)} "
        "networks from which any image is recovered accurately"
    )


def of(rows: list[Row], key: str, value: str) -> list[Row]:
    return [row for row in rows if row[key] == value]


def distinct(rows: Sequence[Row], key: str) -> list[str]:
    return list(dict.fromkeys(row[key] for row in rows))


def share(rows: list[Row], what: str, method: str) -> float:
    """Return the mean over images."""
    return sum(row[what][method] for row in rows) / max(1, sum(row["images"] for row in rows))


def converged(rows: list[Row], method: str) -> float:
    return sum(row["stops"][method].get("converged", 0) for row in rows) / max(1, sum(row["images"] for row in rows))


def percent(rows: list[Row], what: str, method: str) -> str:
    return f"{100 * share(rows, what, method):.1f}"


def percent_of(count: int, total: int) -> str:
    return f"{100 * count / total:.1f}" if total else "-"


def below(rows: list[Row], what: str) -> int:
    """Count cells in which refined recovers fewer images, accurately or approximately, than blind or iterate."""
    return sum(row[what]["refined"] < max(row[what]["blind"], row[what]["iterate"]) for row in rows)
