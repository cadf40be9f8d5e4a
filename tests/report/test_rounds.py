"""Recoveries round by round."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from recollect.report.results import build_results
from recollect.report.rounds import build_rounds, kept_rounds
from recollect.report.sprites import Sheets
from tests.report.browsing import pixels
from tests.report.conftest import Pages
from tests.report.making import AuditFiles, record


def test_few_rounds_are_all_shown() -> None:
    assert kept_rounds(5, 8) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("most", [8, 20])
def test_many_rounds_are_thinned_from_the_end(most: int) -> None:
    kept = kept_rounds(1000, most)
    assert kept[0] == 0
    assert kept[-1] == 999
    assert len(kept) <= most
    gaps = [later - earlier for earlier, later in pairwise(kept)]
    assert gaps == sorted(gaps)


def test_traces_without_round_numbers_are_left_out(planted: AuditFiles) -> None:
    earlier = {name: array for name, array in planted.traces.items() if not name.startswith("round/")}
    audit = AuditFiles(planted.records, traces=earlier, facts=planted.facts).in_memory
    assert build_rounds(audit, build_results(audit), Sheets()) is None


def test_without_a_trace_there_are_no_rounds() -> None:
    audit = AuditFiles([record([0.1])]).in_memory
    assert build_rounds(audit, build_results(audit), Sheets()) is None


def test_an_image_is_named_and_its_rounds_are_those_of_the_record(planted: AuditFiles) -> None:
    rounds = build_rounds(planted.in_memory, build_results(planted.in_memory), Sheets())
    assert rounds is not None
    assert rounds["mask"] == "block"
    blind = next(r for r in planted.records if tuple(r.cell.values()) == ("train", "block", "blind"))
    for position, image in enumerate(rounds["images"]):
        assert image["name"] == blind.ids[position]
        strip = next(strip for strip in image["strips"] if strip["method"] == "blind")
        assert strip["rounds"][-1] == blind.rounds[position]  # it ends where the method does
        assert strip["errors"][-1] == pytest.approx(blind.mse[position], rel=1e-3)
        assert strip["stop"] == blind.stop[position]
        assert (strip["mask"] is None) == (f"mask/blind/{position}" not in planted.traces)


def test_the_rounds_are_those_of_the_trace(report: Path, planted: AuditFiles, open_page: Pages) -> None:
    page = open_page(report)
    page.select_option("#watch-image", "1")
    frames, masks = planted.traces["estimate/blind/1"], planted.traces["mask/blind/1"]
    for number in (1, 2, len(frames)):
        page.fill("#round", str(number))
        assert page.inner_text("#round-number") == str(number)
        error = planted.traces["mse/blind/1"][number - 1]
        assert float(page.locator("#stage .error").first.inner_text().removeprefix("error ")) == pytest.approx(
            error, rel=0.06
        )
        estimate, mask = page.locator("#stage .method").first.locator("canvas").element_handles()
        assert (pixels(page, estimate) == frames[number - 1]).all()
        assert (pixels(page, mask)[..., 0] == masks[number - 1]).all()
    page.fill("#round", "0")
    assert (pixels(page, estimate) == planted.traces["degraded/1"]).all()
    page.click("#play")
    page.wait_for_function("() => document.querySelector('#round').value > 0")
    page.wait_for_function("() => document.querySelector('#play').textContent === 'Play'")
    assert page.input_value("#round") == page.get_attribute("#round", "max")
    last = max(
        int(planted.traces[name][-1]) for name in planted.traces if name.startswith("round/") and name[-2:] == "/1"
    )
    assert page.inner_text("#round-last") == page.inner_text("#round-number") == str(last)
    assert page.locator("#stage .method").first.inner_text().endswith("converged")
