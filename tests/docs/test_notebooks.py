"""The notebooks of the gallery: they parse, say whom they are for, lead somewhere, and run."""

import ast
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from recollect.scoring import APPROXIMATE

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs"))  # as mkdocs does for its hooks

import gallery  # noqa: E402
import notebook_runs  # noqa: E402

SOURCES = notebook_runs.sources()
RECOVERED = re.compile(
    r"Attacks (?:approximately )?recover (\d+) of (\d+) training (?:images|rows).*?Of \d+ \w+ it never saw: (\d+)\."
)
MEMORIZED = ("demo", "own-vae", "unet", "diffusion", "tabular")
SMALL = """# %% [markdown]
# # Small
#
# For nobody.

# %%
1 + 1
"""


def headline(notebook: Any) -> tuple[int, ...]:
    """Training images recovered, training images in all, and unseen images recovered, as a notebook shows them."""
    outputs = notebook_runs.outputs(notebook)
    shown = " ".join(str(output.get("data", {}).get("text/html", "")) for output in outputs)
    counts = RECOVERED.search(shown)
    assert counts, shown
    return tuple(map(int, counts.groups()))


def printed(notebook: Any) -> str:
    return "".join(output.get("text", "") for output in notebook_runs.outputs(notebook))


def problems(notebook: Any) -> list[Any]:
    """What a notebook printed as a warning or an error."""
    outputs = notebook_runs.outputs(notebook)
    return [output for output in outputs if output.get("name") == "stderr" or output.output_type == "error"]


@pytest.mark.parametrize("name", SOURCES)
def test_a_notebook_parses_and_begins_and_ends_as_it_should(name: str) -> None:
    cells = notebook_runs.read_source(SOURCES[name]).cells
    for cell in cells:
        if cell.cell_type == "code":
            ast.parse(cell.source)
    prose = [cell.source for cell in cells if cell.cell_type == "markdown"]
    assert re.match(r"# [^\n]+\n\nFor .+ You see ", prose[0], re.S)
    assert any("## What the result means" in text for text in prose)
    assert cells[-1].cell_type == "markdown"


@pytest.mark.parametrize("name", SOURCES)
def test_links_of_a_notebook_lead_to_pages(name: str) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", SOURCES[name].read_text())
    assert links
    assert [link for link in links if not (ROOT / "docs" / "gallery" / link).resolve().is_file()] == []


def test_the_site_lists_every_notebook() -> None:
    text = (ROOT / "mkdocs.yml").read_text()
    (listed,) = (part["Gallery"] for part in yaml.safe_load(text)["nav"] if "Gallery" in part)
    assert listed == ["gallery/index.md", *(f"gallery/{name}.md" for name in SOURCES)]


def test_a_run_is_kept_until_its_source_changes(tmp_path: Path) -> None:
    source = tmp_path / "1-small.py"
    source.write_text(SMALL)
    assert notebook_runs.kept("small", source, tmp_path) is None
    notebook_runs.keep("small", notebook_runs.run(source), tmp_path)
    notebook = notebook_runs.kept("small", source, tmp_path)
    assert notebook is not None
    assert not problems(notebook)
    assert notebook.cells[-1].outputs[0].data["text/plain"] == "2"
    assert notebook.metadata["recollect"]["cpu_seconds"] > 0  # a kernel starts
    notebook_runs.check_cpu_time({"small": notebook})
    source.write_text(SMALL.replace("1 + 1", "1 + 2"))
    assert notebook_runs.kept("small", source, tmp_path) is None


def recorded(source: Path, cpu_seconds: float) -> Any:
    """A notebook as after a run that took this time."""
    notebook = notebook_runs.read_source(source)
    notebook.metadata["recollect"] = {"key": notebook_runs.key_of(source), "seconds": 500, "cpu_seconds": cpu_seconds}
    return notebook


def test_a_notebook_of_too_much_cpu_time_ends_the_build(tmp_path: Path) -> None:
    """By the time that was recorded: no clock runs here."""
    source = tmp_path / "1-small.py"
    source.write_text(SMALL)
    notebook_runs.check_cpu_time({"small": recorded(source, 120)})
    with pytest.raises(SystemExit, match=r"120 seconds of CPU time; these took more: large \(121\)\."):
        notebook_runs.check_cpu_time({"small": recorded(source, 120), "large": recorded(source, 121)})


def test_a_page_has_a_title_a_summary_and_the_notebook_itself(tmp_path: Path) -> None:
    source = tmp_path / "1-small.py"
    source.write_text(SMALL)
    page = gallery.GalleryPage.of("small", source)
    assert (page.title, page.summary) == ("Small", "For nobody.")
    assert page.markdown.startswith("# Small\n")
    assert gallery.NOT_RUN in page.markdown
    assert "```python\n1 + 1\n```" in page.markdown
    assert [path for path, _ in page.files()] == ["gallery/small.md", "gallery/small.ipynb"]
    notebook_runs.keep("small", recorded(source, 34.2), tmp_path)
    page = gallery.GalleryPage.of("small", source, tmp_path)
    assert "\n*The outputs are of a run that took 34 seconds" in page.markdown


@pytest.mark.slow
@pytest.mark.parametrize("name", SOURCES)
def test_a_notebook_runs_and_shows_what_it_says(name: str) -> None:
    notebook = notebook_runs.run(SOURCES[name])
    assert not problems(notebook)
    if name == "unet":  # its picture of the rounds ends with a recovery
        (error,) = re.findall(r"error after \d+ rounds: (\S+)", printed(notebook))
        assert float(error) < APPROXIMATE
    recovered, images, unseen = headline(notebook)
    assert unseen == 0
    assert recovered >= 0.8 * images if name in MEMORIZED else recovered == 0
