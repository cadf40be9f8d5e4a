"""A hook of the site: pages and pictures that live outside docs/ are part of it, and links to them lead there.

In the repository a page links to files by their place, ../NOTATION.md from docs/ and docs/audit.md from the README. The
site has all pages in one folder, so the steps up and down are taken out of the links.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
PAGES |= {"NOTATION.md": "notation.md"}
PICTURES = "results/**/figures/*.*"


def on_files(files: Files, *, config: Any) -> Files:
    for there, here in PAGES.items():
        files.append(File.generated(config, here, content=(ROOT / there).read_text(encoding="utf-8")))
    for picture in sorted(ROOT.glob(PICTURES)):
        here = picture.relative_to(ROOT).as_posix()
        files.append(File.generated(config, here, abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    return re.sub(r"(\]\()(?:\.\./|docs/)?([^)#\s]+)", _within, markdown)


def _within(link: re.Match[str]) -> str:
    return link[1] + PAGES.get(link[2], link[2])
