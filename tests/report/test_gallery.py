"""The gallery: its pictures, its filters and its size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recollect.records import Record
from recollect.report import write_report
from recollect.report.gallery import Tiles, build_gallery, sampling_sentence, thinning
from recollect.report.results import build_results
from recollect.report.sprites import Sheet, Sheets, pictures
from tests.report.browsing import check_numbers, choose, pixels, slide
from tests.report.conftest import Pages
from tests.report.making import AuditFiles, record

MASKS, METHODS = ("block", "half", "scatter", "frame", "stripes", "dust"), ("blind", "iterate", "known")


def test_pictures_beyond_the_budget_are_thinned_evenly() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (60, 16, 16, 3), np.uint8)
    tiles = {"original/train": Tiles(noise, pictures)}
    assert thinning({"original/train": Tiles(np.zeros_like(noise), pictures)}, budget=noise.nbytes // 3) == 1
    step = thinning(tiles, budget=noise.nbytes // 3)
    assert step in (3, 4)
    assert len(pictures(noise[::step]).png) <= noise.nbytes // 3 * 1.05


def test_pictures_that_fit_as_they_are_are_not_encoded_to_judge_them() -> None:
    def draw(_: np.ndarray) -> Sheet:
        raise AssertionError("drawn")

    assert thinning({"original/train": Tiles(np.zeros((60, 16, 16, 3), np.uint8), draw)}, budget=60 * 16 * 16 * 3) == 1


def test_a_thinned_gallery_says_so_and_keeps_images_with_their_outcomes(planted: AuditFiles) -> None:
    gallery = build_gallery(planted.in_memory, build_results(planted.in_memory), Sheets(), budget=50_000)
    assert gallery is not None
    step = gallery["step"]
    assert step > 1
    train = gallery["sets"][0]
    assert train["index"] == list(range(0, 24, step))
    assert f"{len(train['index'])} of 24 training images" in sampling_sentence(gallery)
    assert f"one in {step}" in sampling_sentence(gallery)
    blind = next(r for r in planted.records if tuple(r.cell.values()) == ("train", "block", "blind"))
    assert train["cells"][0]["rounds"] == blind.rounds[::step]


def test_without_pictures_there_is_no_gallery() -> None:
    audit = AuditFiles([record([0.1])]).in_memory
    assert build_gallery(audit, build_results(audit), Sheets()) is None


def test_filters_filter(report: Path, planted: AuditFiles, open_page: Pages) -> None:
    page = open_page(report)
    total = 2 * 24 * 2

    def shown() -> str:
        return str(page.inner_text("#shown"))

    assert page.eval_on_selector("#filter-method", "s => s.selectedOptions[0].textContent") == "blind"
    assert set(page.locator(".card .method figcaption").all_inner_texts()) == {"blind"}  # it opens on one method
    assert shown() == f"24 of {total} picture rows"
    page.click("#more")
    assert shown() == f"48 of {total} picture rows"
    choose(page, set="unseen")
    assert shown() == "24 of 48 picture rows"
    assert set(page.locator(".badge").all_inner_texts()) == {"unseen"}
    choose(page, mask="dust")
    assert set(page.locator(".card .mask").all_inner_texts()) == {"dust"}
    choose(page, method="iterate")
    assert set(page.locator(".card .method figcaption").all_inner_texts()) == {"iterate"}
    assert shown() == "24 of 24 picture rows"


def test_recovered_and_order_follow_the_threshold(report: Path, planted: AuditFiles, open_page: Pages) -> None:
    page = open_page(report)
    choose(page, set="training", mask="block", method="blind")
    errors = sorted(next(r for r in planted.records if tuple(r.cell.values()) == ("train", "block", "blind")).mse)
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


def test_pictures_are_the_audits_pixel_by_pixel(report: Path, planted: AuditFiles, open_page: Pages) -> None:
    page = open_page(report)
    choose(page, set="training", mask="dust", method="blind")
    cards = page.locator(".card").element_handles()
    assert len(cards) == 24
    for position in (0, 5):
        original, damaged, estimate, error, mask = cards[position].query_selector_all("canvas")
        assert (pixels(page, original) == planted.samples["original/train"][position]).all()
        assert (pixels(page, damaged) == planted.samples["degraded/train/dust"][position]).all()
        assert (pixels(page, estimate) == planted.samples["estimate/train/dust/blind"][position]).all()
        assert (pixels(page, mask)[..., 0] == planted.samples["mask/train/dust/blind"][position]).all()
        levels = planted.samples["log_error/train/dust/blind"][position].astype(int)
        brightness = pixels(page, error).astype(int).sum(-1)
        assert (np.diff(brightness.ravel()[levels.ravel().argsort()]) >= -8).all()  # lighter is a larger error
        size = original.bounding_box()
        assert size["width"] == size["height"] == 96  # six times its 16 pixels


def test_a_recovery_that_ended_on_another_training_image_is_shown_with_that_image(
    report: Path, planted: AuditFiles, open_page: Pages
) -> None:
    page = open_page(report)
    choose(page, set="unseen", mask="dust", method="iterate")
    record = next(r for r in planted.records if tuple(r.cell.values()) == ("control", "dust", "iterate"))
    assert record.nearest is not None
    assert record.nearest_mse is not None
    near = zip(record.nearest, record.nearest_mse, strict=True)
    ended = [name for name, error in near if error is not None and error < 5e-4]
    assert ended
    shown = page.locator(".ended:visible")
    assert shown.locator("figcaption").all_inner_texts() == [
        f"iterate ended on training image {name}" for name in ended
    ]
    position = planted.samples["index/returned"].tolist().index(int(ended[0] or ""))
    picture = shown.first.locator("canvas").element_handle()
    assert (pixels(page, picture) == planted.samples["original/returned"][position]).all()
    page.fill("#threshold", "1e-12")
    exact = sum(error is not None and error < 1e-12 for error in record.nearest_mse)
    assert shown.count() == exact < len(ended)


def test_each_methods_pictures_are_in_its_colour(report: Path, open_page: Pages) -> None:
    page = open_page(report)
    choose(page, method="all")
    colours = page.eval_on_selector_all(
        ".card:first-child .method", "all => all.map(m => [m.firstChild.textContent, m.className.split(' ').pop()])"
    )
    assert dict(colours) == {"blind": "colour-blue", "iterate": "colour-green", "known": "colour-grey"}


@pytest.fixture(scope="module")
def thousand() -> AuditFiles:
    """An audit of 1,000 images a set, with pictures that no compression makes smaller."""
    draw = np.random.default_rng(5)
    files, ids = AuditFiles(), [f"image-{number:04}" for number in range(1000)]
    for set_name in ("train", "control"):
        noise = draw.integers(0, 256, (1000, 32, 32, 3), np.uint8)
        files.samples |= {f"original/{set_name}": noise, f"index/{set_name}": np.arange(1000)}
        for mask in MASKS:
            files.samples[f"degraded/{set_name}/{mask}"] = noise
            for method in METHODS:
                errors = (10 ** -draw.uniform(1, 9, 1000)).tolist()
                cell = {"set": set_name, "mask": mask, "method": method}
                files.records.append(Record(cell, {}, ids, errors, [1] * 1000, [40] * 1000, ["converged"] * 1000))
                files.samples[f"estimate/{set_name}/{mask}/{method}"] = noise
                files.samples[f"log_error/{set_name}/{mask}/{method}"] = noise[..., 0]
    return files


def test_a_report_of_a_thousand_images_stays_small_and_decodes_only_what_it_shows(
    thousand: AuditFiles, tmp_path: Path, open_page: Pages
) -> None:
    path = write_report(thousand.write(tmp_path))
    assert 5e6 < path.stat().st_size < 25e6
    page = open_page(path)
    page.wait_for_function("() => [...document.querySelectorAll('.card canvas')].every(c => c.dataset.drawn)")
    assert page.locator(".card").count() == 24
    shown = page.eval_on_selector_all(
        ".card canvas", "all => [...new Set(all.map(c => c.dataset.drawn.split(' ')[0]))]"
    )
    assert len(shown) == 2 + 2  # original, damaged, and two sheets of the method that is shown ...
    assert page.locator("script.sheet").count() == 2 * (1 + len(MASKS) * (1 + 2 * len(METHODS)))  # ... of all sheets
    check_numbers(page, thousand.records)
    slide(page, 50)
    check_numbers(page, thousand.records)
    assert "to keep this file small" in page.inner_text("#gallery .lead")
