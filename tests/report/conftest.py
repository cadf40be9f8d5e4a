"""A report to open in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.report import write_report
from tests.browsing import PATIENCE
from tests.report.making import AuditFiles, planted_audit

VIEWPORT = {"width": 1280, "height": 800}


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> AuditFiles:
    """An audit of 24 images, two masks and three methods, with unseen images, pictures and rounds."""
    return planted_audit(tmp_path_factory.mktemp("planted"))


@pytest.fixture(scope="session")
def report(planted: AuditFiles, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(planted.write(tmp_path_factory.mktemp("audit")))


def new_page(browser: Any, **options: Any) -> Any:
    context = browser.new_context(**{"viewport": VIEWPORT, **options})
    context.set_default_timeout(PATIENCE)
    return context.new_page()


class Pages:
    """Opens files; each page must be silent and ask the network for nothing."""

    def __init__(self, browser: Any, usual_page: Any) -> None:
        self.browser, self.usual_page = browser, usual_page
        self.messages: list[str] = []
        self.requests: list[str] = []
        self.opened: list[Any] = []
        self.listeners: dict[str, Callable[[Any], None]] = {
            "console": lambda message: self.messages.append(message.text),
            "pageerror": lambda error: self.messages.append(str(error)),
            "request": lambda request: self.requests.append(request.url),
        }

    def __call__(self, path: Path, **options: Any) -> Any:
        page = new_page(self.browser, **options) if options else self.usual_page
        assert page not in self.opened
        self.opened.append(page)
        for event, listener in self.listeners.items():
            page.on(event, listener)
        page.goto(path.as_uri())
        return page

    def check(self) -> None:
        assert self.messages == []
        assert [url for url in self.requests if not url.startswith(("file:", "data:"))] == []
        assert len([url for url in self.requests if url.startswith("file:")]) == len(self.opened)

    def close(self) -> None:
        for page in self.opened:
            if page is not self.usual_page:
                page.context.close()
                continue
            for event, listener in self.listeners.items():
                page.remove_listener(event, listener)
            page.goto("about:blank")


@pytest.fixture(scope="session")
def usual_page(browser: Any) -> Any:
    """Used for one file after the other: another page would start processes, which takes longer than to open a file."""
    return new_page(browser)


@pytest.fixture
def open_page(browser: Any, usual_page: Any) -> Iterator[Pages]:
    pages = Pages(browser, usual_page)
    yield pages
    pages.close()
    pages.check()


@pytest.fixture(scope="session")
def shared_page(browser: Any, report: Path) -> tuple[Pages, Any]:
    pages = Pages(browser, new_page(browser))
    return pages, pages(report)


Show = Callable[..., Any]


@pytest.fixture
def show(shared_page: tuple[Pages, Any]) -> Iterator[Show]:
    """Show the report as another test left it: for tests that change nothing on it, because opening it takes longer."""
    pages, page = shared_page

    def resized(scheme: str = "light", height: int = VIEWPORT["height"]) -> Any:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({**VIEWPORT, "height": height})
        page.evaluate("scrollTo(0, 0)")
        return page

    yield resized
    pages.check()
