"""A hook of the site: pages, tables and pictures that live outside docs/ are part of it, and links to them lead there.

In the repository a page links to files by their path, ../../NOTATION.md from docs/guide/ and docs/guide/ci.md from the
README. The site's root is docs/, so each link is resolved in the repository and written anew for the site.
"""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing/index.md",
    "CHANGELOG.md": "contributing/changelog.md",
    "NOTATION.md": "reference/notation.md",
}
GALLERY = {"docs/notebooks": "gallery/index.md"}  # a folder in the repository
RESULTS = ("results/**/figures/*.*", "results/**/*.md")  # charts, and tables that are made beside the records
NOT_SHOWN = "results/paper/small/tables"  # they show that every step works; their numbers say nothing


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages and the files of results/ to the site."""
    for there, here in PAGES.items():
        files.append(File.generated(config, here, content=(ROOT / there).read_text(encoding="utf-8")))
    for path in sorted(path for pattern in RESULTS for path in ROOT.glob(pattern)):
        here = path.relative_to(ROOT).as_posix()
        if dirname(here) == NOT_SHOWN:
            continue
        files.append(File.generated(config, here, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Write the links of a page for the site."""
    here = page.file.src_uri
    return re.sub(r"(\]\()([^)#\s]+)", lambda link: link[1] + site_link(link[2], here), markdown)


def site_link(link: str, here: str) -> str:
    """Write a link of the repository for the page `here` of the site."""
    if "://" in link or link.startswith("mailto:"):
        return link
    page = {site: source for source, site in PAGES.items()}.get(here, here if _is_result(here) else f"docs/{here}")
    target = normpath(join(dirname(page), link))
    there = {**PAGES, **GALLERY}.get(target, target.removeprefix("docs/"))
    return relpath(there, dirname(here) or ".")


def _is_result(path: str) -> bool:
    return path.startswith("results/")
