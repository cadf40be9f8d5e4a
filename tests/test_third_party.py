"""A package outside the repository adds one of each kind, each in one file."""

import csv
import html
import json
import re
import shlex
import textwrap
import tomllib
from pathlib import Path

import pytest

from tests import warm

FILES = {
    "method.py": """
        from dataclasses import dataclass, replace
        import torch
        from recollect.methods import Method
        from recollect.recovery import Stop

        @dataclass(frozen=True)
        class OnePass(Method):
            name = "one-pass"
            label = "one pass of the model"
            summary = "takes what the model returns for the damaged image"
            headline_rank = 9
            colour = "violet"

            def step(self, f, batch):
                done = torch.full_like(batch.stop, Stop.DONE)
                return replace(batch, estimate=f(batch.estimate.clone()), rounds=batch.rounds + 1, stop=done)
    """,
    "network.py": """
        from torch import nn
        from recollect.networks import Network, initialise

        class Bottleneck(Network):
            name = "bottleneck"
            summary = "two convolutions"

            def __init__(self, *, channels=3, width=4, seed=42):
                super().__init__()
                self.settings = {"channels": channels, "width": width, "seed": seed}
                layers = [nn.Conv2d(channels, width, 3, padding=1), nn.Conv2d(width, channels, 3, padding=1)]
                self.layers = nn.Sequential(*layers)
                initialise(self, seed)

            @classmethod
            def settings_for(cls, shape):
                return {"channels": shape[0]}

            def forward(self, x):
                return self.layers(x)
    """,
    "denoising_network.py": """
        from torch import nn
        from recollect.diffusion.networks import DenoisingNetwork

        class OneLayer(DenoisingNetwork):
            name = "one-layer"
            summary = "one convolution, told nothing of the noise"

            def __init__(self, shape):
                super().__init__(shape)
                self.layer = nn.Conv2d(shape[0], shape[0], 3, padding=1)

            def forward(self, x, time):
                return self.layer(x)
    """,
    "degradation.py": """
        from dataclasses import dataclass, replace
        import torch
        from torch import Tensor
        from recollect.degradation import Degradation

        @dataclass(frozen=True, eq=False)
        class Dimmed(Degradation):
            factor: Tensor

            name = "dimmed"
            summary = "every value times a factor"
            example = "dimmed:0.5"

            @classmethod
            def parse(cls, value, shape):
                return cls(torch.tensor([float(value)]))

            def apply(self, x):
                return self.factor.view(-1, 1, 1, 1) * x

            def prox(self, z, y, gamma):
                factor, g = self.factor.view(-1, 1, 1, 1), gamma / 2
                return (factor * y + g * z) / (factor.square() + g)

            def refit(self, x, y):
                shared, power = (x * y).flatten(1).sum(1), x.square().flatten(1).sum(1)
                return replace(self, factor=(shared / power.clamp(min=1e-12)).clamp(0.05, 1))

            @classmethod
            def first_guess(cls, y):
                return cls(torch.ones(len(y)))
    """,
    "model_format.py": """
        from recollect.checkpoints import load_checkpoint
        from recollect.models.formats import ModelFormat

        def open_link(model):
            return load_checkpoint(model.path.read_text().removeprefix("link ")).network

        FORMAT = ModelFormat(
            name="link",
            summary="a text file that names a checkpoint",
            example="model.link",
            recognises=lambda model: model.start.startswith(b"link "),
            open=open_link,
            suffixes=(".link",),
        )
    """,
    "source.py": """
        import numpy as np
        from recollect.sources import Catalogue, Source

        def list_images(path, address):
            level = float(address.parameters["level"])

            def read(positions, progress):
                progress(len(positions), len(positions))
                return level * np.stack([np.random.default_rng(position).random((3, 8, 8)) for position in positions])

            return Catalogue([f"static-{i}" for i in range(10)], read)

        SOURCE = Source(
            name="static",
            summary="random values up to a level",
            example="static?level=0.25&count=4",
            open=list_images,
            parameters=("level",),
            defaults={"level": "0.5"},
        )
    """,
}

ENTRY_POINTS = """
    [recollect.methods]
    one-pass = third_party.method:OnePass

    [recollect.networks]
    bottleneck = third_party.network:Bottleneck

    [recollect.diffusion.networks]
    one-layer = third_party.denoising_network:OneLayer

    [recollect.degradation]
    dimmed = third_party.degradation:Dimmed

    [recollect.models.formats]
    link = third_party.model_format:FORMAT

    [recollect.sources]
    static = third_party.source:SOURCE
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what pip leaves behind for such a package."""
    folder = tmp_path_factory.mktemp("site-packages")
    package = folder / "third_party"
    package.mkdir()
    for name, code in {"__init__.py": "", **FILES}.items():
        (package / name).write_text(textwrap.dedent(code))
    about = folder / "third_party-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(textwrap.dedent(ENTRY_POINTS))
    return folder


def run(folder: Path, code: str) -> str:
    """Run code in a process of its own, since a registry is read once; return what it prints."""
    setup = "import sys\nimport torch, recollect\n"
    done = warm.run(setup + textwrap.dedent(code), folder=folder, COLUMNS="200")
    assert done.code == 0, done.err
    return done.out


def test_a_network_is_built_saved_and_opened(installed: Path) -> None:
    run(installed, """
        from recollect.checkpoints import load_checkpoint, save_checkpoint
        from recollect.networks import NETWORKS

        assert list(NETWORKS)[:2] == ["fc", "unet"]
        network = NETWORKS["bottleneck"].for_images((1, 8, 8), width=6)
        assert network.settings == {"channels": 1, "width": 6, "seed": 42}
        save_checkpoint("network.safetensors", network, {"loss": 1.0})
        x = torch.rand(2, 1, 8, 8)
        for again in (load_checkpoint("network.safetensors").network, recollect.open_model("network.safetensors")):
            assert type(again) is NETWORKS["bottleneck"]
            assert torch.equal(again(x), network(x))
    """)  # fmt: skip


def test_a_denoising_network_is_trained_and_opened(installed: Path) -> None:
    run(installed, """
        from recollect.diffusion import DenoiserRecipe, open_denoiser, train_denoiser

        images = recollect.load("photos?count=4&size=8")
        recipe = DenoiserRecipe("one-layer", batch=2)
        train_denoiser(images, "denoiser", max_steps=2, recipe=recipe, device="cpu", samples=0)
        opened = open_denoiser("denoiser")
        assert opened.shape == images.shape
    """)  # fmt: skip


def test_a_degradation_is_asked_for_by_name_and_recovered_from(installed: Path) -> None:
    run(installed, """
        from recollect.degradation import DEGRADATIONS, degradation

        assert list(DEGRADATIONS)[:2] == ["blur", "coarse"]
        images = recollect.Images(torch.rand(3, 3, 8, 8))
        truth = degradation("dimmed:0.5", images.shape)
        seen = recollect.observe(images, truth)
        assert torch.equal(seen.y, images.pixels * 0.5)
        recovery = recollect.KnownMask()(lambda x: x, seen.y, seen.truth)
        assert torch.allclose(recovery.estimate, images.pixels, atol=1e-3)
        try:
            degradation("dimm", images.shape)
        except recollect.InputError as error:
            assert "dimmed:0.5" in str(error)
        else:
            raise AssertionError("dimm is no degradation")
    """)  # fmt: skip


def test_a_model_format_is_recognised_by_content_and_by_suffix(installed: Path) -> None:
    run(installed, """
        from pathlib import Path
        from recollect.checkpoints import save_checkpoint
        from recollect.networks import NETWORKS

        network, x = NETWORKS["bottleneck"](), torch.rand(2, 3, 8, 8)
        save_checkpoint("linked.safetensors", network, {"loss": 1.0})
        for name in ("model.link", "model.txt"):
            Path(name).write_text("link linked.safetensors")
            assert torch.equal(recollect.open_model(name)(x), network(x))
        opened = recollect.open_model("model.link", input_range="-1,1")
        assert torch.equal(opened(x), (network(x * 2 - 1) + 1) / 2)
        try:
            recollect.open_model("nothing.link")
        except recollect.InputError as error:
            assert ".link" in str(error)
        else:
            raise AssertionError("there is no such file")
    """)  # fmt: skip


def test_a_source_is_loaded_by_its_address(installed: Path) -> None:
    run(installed, """
        from recollect.sources import SOURCES, reproduce, split

        images = recollect.load(SOURCES["static"].example)
        assert (len(images), images.shape, 0.2 < float(images.pixels.max()) < 0.25) == (4, (3, 8, 8), True)
        assert images.name == "static?count=4&seed=42&part=train&level=0.25"
        both = split("static?count=4")
        assert reproduce(both.record()).train.ids == both.train.ids
    """)  # fmt: skip


def recollect_prints(folder: Path, *commands: list[str]) -> str:
    """Run command lines one after the other; training that stops at its limit ends with 1."""
    return run(folder, f"""
        from recollect.cli import main

        for arguments in {commands!r}:
            sys.argv = ["recollect", *arguments]
            try:
                main()
            except SystemExit as ended:
                assert ended.code == int("--max-steps" in arguments), (arguments, ended.code)
    """)  # fmt: skip


def test_help_lists_all_kinds(installed: Path) -> None:
    commands = ["audit", "--help"], ["train", "--help"], ["denoiser", "train", "--help"]
    listed = " ".join(recollect_prints(installed, *commands).split())
    for name, summary in (
        ("one-pass", "takes what the model returns for the damaged image"),
        ("dimmed:0.5", "every value times a factor"),
        ("bottleneck", "two convolutions"),
        ("one-layer", "one convolution, told nothing of the noise"),
        ("model.link", "a text file that names a checkpoint"),
    ):
        assert f"{name}: {summary}" in listed
    assert "static." in listed  # the last of the names; recollect data list shows addresses


def test_the_package_of_the_page_works_as_it_stands(tmp_path: Path) -> None:
    """Its code and its entry points, installed as a package; the page's command then runs on the command line."""
    page = (Path(__file__).parents[1] / "docs/contributing/adding-a-format-or-source.md").read_text()
    blocks = {kind: re.findall(rf"^```{kind}\n(.*?)^```", page, re.S | re.M) for kind in ("python", "toml")}
    (tmp_path / "my_package.py").write_text("\n".join(blocks["python"]))
    about = tmp_path / "my_package-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    registered = tomllib.loads("\n".join(blocks["toml"]))["project"]["entry-points"]
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items()) for group, names in registered.items()]
    (about / "entry_points.txt").write_text("\n".join(lines))
    (tmp_path / "model.matrix").write_text("# matrix\n" + "\n".join(" ".join(["0.015625"] * 64) for _ in range(64)))
    (command,) = re.findall(r"^    recollect (audit model.matrix .*)$", page, re.M)
    recollect_prints(tmp_path, [*shlex.split(command), "--masks", "half", "--methods", "iterate", "--gamma", "0.5"])
    assert (tmp_path / "audit" / "report.html").exists()


@pytest.fixture(scope="module")
def printout(installed: Path) -> str:
    """Train the network on the source, and audit it through the format, with the method, under the degradation."""
    (installed / "trained.link").write_text("link run/best.safetensors")
    train = ["train", "static?count=4", "--network", "bottleneck", "--width", "6", "--max-steps", "2", "--out", "run"]
    audit = ["audit", "trained.link", "--train", "static?count=4", "--control", "static?count=2&part=control"]
    audit += ["--methods", "one-pass", "--masks", "dimmed:0.5", "--out", "audit", "--verbose"]
    return recollect_prints(installed, [*train, "--device", "cpu"], [*audit, "--device", "cpu"])


def test_the_printout_names_method_and_degradation(printout: str) -> None:
    assert "one-pass" in printout
    assert "dimmed:0.5" in printout


def test_the_tables_name_all_kinds(installed: Path, printout: str) -> None:
    saved = json.loads((installed / "audit" / "audit.json").read_text())
    about = saved["methods"]["one-pass"]
    assert (saved["main_method"], about["label"]) == ("one-pass", "one pass of the model")
    assert about["summary"] == "takes what the model returns for the damaged image"
    assert saved["settings"]["masks"] == {"dimmed:0.5": "every value times a factor"}
    network = {"kind": "bottleneck", "summary": "two convolutions", "channels": 3, "width": 6, "seed": 42}
    assert saved["model"]["network"] == network
    assert saved["model"]["format"] == {"kind": "link", "summary": "a text file that names a checkpoint"}
    assert saved["train"]["name"] == "static?count=4&seed=42&part=train&level=0.5"
    with (installed / "audit" / "images.csv").open() as file:
        rows = [(row["method"], row["mask"], row["image"].partition("-")[0]) for row in csv.DictReader(file)]
    assert rows == [("one-pass", "dimmed:0.5", "static")] * 6


def test_the_report_names_all_kinds(installed: Path, printout: str) -> None:
    page = html.unescape((installed / "audit" / "report.html").read_text())
    for text in (
        "one-pass", "one pass of the model", "takes what the model returns for the damaged image",
        "dimmed:0.5", "every value times a factor",
        "bottleneck", "two convolutions",
        "link", "a text file that names a checkpoint",
        "static?count=4&seed=42&part=train&level=0.5",
    ):  # fmt: skip
        assert f">{text}<" in page or f" {text}<" in page
    assert '"colours": {"one-pass": "violet"}' in page
