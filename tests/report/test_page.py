"""The page as a whole, mostly in a real browser: it shows what the records say."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recollect.palette import PALETTE
from recollect.records import Record
from recollect.report import write_report
from recollect.report.page import render
from recollect.scoring import ACCURATE, APPROXIMATE
from tests.report.browsing import TABLE, check_numbers, slide, threshold
from tests.report.conftest import Pages, Show
from tests.report.making import AuditFiles, record

HOSTILE = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=2>.png"
# The contrast of an element's text with what is behind it, by WCAG; a canvas resolves every notation of colours.
CONTRAST = """part => {
    const canvas = Object.assign(document.createElement('canvas'), {width: 1, height: 1});
    const context = canvas.getContext('2d', {willReadFrequently: true});
    const rgba = colour => { context.clearRect(0, 0, 1, 1); context.fillStyle = colour; context.fillRect(0, 0, 1, 1);
        return [...context.getImageData(0, 0, 1, 1).data]; };
    const luminance = colour => rgba(colour).slice(0, 3).map(v => v / 255)
        .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const paper = e => getComputedStyle(e).backgroundColor;
    const behind = e => rgba(paper(e))[3] ? paper(e) : behind(e.parentElement);
    const element = document.querySelector(part);
    const [a, b] = [getComputedStyle(element).color, behind(element)].map(luminance).sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05); }"""
TEXTS = [".stamp", "h1", ".big .detail", ".attack", ".showcase figcaption", ".digest span", ".digest b", ".sections a"]
TEXTS += [".checks .level", ".lead", ".bar .interval", ".threshold .fixed", ".card .mask", ".plot figcaption", "footer"]
TEXTS += [
    ".showcase .recovered",
    ".showcase .other",
    ".showcase .errors td",
    ".decision li",
    ".signatures dd",
    ".audited i",
]
BARS = """() => [...document.querySelectorAll('.bar')].filter(bar => bar.offsetParent).map(bar => ({
    pool: bar.dataset.pool, width: bar.querySelector('.fill').offsetWidth / bar.querySelector('.track').offsetWidth,
    low: Number(bar.style.getPropertyValue('--low')), high: Number(bar.style.getPropertyValue('--high')),
    percent: bar.querySelector('[data-show=percent]').textContent}))"""


def test_it_is_one_file_that_names_no_other(report: Path) -> None:
    text = report.read_text()
    assert not re.search(r"""(src|href)=["'](?!#|data:,|data:image/png)""", text)
    assert not re.search(r"https?://", text)
    assert "@import" not in text
    assert "url(" not in text
    assert "innerHTML" not in text  # the script writes text, never markup


def test_it_can_be_read_without_its_script(report: Path, planted: AuditFiles, open_page: Pages) -> None:
    page = open_page(report, java_script_enabled=False)
    text = page.inner_text("body")
    for rate in [saved.score.approximate for saved in planted.records]:
        assert f"{rate.value:.1%}" in text
    warnings = [check["sentence"] for check in planted.facts["checks"] if check["level"] == "warning"]
    assert warnings
    for sentence in [*warnings, planted.facts["command"], planted.facts["headline"]]:
        assert sentence in text
    assert page.locator("#slider").is_hidden()
    assert page.locator(".showcase img").count() == 3 * 3  # pictures that need no script: two masks, one unseen image


def test_the_embedded_errors_are_exact(report: Path, planted: AuditFiles) -> None:
    embedded = re.search(r'<script type="application/json" id="data">(.*?)</script>', report.read_text(), re.DOTALL)
    assert embedded
    errors = json.loads(embedded.group(1))["errors"]
    assert [np.frombuffer(base64.b64decode(text), "<f8").tolist() for text in errors] == [
        r.mse for r in planted.records
    ]


@pytest.mark.parametrize("without", ["control", "samples", "traces", "attractors", "membership", "all"])
def test_optional_parts_may_be_absent(planted: AuditFiles, without: str) -> None:
    parts = ("control", "samples", "traces", "attractors", "membership")
    absent = parts if without == "all" else (without,)
    files = replace(planted, facts={**planted.facts, **dict.fromkeys(set(absent) & set(planted.facts))})
    if "control" in absent:
        files.records = [record for record in planted.records if record.cell["set"] == "train"]
        files.facts["summary"] = [row for row in planted.facts["summary"] if row["set"] == "train"]
    if "samples" in absent:
        files.samples = {}
    if "traces" in absent:
        files.traces = {}
    text = render(files.in_memory)
    assert ('id="gallery"' in text) == ("samples" not in absent)
    assert ('id="watch"' in text) == ("traces" not in absent)
    assert ("Are training images attractors?" in text) == ("attractors" not in absent)
    assert ("Does the recovery error tell" in text) == ("membership" not in absent)
    assert ("Without unseen images" in text) == ("control" in absent)


def test_a_bare_record_is_enough(open_page: Pages, tmp_path: Path) -> None:
    page = open_page(write_report(AuditFiles([record([1e-9, 1e-1])]).write(tmp_path)))
    assert page.inner_text("h1") == "A finding."
    check_numbers(page, [record([1e-9, 1e-1])])


def test_methods_have_the_colours_that_the_audit_recorded(planted: AuditFiles, show: Show) -> None:
    for scheme in ("light", "dark"):
        page = show(scheme)
        bars = page.eval_on_selector_all(
            ".rates .any td",
            "all => all.map(c => [c.dataset.method, getComputedStyle(c).getPropertyValue('--series')])",
        )
        assert {name: colour.strip() for name, colour in bars} == {
            name: getattr(PALETTE[facts["colour"]], scheme) for name, facts in planted.facts["methods"].items()
        }


def test_each_method_is_explained_in_its_own_words(planted: AuditFiles, show: Show) -> None:
    page = show()
    headings = page.locator(".rates thead th small").all_inner_texts()
    assert headings == [facts["summary"] for facts in planted.facts["methods"].values()]
    legend = page.inner_text(".legend.methods")
    assert all(facts["label"] in legend for facts in planted.facts["methods"].values())


def test_the_excess_over_unseen_images_is_shown(planted: AuditFiles) -> None:
    row = planted.facts["excess"][0]["approximate"]
    text = f"{row['value']:+.1%} [{row['low']:+.1%}, {row['high']:+.1%}]"
    assert text in render(planted.in_memory)
    assert "Above unseen" not in render(replace(planted, facts={**planted.facts, "excess": []}).in_memory)


def test_every_rate_and_interval_follows_the_slider(report: Path, planted: AuditFiles, open_page: Pages) -> None:
    page = open_page(report)
    assert threshold(page) == APPROXIMATE
    check_numbers(page, planted.records)
    seen = set()
    for decibels in (30, 33, 41.7, 55.5, 62, 70, 80):
        slide(page, decibels)
        check_numbers(page, planted.records)
        seen.add(str(page.evaluate(TABLE)))
    assert len(seen) > 3  # the numbers did move


def test_the_slider_covers_its_range_and_holds_the_papers_thresholds_exactly(report: Path, open_page: Pages) -> None:
    page = open_page(report)
    assert slide(page, 30) == pytest.approx(1e-3)
    assert slide(page, 80) == pytest.approx(1e-8)
    assert slide(page, 70) == ACCURATE
    assert slide(page, 33) == APPROXIMATE
    page.click("text=accurate 10⁻⁷")
    assert threshold(page) == ACCURATE
    assert page.get_attribute("[data-preset='1e-07']", "aria-pressed") == "true"
    page.fill("#threshold", "2e-6")
    assert threshold(page) == 2e-6
    page.fill("#threshold", "nonsense")
    assert threshold(page) == 2e-6


def test_bars_are_as_long_as_their_rates(report: Path, planted: AuditFiles, open_page: Pages) -> None:
    page = open_page(report)
    slide(page, 60)
    bars = page.evaluate(BARS)
    assert len(bars) == (2 + 1) * 3 * 2  # two masks and the best of them, methods, sets
    for bar in bars:
        share = float(bar["percent"].rstrip("%")) / 100
        assert bar["width"] == pytest.approx(share, abs=0.02)
        assert bar["low"] <= share + 1e-3
        assert bar["high"] >= share - 1e-3


def test_errors_that_are_not_finite_and_ties_in_rounding(tmp_path: Path, open_page: Pages) -> None:
    errors = [1e-9, *[1e-1] * 13, None, 5e-4]  # 1 of 16 is 6.25%: a tie; 5e-4 is not below 5e-4
    page = open_page(write_report(AuditFiles([record(errors)]).write(tmp_path)))
    check_numbers(page, [record(errors)])
    assert page.evaluate(TABLE)[0]["percent"] == "6.2%"


def test_everything_is_reached_by_keyboard(report: Path, open_page: Pages) -> None:
    page = open_page(report)
    page.click("summary:has-text('All numbers')")
    wanted = set(
        page.eval_on_selector_all(
            "input, select, button:not([hidden]), pre", "all => all.map(e => e.id || e.textContent.trim())"
        )
    )
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    reached, rings = set(), set()
    for _ in range(60):
        page.keyboard.press("Tab")
        name, ring = page.evaluate("""() => { const e = document.activeElement;
            return [e.id || e.textContent.trim(), getComputedStyle(e).outlineStyle]; }""")
        reached.add(name)
        rings.add(ring)
    assert wanted <= reached
    assert rings - {"none"}
    page.focus("#slider")
    before = threshold(page)
    page.keyboard.press("ArrowRight")
    assert threshold(page) < before
    page.focus("#play")
    page.keyboard.press("Space")
    assert page.inner_text("#play") == "Stop"


def test_the_summary_stays_while_the_slider_moves_and_the_page_says_so(report: Path, open_page: Pages) -> None:
    page = open_page(report)
    before = page.inner_text("#summary")
    slide(page, 75)
    assert page.inner_text("#summary") == before
    assert "The summary at the top does not" in page.inner_text("#threshold-bar")
    assert page.inner_text(".threshold-now") == "3.2e-8"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_screen_answers_everything(show: Show, scheme: str) -> None:
    page = show(scheme, height=720)
    for part in (
        ".stamp",
        "h1",
        ".big .train",
        ".big .control",
        ".attack",
        ".showcase",
        ".digest",
        ".when",
        ".sections",
    ):
        box = page.locator(part).bounding_box()
        assert box["y"] + box["height"] <= 720, part
        assert box["x"] + box["width"] <= 1280, part
    assert page.evaluate("document.documentElement.scrollWidth") == 1280
    assert page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 0 && i.alt)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_intervals_stand_out_from_their_background(show: Show, scheme: str) -> None:
    page = show(scheme)
    low = {part: page.evaluate(CONTRAST, part) for part in TEXTS}
    assert {part: ratio for part, ratio in low.items() if ratio < 4.5} == {}
    as_it_was = page.get_attribute(".stamp", "class")
    for look in ("stamp passed", "stamp failed", "stamp inconclusive", "stamp none", as_it_was):
        page.eval_on_selector(".stamp", "(stamp, look) => { stamp.className = look; }", look)
        assert page.evaluate(CONTRAST, ".stamp") >= 4.5, look
    whisker = page.eval_on_selector(".rates .whisker", "w => getComputedStyle(w).borderLeftColor")
    assert whisker == page.evaluate("getComputedStyle(document.body).color")  # ink, beside the bar and not on it
    boxes = [page.locator(f".rates {part}").first.bounding_box() for part in (".fill", ".whisker")]
    assert boxes[1]["y"] >= boxes[0]["y"] + boxes[0]["height"]


def test_the_navigation_stays_in_sight_and_marks_the_section(report: Path, open_page: Pages) -> None:
    page = open_page(report)
    assert page.inner_text(".sections [aria-current]") == "Summary"
    targets = page.eval_on_selector_all(".sections a", "all => all.map(a => document.querySelector(a.hash) !== null)")
    assert all(targets)
    page.click(".sections a[href='#scope']")
    page.wait_for_function("() => document.querySelector('.sections [aria-current]').hash === '#scope'")
    assert page.locator(".sections").bounding_box()["y"] == 0


def test_one_plot_of_a_figure_is_large_and_the_others_are_folded(report: Path, open_page: Pages) -> None:
    page = open_page(report)
    figures = page.locator(".figure")
    assert figures.count() == 5
    assert figures.first.locator("> .plot figcaption").inner_text() == "any mask"
    assert page.locator(".figure details .plot").count() == 2 + 2 + 2 + 1
    assert not page.locator(".figure details .plot").first.is_visible()
    figures.first.locator("summary").click()
    assert page.locator(".figure details .plot").first.is_visible()


def test_without_pictures_the_first_screen_shows_rates_and_says_why(
    planted: AuditFiles, open_page: Pages, tmp_path: Path
) -> None:
    facts = {**planted.facts, "settings": {**planted.facts["settings"], "pictures": False}}
    page = open_page(write_report(AuditFiles(planted.records, facts=facts).write(tmp_path)))
    assert page.locator("img, canvas, .sheet").count() == 0
    assert "ran without pictures" in page.inner_text(".by-mask figcaption")
    rates = page.locator(".by-mask tbody b").all_inner_texts()
    blind = [r for r in planted.records if r.cell["method"] == "blind"]
    assert sorted(rates) == sorted(f"{r.score.approximate.value:.1%}" for r in blind)
    slide(page, 75)
    assert page.locator(".by-mask tbody b").all_inner_texts() == rates  # the summary does not follow the slider


def test_it_prints_in_few_light_pages(report: Path, open_page: Pages) -> None:
    page = open_page(report, color_scheme="dark")
    page.wait_for_function("() => [...document.querySelectorAll('.card canvas')].every(c => c.dataset.drawn)")
    for paper in ("A4", "Letter"):
        content = page.pdf(format=paper)
        assert 3 <= len(re.findall(rb"/Type /Page\b", content)) <= 6, paper
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": 700, "height": 1000})  # as wide as the paper without its margins
    assert page.evaluate("document.documentElement.scrollWidth") == 700
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for part in (".sections", "#slider", ".filters", "#watch", "#copy", "#more"):
        assert page.locator(part).first.is_hidden(), part
    for part in (".stamp", ".big", ".showcase", ".rates", ".signatures"):
        assert page.locator(part).first.is_visible(), part


def test_a_phone_shows_it_without_scrolling_sideways(report: Path, open_page: Pages) -> None:
    page = open_page(report, viewport={"width": 390, "height": 844})
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        paper, ink = page.evaluate(
            "(() => { const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]; })()"
        )
        brightness = [sum(int(v) for v in c[4:-1].split(",")) for c in (paper, ink)]
        assert (brightness[0] > brightness[1]) == (scheme == "light"), scheme


def test_the_command_is_copied(report: Path, planted: AuditFiles, open_page: Pages) -> None:
    page = open_page(report)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("#copy")
    page.wait_for_function("() => document.querySelector('#copy').textContent === 'Copied'")
    assert page.evaluate("navigator.clipboard.readText()") == planted.facts["command"]


def test_names_from_users_stay_text(tmp_path: Path, planted: AuditFiles, open_page: Pages) -> None:
    def hostile(record: Record) -> Record:
        cell = {**record.cell, "mask": record.cell["mask"].replace("block", HOSTILE)}
        return replace(record, cell=cell, ids=[name + HOSTILE for name in record.ids], stop=[HOSTILE] * len(record.ids))

    samples = {key.replace("/block", f"/{HOSTILE}"): value for key, value in planted.samples.items()}
    facts: dict[str, Any] = dict.fromkeys(("title", "headline", "command", "trace_mask"), HOSTILE)
    facts |= {"checks": [{"name": HOSTILE, "level": "warning", "sentence": HOSTILE}], "model": {HOSTILE: HOSTILE}}
    facts |= {"train": {"name": HOSTILE}, "settings": {HOSTILE: [HOSTILE]}, "provenance": {"device": HOSTILE}}
    facts |= {"methods": {"blind": {"summary": HOSTILE, "label": HOSTILE, "colour": HOSTILE}}}
    facts |= {"membership": [{**row, "mask": HOSTILE} for row in planted.facts["membership"][:1]]}
    facts |= {"attractors": [{**row, "id": HOSTILE} for row in planted.facts["attractors"]]}
    files = AuditFiles([hostile(record) for record in planted.records], samples, planted.traces, facts)
    path = write_report(files.write(tmp_path))
    assert "<script>window" not in path.read_text()
    assert "<img src=x" not in path.read_text()
    page = open_page(path)
    page.wait_for_selector(".card canvas[data-drawn]")
    assert page.evaluate("window.pwned") is None
    assert page.locator("img:not([src^='data:image/png'])").count() == 0
    assert page.inner_text("h1") == HOSTILE
    assert page.locator(".card .name").first.get_attribute("title") == f"0{HOSTILE}"
    assert page.locator("script:not([type])").count() == 1


def test_a_script_that_slipped_in_would_not_run(report: Path, tmp_path: Path, browser: Any) -> None:
    text = report.read_text().replace("<footer>", "<script>window.pwned = 1</script><footer>")
    changed = tmp_path / "changed.html"
    changed.write_text(text)
    page = browser.new_page()
    page.goto(changed.as_uri())
    assert page.evaluate("window.pwned") is None
    assert threshold(page) == APPROXIMATE
    page.close()
