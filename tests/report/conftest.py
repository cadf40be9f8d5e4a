"""A real browser without a window, and a report to open in it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.report import write_report
from tests.report.making import AuditFiles, planted_audit

PATIENCE = 300_000  # milliseconds: a page that is slow on a busy machine is no fault
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> AuditFiles:
    """An audit of 24 images, two masks and three methods, with unseen images, pictures and rounds."""
    return planted_audit(tmp_path_factory.mktemp("planted"))


@pytest.fixture(scope="session")
def report(planted: AuditFiles, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(planted.write(tmp_path_factory.mktemp("audit")))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("there is no Chromium on this machine")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=FLAGS, timeout=PATIENCE)
        yield browser
        browser.close()


Open = Callable[..., Any]


@pytest.fixture
def open_page(browser: Any) -> Iterator[Open]:
    """Open a file; at the end the page must have been silent and must have asked the network for nothing."""
    messages: list[str] = []
    requests: list[str] = []
    contexts = []

    def opened(path: Path, **options: Any) -> Any:
        contexts.append(browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options}))
        contexts[-1].set_default_timeout(PATIENCE)
        page = contexts[-1].new_page()
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert messages == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in requests if url.startswith("file:")]) == len(contexts)
