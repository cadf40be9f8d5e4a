"""One HTML file from an audit's folder, with style, script, data and pictures inside it."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from recollect.palette import ERROR_LEVELS
from recollect.records import ANY_MASK, SET_LABELS, atomically, plain
from recollect.report import numbers, plots, summary
from recollect.report.audit_facts import checks_by_level, methods_run, not_run, provenance, subjects
from recollect.report.costs import build_costs
from recollect.report.figures import LENIENT, STRICT, build_figures
from recollect.report.gallery import build_gallery, main_method, sampling_sentence
from recollect.report.rate_table import build_rows, excess_texts, other_image_texts
from recollect.report.read import SavedAudit, read_audit
from recollect.report.results import Results, build_results
from recollect.report.rounds import build_rounds
from recollect.report.showcase import build_showcase
from recollect.report.sprites import Sheets
from recollect.report.style import ASSETS, style_sheet
from recollect.scoring import ACCURATE, APPROXIMATE
from recollect.visible import visible

DRAWINGS = {
    "signals": " Signals are drawn as lines from 0 (bottom) to 1 (top), a colour for each channel.",
    "rows": " Rows are drawn as bars from 0 (bottom) to 1 (top), one for each column.",
}
SCRIPTS = ("rates.js", "tiles.js", "gallery.js", "rounds.js", "start.js")


def write_report(folder: str | Path) -> Path:
    """Read an audit's folder and write report.html into it.

    Args:
        folder: The folder of the audit.

    Returns:
        The path of the report.

    Examples:
        >>> import recollect
        >>> from recollect.report import write_report
        >>> _ = recollect.audit(
        ...     lambda x: x * 0, train="photos?count=4&size=8", masks="half", methods="iterate", out="audit"
        ... )
        >>> write_report("audit").name
        'report.html'
    """
    page = render(read_audit(folder))
    path = Path(folder) / "report.html"
    with atomically(path) as file:
        file.write_text(page, encoding="utf-8", errors="backslashreplace")
    return path


def render(audit: SavedAudit) -> str:
    results, sheets = build_results(audit), Sheets()
    gallery = build_gallery(audit, results, sheets)
    rounds = build_rounds(audit, results, sheets)
    script, checks = _script(), checks_by_level(audit)
    sections = {
        "facts": audit.facts,
        "kind": audit.kind,
        "drawing": DRAWINGS.get(audit.kind, ""),
        **_first_screen(audit, results, checks),
        "checks": checks,
        "methods_run": methods_run(results),
        "not_run": not_run(audit),
        "subjects": list(subjects(audit, results)),
        "results": results,
        "rows": list(build_rows(results)),
        "excess": excess_texts(audit),
        "other_images": other_image_texts(audit),
        "costs": build_costs(audit),
        "gallery": gallery,
        "sampling": sampling_sentence(gallery, audit.kind) if gallery else "",
        "rounds": rounds,
        "figures": build_figures(audit, results),
        "provenance": provenance(audit),
    }
    inlined = {
        "style": Markup(style_sheet()),
        "script": Markup(script),
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "data": _data(results, gallery, rounds),
        "sheets": sheets.all,
    }
    return _environment().get_template("page.html").render(**sections, **inlined)


def _first_screen(audit: SavedAudit, results: Results, checks: summary.Checks) -> dict[str, Any]:
    main = main_method(audit, results)
    return {
        "main_method": main,
        "badge": summary.badge(audit),
        "lead": summary.lead_sentence(audit.facts["headline"]),
        "big_numbers": summary.big_numbers(audit),
        "reason": summary.reason(audit),
        "otherwise": " ".join(audit.block("finding").get("otherwise", [])),
        "attack_sentences": summary.attack_sentences(audit, results),
        "cards": summary.cards(audit, checks),
        "run_facts": summary.run_facts(audit),
        "showcase": build_showcase(audit, results, main, results.threshold),
    }


@cache
def _environment() -> jinja2.Environment:
    """Compile the page once a process."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(numbers=numbers, plots=plots, any_mask=ANY_MASK, set_labels=SET_LABELS)
    environment.globals.update(lenient=LENIENT, strict=STRICT, accurate=ACCURATE, approximate=APPROXIMATE)
    environment.globals.update(error_levels=ERROR_LEVELS)
    return environment


def _visible(value: Any) -> Any:
    """Write control characters in names as escapes: the page may be read in a terminal too."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return value


def _script() -> str:
    """Join the scripts. The page's security policy names their hash, so that no other script runs."""
    parts = "\n".join((ASSETS / name).read_text("utf-8") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}}})();\n'


def _data(results: Results, gallery: dict[str, Any] | None, rounds: dict[str, Any] | None) -> dict[str, Any]:
    """Collect what the script reads; with errors in full precision it counts what Python counts."""
    data = {
        "openingThreshold": results.threshold,
        "marks": [ACCURATE, APPROXIMATE],
        "errors": [_packed(record.score.mse) for record in results.records],
        "pools": [pool.records for pool in results.pools.values()],
        "colours": {method: results.colour(method) for method in results.methods},
        "gallery": gallery,
        "rounds": rounds,
    }
    return plain(data)


def _packed(errors: np.ndarray) -> str:
    """Encode doubles in half the space of their decimal digits; an audit may be of 25,000 images."""
    return base64.b64encode(errors.astype("<f8").tobytes()).decode()
