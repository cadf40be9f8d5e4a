"""The pictures of a report in the README and the guide: its first screen and two sections.

    recollect demo
    python benchmarks/report_picture.py demo/audit/report.html docs/figures

Needs playwright and a Chromium, whose path may be given with --chromium.
"""

from __future__ import annotations

import argparse
from pathlib import Path

SECTIONS = {"report-rates": "#rates", "report-gallery": "#gallery"}
WIDTH, HEIGHT = 650, 850  # narrow, so that the text can be read where a phone shows the picture smaller
SHARPNESS = 1.2  # pixels of the picture for one of the screen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=SHARPNESS)
        page.goto(options.report.resolve().as_uri())
        page.screenshot(path=options.folder / "report.png")
        for name, section in SECTIONS.items():
            page.locator(section).scroll_into_view_if_needed()
            page.evaluate("(id) => document.querySelector(id).scrollIntoView()", section)
            page.wait_for_timeout(300)
            page.screenshot(path=options.folder / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
