"""Use a report as a reader does, and read what it shows."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from PIL import Image

from recollect.records import Record
from recollect.scoring import Rate, Score

SETS = {"training": "train", "unseen": "control"}
TABLE = """() => [...document.querySelectorAll('table.all:not(.costs) tbody tr')].map(row => ({
    cell: [...row.querySelectorAll('th, td')].slice(0, 3).map(cell => cell.textContent),
    count: Number(row.querySelector('[data-show=count]').textContent),
    percent: row.querySelector('[data-show=percent]').textContent,
    interval: row.querySelector('[data-show=interval]').textContent}))"""


def slide(page: Any, decibels: float) -> float:
    """Drag the slider; return the threshold that the page then shows."""
    page.eval_on_selector("#slider", "(s, v) => { s.value = v; s.dispatchEvent(new Event('input')); }", decibels)
    return threshold(page)


def threshold(page: Any) -> float:
    return float(page.get_attribute("#threshold-bar", "data-threshold"))


def choose(page: Any, **filters: str) -> None:
    """Choose options of the gallery by their text: choose(page, set="training")."""
    for name, label in filters.items():
        page.select_option(f"#filter-{name}", label=label)


def check_numbers(page: Any, records: list[Record]) -> None:
    """Compare every row of the page's table with recollect.scoring."""
    rows = page.evaluate(TABLE)
    assert len(rows) >= len(records)
    for row in rows:
        rate = _expected(records, row["cell"], threshold(page))
        low, high = rate.interval
        assert row["count"] == rate.count
        assert row["percent"] == f"{rate.value:.1%}"
        assert row["interval"] == f"{100 * low:.1f}–{100 * high:.1f}"


def pixels(page: Any, canvas: Any) -> np.ndarray:
    """Read a picture from the page."""
    page.wait_for_function("c => c.dataset.drawn !== undefined && c.dataset.drawn === c.dataset.wanted", arg=canvas)
    text = canvas.evaluate("c => c.toDataURL('image/png').split(',')[1]")
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(text))).convert("RGB"))


def _expected(records: list[Record], cell: list[str], limit: float) -> Rate:
    mask, method, set_label = cell
    same = [r for r in records if (r.cell["set"], r.cell["method"]) == (SETS[set_label], method)]
    chosen = [r for r in same if mask in ("any mask", r.cell["mask"])]
    errors = np.stack([np.nan_to_num(r.score.mse, nan=np.inf) for r in chosen])
    return Score(errors.min(0)).rate(limit)
