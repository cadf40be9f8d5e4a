"""A real browser without a window, and reports to open in it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect import Images
from recollect.report import write_report
from tests.report.making import Making, pattern_images, planted_audit

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HOSTILE = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=2>.png"


@pytest.fixture(scope="session")
def planted() -> Making:
    """A memorizer of 24 images, two masks, three methods, with control images, pictures and rounds."""
    train = Images(pattern_images(24, 16, seed=1), name="patterns")
    control = Images(pattern_images(24, 16, seed=2), name="other patterns")
    return planted_audit(train, control, ["block", "dust"])


@pytest.fixture(scope="session")
def report(planted: Making, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(planted.write(tmp_path_factory.mktemp("audit")))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("there is no Chromium on this machine")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


Open = Callable[..., Any]


@pytest.fixture
def open_page(browser: Any) -> Iterator[Open]:
    """Open a file; at the end the page must have been silent and must have asked the network for nothing."""
    said: list[str] = []
    asked: list[str] = []
    contexts = []

    def opened(path: Path, **options: Any) -> Any:
        contexts.append(browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options}))
        page = contexts[-1].new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in asked if url.startswith("file:")]) == len(contexts)
