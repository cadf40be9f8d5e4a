"""One HTML file from an audit's folder: style, script, data and pictures are all written into it."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from recollect.records import atomically, plain
from recollect.report import figures, plots
from recollect.report import numbers as words
from recollect.report.figures import LENIENT, STRICT
from recollect.report.gallery import gallery_of, sampling_words
from recollect.report.read import Audit, disagreements, read_audit
from recollect.report.rounds import rounds_of
from recollect.report.sprites import Sheets
from recollect.report.views import START, Results, results_of, slot_of
from recollect.scoring import ACCURATE, APPROXIMATE

ASSETS = Path(__file__).parent / "assets"
SCRIPTS = ("rates.js", "gallery.js", "rounds.js", "start.js")
LEVELS = ("warning", "note", "ok")


def write_report(folder: str | Path) -> Path:
    """Read an audit's folder and write report.html into it."""
    page = render(read_audit(folder))
    path = Path(folder) / "report.html"
    with atomically(path) as file:
        file.write_text(page, encoding="utf-8")
    return path


def render(audit: Audit) -> str:
    results, sheets = results_of(audit), Sheets()
    gallery, rounds = gallery_of(audit, results, sheets), rounds_of(audit, results, sheets)
    script = _script()
    facts = {
        "title": audit.facts.get("title") or "Audit",
        "headline": audit.facts.get("headline") or "What of the training set could be read back",
        "attribution": audit.facts.get("attribution"),
        "command": audit.facts.get("command"),
        "checks": _checks(audit),
        "facts": list(_facts(audit, results)),
        "provenance": _provenance(audit),
    }
    parts = {
        "results": results,
        "methods": [(m, slot_of(m, results.methods), words.METHODS.get(m, "")) for m in results.methods],
        "rows": list(_rows(results)),
        "above": dict(_above_control(audit)) if len(results.views) == 1 else {},
        "figures": figures.figures_of(audit, results),
        "gallery": gallery,
        "sampling": sampling_words(audit, gallery) if gallery else "",
        "rounds": rounds,
        "data": _data(results, gallery, rounds),
        "sheets": sheets.all,
    }
    inlined = {
        "style": Markup((ASSETS / "report.css").read_text("utf-8")),
        "script": Markup(script),
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }
    return _environment().get_template("page.html").render(**facts, **parts, **inlined)


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(words=words, plots=plots)
    environment.globals.update(start=START, accurate=ACCURATE, approximate=APPROXIMATE, lenient=LENIENT, strict=STRICT)
    return environment


def _script() -> str:
    """The script as it stands in the page, byte for byte: the page lets only this one run, by its hash."""
    parts = "\n".join((ASSETS / name).read_text("utf-8") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}}})();\n'


def _data(results: Results, gallery: dict[str, Any] | None, rounds: dict[str, Any] | None) -> dict[str, Any]:
    """What the script reads; the per-image errors in full precision, so that it counts what Python counts."""
    data = {
        "start": START,
        "marks": [ACCURATE, APPROXIMATE],
        "errors": [_packed(record.score.mse.numpy()) for record in results.records],
        "pools": [pool.cells for pool in results.pools],
        "slots": {m: slot_of(m, results.methods) for m in results.methods},
        "gallery": gallery,
        "rounds": rounds,
    }
    return plain(data)


def _packed(errors: np.ndarray) -> str:
    """Doubles bit by bit, in half the room of their decimal digits; many audits are of 25,000 images."""
    return base64.b64encode(errors.astype("<f8").tobytes()).decode()


def _checks(audit: Audit) -> list[tuple[str, list[dict[str, str]]]]:
    """Checks by level, warnings first; what this report itself finds amiss is a warning too."""
    found = [{"name": "summary", "level": "warning", "sentence": s} for s in disagreements(audit)]
    given = [*found, *audit.table("checks")]
    levels = {c.get("level") for c in given}
    ordered = [*LEVELS, *sorted(str(level) for level in levels - set(LEVELS))]
    return [(level, [c for c in given if str(c.get("level")) == level]) for level in ordered]


def _facts(audit: Audit, results: Results) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """What was audited: a heading, a name, and a few facts each."""
    for key, title, unnamed in (
        ("model", "Model", "an autoencoder"),
        ("train", "Training images", "train"),
        ("control", "Control images", "control"),
        ("prior", "Diffusion prior", "a prior"),
    ):
        if block := audit.block(key):
            rest = words.flattened({k: v for k, v in block.items() if k != "name"})
            facts = [(name, value[:12] if name.endswith("hash") else value) for name, value in rest]
            yield title, words.plain_value(block.get("name", unnamed)), facts
    if "control" not in results.sets:
        yield "Control images", "none", [("so", "rates have nothing to be compared with")]
    tried = f"{_number(results.masks, 'mask')} × {_number(results.methods, 'method')}"
    yield "Attempts", tried, [("masks", ", ".join(results.masks)), ("methods", ", ".join(results.methods))]


def _number(things: list[str], name: str) -> str:
    return f"{len(things)} {name}{'s' if len(things) != 1 else ''}"


def _rows(results: Results) -> Iterator[dict[str, Any]]:
    """The table of all numbers: one row a record."""
    for number, view in enumerate(results.views):
        for (set_, mask, method), pool in sorted(view.pools.items(), key=lambda item: _order(results, item[0])):
            score = results.pools[pool].score
            record = results.record(view, (set_, mask, method)) if len(results.pools[pool].cells) == 1 else None
            yield {
                "view": number,
                "place": (set_, mask, method),
                "bar": results.bar(view, (set_, mask, method)),
                "accurate": words.percent(score.accurate.value),
                "approximate": words.percent(score.approximate.value),
                "psnr": words.decimals(record.score.mean_psnr) if record else "",
                "accuracy": _mean(record.mask_accuracy) if record else "",
                "iou": _mean(record.mask_iou) if record else "",
                "stops": ", ".join(f"{n} {s}" for s, n in Counter(record.stop).most_common()) if record else "",
            }


def _above_control(audit: Audit) -> Iterator[tuple[tuple[str, str, str], tuple[str, ...]]]:
    """By set, mask and method, how far the training rate is above the control rate, as the audit has it."""
    for row in audit.table("excess"):
        pair = (row.get("accurate"), row.get("approximate"))
        texts = (f"{e['value']:+.1%} [{e['low']:+.1%}, {e['high']:+.1%}]" if e else "" for e in pair)
        yield ("train", str(row.get("mask")), str(row.get("method"))), tuple(texts)


def _order(results: Results, place: tuple[str, str, str]) -> tuple[int, int, int]:
    set_, mask, method = place
    return results.rows.index(mask), results.methods.index(method), results.sets.index(set_)


def _mean(values: list[float] | None) -> str:
    numbers = [v for v in values or [] if v is not None]
    return words.decimals(sum(numbers) / len(numbers), 3) if numbers else ""


def _provenance(audit: Audit) -> list[tuple[str, list[tuple[str, str]]]]:
    blocks = {"Settings": "settings", "Model": "model", "Training images": "train", "Control images": "control"}
    blocks["Run on"] = "provenance"
    made = [(title, list(words.flattened(audit.block(name)))) for title, name in blocks.items()]
    return [(title, rows) for title, rows in made if rows]
