"""The site builds without a warning and holds what it should."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.palette import PALETTE
from tests.browsing import PATIENCE

ROOT = Path(__file__).parents[2]
WIDE = """() => {
  const width = document.documentElement.clientWidth;
  const parts = [...document.querySelectorAll(".md-content :is(pre, pre code, img, table)")];
  const wide = parts.filter(e => e.getBoundingClientRect().right > width + 1 || e.scrollWidth > e.clientWidth + 1);
  const found = wide.map(e => e.tagName + " " + (e.alt || e.innerText).slice(0, 40));
  return document.documentElement.scrollWidth > width + 1 ? ["page", ...found] : found;
}"""


def build(pages: Path, folder: Path) -> "subprocess.CompletedProcess[str]":
    """As `make docs` does; never with --quiet, which makes mkdocs count no warnings."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    command += ["--config-file", str(pages / "mkdocs.yml")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_a_link_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mkdocs.yml").write_text(f"INHERIT: {ROOT}/mkdocs.yml\nhooks: []\nplugins: []\nnav: [index.md]\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("[lost](nowhere.md)")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    assert "nowhere.md" in done.stderr
    assert done.stderr.count("WARNING") == 1


def test_links_between_pages_lead_to_pages(site: Path) -> None:
    for page in site.rglob("*.html"):
        if page.name == "404.html":  # its links are absolute, since it is shown anywhere
            continue
        links = re.findall(r'(?:href|src)="([^"#?]+)', page.read_text())
        there = [link for link in links if not link.startswith(("http", "mailto:"))]
        lost = [link for link in there if not (page.parent / link).exists()]
        assert lost == [], page.name


def test_the_readme_is_the_first_page_with_its_picture(site: Path) -> None:
    page = (site / "index.html").read_text()
    assert "How much of its training data can be recovered from an autoencoder or a diffusion model?" in page
    assert 'src="figures/hero.png"' in page


def test_every_public_name_is_in_the_reference_with_its_docstring(site: Path) -> None:
    page = (site / "reference" / "api.html").read_text()
    for name in set(recollect.__all__) - {"__version__"}:
        assert re.search(rf'id="recollect\.[\w.]*\b{name}"', page), name
    assert "Degrade each image; each has its own draw of noise" in page
    for member in ("methods.base.Method.__call__", "auditing.result.Audit.rate", "auditing.result.Audit.excess"):
        assert f'id="recollect.{member}"' in page


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    page = (site / "index.html").read_text()
    assert not re.search(r'<(?:script|img|link)[^>]+(?:src|href)="https?://(?!squidfunk)', page.split("canonical")[0])


def test_the_theme_has_the_colours_of_the_palette() -> None:
    used = set(re.findall(r"color[\w-]*: (#[0-9a-f]{6});", (ROOT / "docs" / "assets" / "site.css").read_text()))
    assert len(used) > 3
    assert used <= {shade for colour in PALETTE.values() for shade in colour}


@pytest.mark.slow
def test_no_page_is_wider_than_its_window(site: Path, browser: Any) -> None:
    """Neither the page nor its code, pictures and tables."""
    page = browser.new_page(java_script_enabled=False)
    page.set_default_timeout(PATIENCE)
    wide = []
    for path in (p for p in sorted(site.rglob("*.html")) if p.name != "404.html" and "results" not in p.parts):
        page.goto(path.as_uri())
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            wide += [f"{path.relative_to(site)}, {width}: {text}" for text in page.evaluate(WIDE)]
    page.close()
    assert wide == []
