"""A real browser without a window, one for all tests of a process."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

PATIENCE = 300_000  # milliseconds: a page that is slow on a busy machine is no fault
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


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
