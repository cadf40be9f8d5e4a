"""A hook of the site: pages and pictures that live outside docs/ are part of it, and links to them lead there.

In the repository a page links to files by their place, ../NOTATION.md from docs/ and docs/audit.md from the README. The
site's root is docs/, so one step up or down is taken out of links that cross it.
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


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    up = "../" * page.file.src_uri.count("/")  # from a page in a folder of docs/ to docs/
    return re.sub(rf"(\]\({re.escape(up)})(?:\.\./|docs/)?([^)#\s]+)", _within, markdown)


def _within(link: re.Match[str]) -> str:
    return link[1] + PAGES.get(link[2], link[2])
