"""The page in a real browser: what it shows is what the records say."""

from __future__ import annotations

import base64
import io
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from recollect.records import Record
from recollect.report import write_report
from recollect.report.plots import BOTTOM, TOP
from recollect.scoring import ACCURATE, APPROXIMATE, Rate, Score
from tests.report.conftest import HOSTILE, Open
from tests.report.making import Making

TABLE = """() => [...document.querySelectorAll('table.all tbody:not([hidden]) tr')].map(row => ({
    place: [...row.querySelectorAll('th, td')].slice(0, 3).map(cell => cell.textContent),
    count: Number(row.querySelector('[data-show=count]').textContent),
    percent: row.querySelector('[data-show=percent]').textContent,
    interval: row.querySelector('[data-show=interval]').textContent}))"""
BARS = """() => [...document.querySelectorAll('.bar')].filter(bar => bar.offsetParent).map(bar => ({
    pool: bar.dataset.pool, width: bar.querySelector('.fill').offsetWidth / bar.querySelector('.track').offsetWidth,
    low: Number(bar.style.getPropertyValue('--low')), high: Number(bar.style.getPropertyValue('--high')),
    percent: bar.querySelector('[data-show=percent]').textContent}))"""


def slide(page: Any, decibels: float) -> float:
    """Drag the slider; the threshold that the page then stands at."""
    page.eval_on_selector("#slider", "(s, v) => { s.value = v; s.dispatchEvent(new Event('input')); }", decibels)
    return threshold(page)


def threshold(page: Any) -> float:
    return float(page.get_attribute("#threshold-bar", "data-threshold"))


def expected(records: list[Record], place: list[str], limit: float) -> Rate:
    """The rate by recollect.scoring; of `any mask` by the smallest error of each image."""
    mask, method, set_ = place
    same = [r for r in records if (r.cell["set"], r.cell["method"]) == (set_, method)]
    chosen = [r for r in same if mask in ("any mask", r.cell["mask"])]
    errors = torch.stack([r.score.mse.nan_to_num(nan=torch.inf) for r in chosen])
    return Score(errors.amin(0)).rate(limit)


def check_numbers(page: Any, records: list[Record]) -> None:
    rows = page.evaluate(TABLE)
    assert len(rows) >= len(records)
    for row in rows:
        rate = expected(records, row["place"], threshold(page))
        low, high = rate.interval
        assert row["count"] == rate.count
        assert row["percent"] == f"{rate.value:.1%}"
        assert row["interval"] == f"{100 * low:.1f}–{100 * high:.1f}"


def test_every_rate_and_interval_follows_the_slider(report: Path, planted: Making, open_page: Open) -> None:
    page = open_page(report)
    assert threshold(page) == APPROXIMATE
    check_numbers(page, planted.records)
    seen = set()
    for decibels in (30, 33, 41.7, 55.5, 62, 70, 80):
        slide(page, decibels)
        check_numbers(page, planted.records)
        seen.add(str(page.evaluate(TABLE)))
    assert len(seen) > 3  # the numbers did move


def test_the_slider_covers_its_range_and_holds_the_papers_thresholds_exactly(report: Path, open_page: Open) -> None:
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


def test_bars_are_as_long_as_their_rates(report: Path, planted: Making, open_page: Open) -> None:
    page = open_page(report)
    slide(page, 60)
    bars = page.evaluate(BARS)
    assert len(bars) == (2 + 1) * 3 * 2  # two masks and the best of them, methods, sets
    for bar in bars:
        share = float(bar["percent"].rstrip("%")) / 100
        assert bar["width"] == pytest.approx(share, abs=0.02)
        assert bar["low"] <= share + 1e-3
        assert bar["high"] >= share - 1e-3


def test_numbers_without_finite_value_and_ties_in_rounding(tmp_path: Path, open_page: Open) -> None:
    errors: list[Any] = [1e-9, *[1e-1] * 13, None, 5e-4]  # 1 of 16 is 6.25%: a tie; 5e-4 is not below 5e-4
    record = Record(
        {"set": "train", "mask": "m", "method": "blind"}, {}, [str(i) for i in range(16)], errors, [], [], []
    )
    page = open_page(write_report(Making([record]).write(tmp_path)))
    check_numbers(page, [record])
    assert page.evaluate(TABLE)[0]["percent"] == "6.2%"


def test_checkpoints_are_chosen_and_their_curve_follows_the_threshold(tmp_path: Path, open_page: Open) -> None:
    draw = np.random.default_rng(1)
    errors = {loss: (loss * 10 ** draw.uniform(0, 5, 40)).tolist() for loss in (1e-4, 1e-6, 1e-8)}
    ids, cell = [str(i) for i in range(40)], {"set": "train", "mask": "block", "method": "blind"}
    made = Making([Record({**cell, "milestone": k}, {}, ids, e, [], [], []) for k, e in errors.items()])
    page = open_page(write_report(made.write(tmp_path)))
    for number, loss in enumerate((1e-8, 1e-6, 1e-4)):
        page.select_option("#view", str(number))
        check_numbers(page, [r for r in made.records if r.cell["milestone"] == loss])
    for decibels in (33, 52, 70):
        limit = slide(page, decibels)
        heights = page.eval_on_selector_all("[data-pools] use", "all => all.map(u => Number(u.getAttribute('y')))")
        shares = [(BOTTOM - y) / (BOTTOM - TOP) for y in heights]
        assert shares == pytest.approx([float(np.mean(np.array(e) < limit)) for e in errors.values()])


def test_filters_filter(report: Path, planted: Making, open_page: Open) -> None:
    page = open_page(report)
    total = 2 * 8 * 2

    def shown() -> str:
        return str(page.inner_text("#shown"))

    assert shown() == f"24 of {total} picture rows"
    page.click("#more")
    assert shown() == f"{total} of {total} picture rows"
    page.select_option("#filter-set", "control")
    assert shown() == "16 of 16 picture rows"
    assert set(page.locator(".badge").all_inner_texts()) == {"control"}
    page.select_option("#filter-mask", label="dust")
    assert set(page.locator(".card .mask").all_inner_texts()) == {"dust"}
    page.select_option("#filter-method", label="iterate")
    assert set(page.locator(".card .method figcaption").all_inner_texts()) == {"iterate"}
    assert shown() == "8 of 8 picture rows"


def test_recovered_and_order_follow_the_threshold(report: Path, planted: Making, open_page: Open) -> None:
    page = open_page(report)
    for name, value in {"#filter-set": "train", "#filter-mask": "0", "#filter-method": "0"}.items():
        page.select_option(name, value)
    record = next(r for r in planted.records if tuple(r.cell.values()) == ("train", "block", "blind"))
    errors = sorted(record.mse[i] for i in planted.samples["index/train"])
    page.select_option("#sort", "up")
    page.select_option("#filter-recovered", "yes")
    for decibels in (35, 55):
        limit = slide(page, decibels)
        wanted = [e for e in errors if e < limit]
        page.wait_for_function("n => document.querySelectorAll('.card').length === n", arg=len(wanted))
        drawn = [float(e) for e in page.eval_on_selector_all(".outcome.yes", "all => all.map(o => o.dataset.error)")]
        assert drawn == wanted
    page.select_option("#filter-recovered", "no")
    page.select_option("#sort", "down")
    drawn = [float(e) for e in page.eval_on_selector_all(".outcome", "all => all.map(o => o.dataset.error)")]
    assert drawn == [e for e in reversed(errors) if e >= limit]
    slide(page, 80)
    page.select_option("#filter-recovered", "yes")
    page.fill("#threshold", "1e-12")
    page.wait_for_function("() => document.querySelector('#shown').textContent.startsWith('No image')")


def pixels(page: Any, canvas: Any) -> np.ndarray:
    page.wait_for_function("c => c.dataset.drawn !== undefined && c.dataset.drawn === c.dataset.wanted", arg=canvas)
    text = canvas.evaluate("c => c.toDataURL('image/png').split(',')[1]")
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(text))).convert("RGB"))


def test_pictures_are_the_audits_pixel_by_pixel(report: Path, planted: Making, open_page: Open) -> None:
    page = open_page(report)
    for name, value in {"#filter-set": "train", "#filter-mask": "1", "#filter-method": "0"}.items():
        page.select_option(name, value)
    cards = page.locator(".card").element_handles()
    assert len(cards) == 8
    for place in (0, 5):
        original, degraded, estimate, error, found = cards[place].query_selector_all("canvas")
        assert (pixels(page, original) == planted.samples["original/train"][place]).all()
        assert (pixels(page, degraded) == planted.samples["degraded/train/dust"][place]).all()
        assert (pixels(page, estimate) == planted.samples["estimate/train/dust/blind"][place]).all()
        assert (pixels(page, found)[..., 0] == planted.samples["mask/train/dust/blind"][place]).all()
        levels = planted.samples["error/train/dust/blind"][place].astype(int)
        brightness = pixels(page, error).astype(int).sum(-1)
        assert (np.diff(brightness.ravel()[levels.ravel().argsort()]) >= -8).all()  # lighter is a larger error
        size = original.bounding_box()
        assert size["width"] == size["height"] == 96  # six times its 16 pixels


def test_the_rounds_are_those_of_the_trace(report: Path, planted: Making, open_page: Open) -> None:
    page = open_page(report)
    page.select_option("#watch-image", "1")
    frames, masks = planted.traces["estimate/blind/1"], planted.traces["mask/blind/1"]
    for number in (1, 2, len(frames)):
        page.fill("#round", str(number))
        assert page.inner_text("#round-number") == str(number)
        estimate, mask = page.locator("#stage .method").first.locator("canvas").element_handles()
        assert (pixels(page, estimate) == frames[number - 1]).all()
        assert (pixels(page, mask)[..., 0] == masks[number - 1]).all()
    page.fill("#round", "0")
    assert (pixels(page, estimate) == planted.traces["degraded/1"]).all()
    page.click("#play")
    page.wait_for_function("() => document.querySelector('#round').value > 0")
    page.wait_for_function("() => document.querySelector('#play').textContent === 'Play'")
    assert page.input_value("#round") == page.get_attribute("#round", "max")


def test_everything_is_reached_by_keyboard(report: Path, open_page: Open) -> None:
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_it_without_scrolling_sideways(report: Path, open_page: Open, scheme: str) -> None:
    page = open_page(report, viewport={"width": 390, "height": 844}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    paper, ink = page.evaluate(
        "(() => { const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]; })()"
    )
    brightness = [sum(int(v) for v in c[4:-1].split(",")) for c in (paper, ink)]
    assert (brightness[0] > brightness[1]) == (scheme == "light")


def test_the_command_is_copied(report: Path, planted: Making, open_page: Open) -> None:
    page = open_page(report)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("#copy")
    page.wait_for_function("() => document.querySelector('#copy').textContent === 'Copied'")
    assert page.evaluate("navigator.clipboard.readText()") == planted.facts["command"]


def test_names_from_users_stay_text(tmp_path: Path, planted: Making, open_page: Open) -> None:
    def hostile(record: Record) -> Record:
        cell = {**record.cell, "mask": HOSTILE if record.cell["mask"] == "block" else record.cell["mask"]}
        return Record(
            **{
                **vars(record),
                "cell": cell,
                "ids": [f"{i}{HOSTILE}" for i in record.ids],
                "stop": [HOSTILE] * len(record.ids),
            }
        )

    named = {key.replace("/block", f"/{HOSTILE}"): value for key, value in planted.samples.items()}
    facts = dict.fromkeys(("title", "headline", "command", "sampling", "trace_mask"), HOSTILE)
    facts |= {"checks": [{"name": HOSTILE, "level": "warning", "sentence": HOSTILE}], "model": {HOSTILE: HOSTILE}}
    facts |= {"train": {"name": HOSTILE}, "settings": {HOSTILE: [HOSTILE]}, "provenance": {"device": HOSTILE}}
    facts |= {"membership": [{**row, "mask": HOSTILE} for row in planted.facts["membership"][:1]]}
    facts |= {"attractors": [{**row, "id": HOSTILE} for row in planted.facts["attractors"]]}
    path = write_report(Making([hostile(r) for r in planted.records], named, planted.traces, facts).write(tmp_path))
    assert "<script>window" not in path.read_text()
    assert "<img" not in path.read_text()
    page = open_page(path)
    page.wait_for_selector(".card canvas[data-drawn]")
    assert page.evaluate("window.pwned") is None
    assert page.locator("img").count() == 0
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


def thousand() -> Making:
    """1,000 images a set, all with pictures that no compression makes smaller."""
    draw = np.random.default_rng(5)
    made, ids = Making(facts={"title": "large"}), [f"image-{i:04}" for i in range(1000)]
    for name in ("train", "control"):
        noise = draw.integers(0, 256, (1000, 32, 32, 3), np.uint8)
        made.samples |= {f"original/{name}": noise, f"index/{name}": np.arange(1000)}
        for mask in ("block", "half", "scatter", "frame", "stripes", "dust"):
            made.samples[f"degraded/{name}/{mask}"] = noise
            for method in ("blind", "iterate", "known"):
                errors = (10 ** -draw.uniform(1, 9, 1000)).tolist()
                cell = {"set": name, "mask": mask, "method": method}
                made.records.append(Record(cell, {}, ids, errors, [1] * 1000, [40] * 1000, ["converged"] * 1000))
                made.samples[f"estimate/{name}/{mask}/{method}"] = noise
                made.samples[f"error/{name}/{mask}/{method}"] = noise[..., 0]
    return made


def test_a_thousand_images_load_in_two_seconds_and_stay_small(tmp_path: Path, open_page: Open) -> None:
    made = thousand()
    path = write_report(made.write(tmp_path))
    assert 5e6 < path.stat().st_size < 25e6
    seconds = []
    while len(seconds) < 3 and min(seconds, default=9) > 2:  # again, should the machine have been busy otherwise
        since = time.perf_counter()
        page = open_page(path)
        page.wait_for_selector(".card canvas[data-drawn]", state="attached")
        seconds.append(time.perf_counter() - since)
    assert min(seconds) < 2
    assert page.locator(".card").count() == 24
    check_numbers(page, made.records)
    moved = page.evaluate("""() => { const s = document.querySelector('#slider'), since = performance.now();
        for (let v = 30; v < 50; v++) { s.value = v; s.dispatchEvent(new Event('input')); }
        return (performance.now() - since) / 20; }""")
    assert moved < 50  # milliseconds a step: dragging stays smooth
    assert "to keep this file small" in page.inner_text("#gallery .lead")
