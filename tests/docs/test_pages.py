"""The code on the pages runs as it stands, and links lead somewhere."""

import inspect
import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import matplotlib
import pytest
import torch
import yaml
from PIL import Image

import recollect
from recollect.auditing import NotPassed
from recollect.auditing.verdict import Judged, images_needed
from recollect.canaries.design import Design
from recollect.canaries.one_run import epsilon_bound
from recollect.cli.app import EPILOG
from recollect.diffusion import Denoiser
from recollect.scoring import Rate
from recollect.version import __version__
from tests.auditing.making import pictures, small_audit
from tests.cli.running import here

ROOT = Path(__file__).parents[2]
WRITTEN = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


def run(page: str, replaced: Sequence[tuple[str, str]] = (), **given: object) -> dict[str, object]:
    """All Python blocks of a page, one after another as a reader would, with names given; the names that are left."""
    text = (ROOT / "docs" / f"{page}.md").read_text()
    for code, instead in replaced:
        assert code in text
        text = text.replace(code, instead)
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.S | re.M)
    assert blocks
    names: dict[str, object] = {"__name__": "page", **given}
    for block in blocks:
        line = text[: text.index(block)].count("\n")
        exec(compile("\n" * line + block, f"docs/{page}.md", "exec", dont_inherit=True), names)
    return names


@pytest.fixture(autouse=True)
def somewhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_signals_and_rows(capsys: pytest.CaptureFixture[str]) -> None:
    run("guide/signals-and-rows")
    assert "Attacks approximately recover 12 of 12 training rows from this model" in capsys.readouterr().out


def test_adding_a_degradation(capsys: pytest.CaptureFixture[str]) -> None:
    names = run("contributing/adding-a-degradation")
    assert "Attacks approximately recover 5 of 6 training images from this model" in capsys.readouterr().out
    assert names["result"].masks == ["dimmed"]  # type: ignore[attr-defined]


def test_adding_a_method() -> None:
    assert run("contributing/adding-a-method")["result"].methods == ["iterate", "averaged"]  # type: ignore[attr-defined]


def test_adding_a_network() -> None:
    training = run("contributing/adding-a-network")["training"]
    assert training.reached  # type: ignore[attr-defined]
    assert training.network.settings == {"channels": 3, "width": 8, "seed": 42}  # type: ignore[attr-defined]


def test_the_paper_explained() -> None:
    run("concepts/how-it-works")  # it asserts what it says


def test_training_to_a_loss(tmp_path: Path) -> None:
    done: Any = run("concepts/training")["done"]
    assert done.reached
    page = (ROOT / "docs" / "concepts" / "training.md").read_text()
    files = {path.name for path in (tmp_path / "runs" / "c").iterdir()}
    assert {"loss-1e-04.safetensors", "loss.csv", "loss.svg", "log.txt"} <= files
    assert all(f"`{name}`" in page for name in ("loss-1e-04.safetensors", "loss.csv", "loss.svg", "log.txt"))


@pytest.mark.slow
def test_the_generic_baseline() -> None:
    pytest.importorskip("diffusers")
    images = pictures(1, 1)
    damaged = recollect.observe(images, recollect.mask("half", images.shape[1:]))  # type: ignore[arg-type]
    restored: Any = run("concepts/generic-baseline", damaged=damaged)["restored"]
    assert restored.estimate.shape == images.shape


def test_auditing_a_diffusion_model() -> None:
    """As it stands, but for the download of the model and the hours of its audit."""
    denoiser, batch = Denoiser.of(lambda x, sigma: x * 0, (3, 8, 8)), pictures(2, 1)
    replaced = [('open_denoiser("google/ddpm-cifar10-32")', "opened"), ("result = audit(", "result = bind(")]
    bind = inspect.signature(recollect.audit).bind
    names: dict[str, Any] = run(
        "concepts/diffusion", replaced, opened=denoiser, bind=bind, train_images=batch, unseen_images=pictures(2, 2)
    )
    assert names["result"].arguments["model"] is denoiser
    assert names["autoencoder"](batch).shape == batch.shape


def test_canaries(capsys: pytest.CaptureFixture[str]) -> None:
    run("guide/canaries")
    page = " ".join((ROOT / "docs" / "guide" / "canaries.md").read_text().split())
    assert capsys.readouterr().out.strip() in page


def test_canaries_can_show_what_the_page_says() -> None:
    page, design = (ROOT / "docs" / "guide" / "canaries.md").read_text(), Design()
    named = re.findall(r"^\| (\d+) \| ([\d.]+) \|$", page, re.M)
    assert len(named) == 2
    for count, bound in named:
        canaries = round(int(count) / 3)
        guesses = [sum(rule.counts(canaries)) for rule in design.rules]
        level = design.level(groups=3)
        bounds = [epsilon_bound(canaries, number, number, delta=design.delta, level=level) for number in guesses]
        assert f"{max(bounds):.2f}" == bound
    shares = re.findall(r"^\| \w+ \| (\d)/(\d) \| (?:none|(\d)/(\d)) \|$", page, re.M)
    rules = [(int(a) / int(b), int(c) / int(d) if c else 0.0) for a, b, c, d in shares]
    assert rules == [(rule.inside, rule.outside) for rule in design.rules]


def test_output_files(tmp_path: Path) -> None:
    """The columns of the table are named, the code runs, and the exit codes are those of the help."""
    text = (ROOT / "docs" / "reference" / "output.md").read_text()
    result = small_audit(out=tmp_path / "audit", masks="half", methods="iterate")
    names = run("reference/output")
    jsonschema.validate(json.loads((tmp_path / "audit" / "audit.json").read_text()), names["schema"])
    rows = re.findall(r"^\| (`[^|]*`) \|", text.split("## Columns of images.csv")[1].split("\n## ")[0], re.M)
    columns = (tmp_path / "audit" / "images.csv").read_text().splitlines()[0].split(",")
    assert [column for row in rows for column in re.findall(r"`(\w+)`", row)] == columns == [*result.to_frame()]
    codes = re.findall(r"^\| (\d[\d, ]*) \| (.*) \|$", text.split("## Exit codes")[1], re.M)
    help_codes = re.findall(r"^- (\d+(?:, \d+)?) (.*)$", EPILOG, re.M)
    assert [(code, meaning.replace("`", "")) for code, meaning in codes] == help_codes


def test_use_in_ci(tmp_path: Path) -> None:
    pytest.importorskip("lightning", reason="needs Lightning: pip install lightning")
    names: dict[str, Any] = run("guide/ci")
    assert 20 <= names["monitor"].onset == names["epoch"] < 400
    assert names["callback"].stop
    test = names["test_the_model_does_not_give_its_training_images_away"]
    with pytest.raises(NotPassed) as caught:
        test()
    page = (ROOT / "docs" / "guide" / "ci.md").read_text()
    assert f"E   recollect.auditing.assertion.NotPassed: {caught.value.audit.verdict}\n" in page
    assert (tmp_path / "audit" / "report.html").exists()
    needed = re.findall(r"^\| (\d+)% \| (\d+) \|$", page, re.M)
    nothing = Judged(Rate(0, 10), Rate(0, 10))
    assert [images_needed(nothing, int(limit) / 100) for limit, _ in needed] == [int(images) for _, images in needed]


def test_the_workflow_of_the_page_fails_a_model_that_memorized(tmp_path: Path) -> None:
    """The command of its audit step runs as it stands, in a folder like the one that it was written for."""
    (text,) = re.findall(r"^```yaml\n(.*?)^```", (ROOT / "docs" / "guide" / "ci.md").read_text(), re.S | re.M)
    steps = {step.get("name"): step for step in yaml.safe_load(text)["jobs"]["audit"]["steps"]}
    write_model_and_images(tmp_path)
    program, *arguments = shlex.split(steps["Audit"]["run"])
    assert program == "recollect"
    quick = ["--masks", "half", "--methods", "iterate", "--gamma", "0.5", "--start", "half_kept"]
    done = here(*arguments, *quick)
    assert done.exit_code == 3, done.output
    kept = steps["Keep the report"]
    assert kept["if"] == "always()"
    assert (tmp_path / kept["with"]["path"] / "report.html").exists()
    assert not list(tmp_path.rglob("*.npz"))


def write_model_and_images(folder: Path) -> None:
    """model.pt2, which holds the images of images/train, and as many others in images/unseen."""
    values = {name: (pictures(6, seed) * 255).round() for seed, name in enumerate(("train", "unseen"))}
    for name, images in values.items():
        (folder / "images" / name).mkdir(parents=True)
        for number, image in enumerate(images.byte().permute(0, 2, 3, 1).numpy()):
            Image.fromarray(image).save(folder / "images" / name / f"{number}.png")
    model = Stored(values["train"] / 255)
    batch = {"x": {0: torch.export.Dim("batch", max=64)}}
    torch.export.save(torch.export.export(model, (torch.rand(2, 3, 8, 8),), dynamic_shapes=batch), folder / "model.pt2")


class Stored(torch.nn.Module):
    """A memorizer that torch can export."""

    pixels: torch.Tensor

    def __init__(self, pixels: torch.Tensor) -> None:
        super().__init__()
        self.pixels = torch.nn.Buffer(pixels.flatten(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        distances = (x.flatten(1)[:, None] - self.pixels).square().sum(2)
        return (torch.softmax(-60 * distances, 1) @ self.pixels).view_as(x)


@pytest.mark.parametrize("page", WRITTEN, ids=lambda p: p.name)
def test_links_to_files_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text())
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_the_citation_names_this_version() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
