"""A package outside the repository adds a network, a degradation, a model format and a source, each in one file."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

FILES = {
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
    """,
    "model_format.py": """
        from recollect.models.formats import ModelFormat

        def open_scale(model):
            factor = float(model.path.read_text().removeprefix("scale "))
            return lambda images: images * factor

        FORMAT = ModelFormat(
            name="scale",
            summary="a text file with a factor",
            example="model.scale",
            recognises=lambda model: model.start.startswith(b"scale "),
            open=open_scale,
            suffixes=(".scale",),
        )
    """,
    "source.py": """
        import torch
        from recollect.sources import Catalogue, Source

        def list_images(path, address):
            level = float(address.parameters["level"])

            def read(positions, progress):
                progress(len(positions), len(positions))
                return torch.full((len(positions), 3, 8, 8), level)

            return Catalogue([f"flat-{i}" for i in range(10)], read)

        SOURCE = Source(
            name="flat",
            summary="images of one grey level",
            example="flat?level=0.25&count=4",
            open=list_images,
            parameters=("level",),
            defaults={"level": "0.5"},
        )
    """,
}

ENTRY_POINTS = """
    [recollect.networks]
    bottleneck = third_party.network:Bottleneck

    [recollect.degradation]
    dimmed = third_party.degradation:Dimmed

    [recollect.models.formats]
    scale = third_party.model_format:FORMAT

    [recollect.sources]
    flat = third_party.source:SOURCE
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with what pip leaves behind for such a package."""
    package = tmp_path / "third_party"
    package.mkdir()
    for name, code in {"__init__.py": "", **FILES}.items():
        (package / name).write_text(textwrap.dedent(code))
    about = tmp_path / "third_party-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(textwrap.dedent(ENTRY_POINTS))
    return tmp_path


def run(folder: Path, code: str) -> None:
    """Run code in a process of its own, since a registry is read once."""
    setup = f"import sys\nsys.path.insert(0, {str(folder)!r})\nimport torch, recollect\n"
    command = [sys.executable, "-W", "error", "-c", setup + textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr


def test_a_network_is_built_saved_and_opened(installed: Path) -> None:
    run(installed, """
        from recollect.checkpoints import load_checkpoint, save_checkpoint
        from recollect.networks import NETWORKS

        assert list(NETWORKS) == ["fc", "unet", "bottleneck"]
        network = NETWORKS["bottleneck"].for_images((1, 8, 8), width=6)
        assert network.settings == {"channels": 1, "width": 6, "seed": 42}
        save_checkpoint("network.safetensors", network, {"loss": 1.0})
        x = torch.rand(2, 1, 8, 8)
        for again in (load_checkpoint("network.safetensors").network, recollect.open_model("network.safetensors")):
            assert type(again) is NETWORKS["bottleneck"]
            assert torch.equal(again(x), network(x))
    """)  # fmt: skip


def test_a_degradation_is_asked_for_by_name_and_recovered_from(installed: Path) -> None:
    run(installed, """
        from recollect.degradation import DEGRADATIONS, degradation

        assert list(DEGRADATIONS) == ["blur", "coarse", "dimmed"]
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

        x = torch.rand(2, 3, 8, 8)
        for name in ("half.scale", "half.txt"):
            Path(name).write_text("scale 0.5")
            assert torch.equal(recollect.open_model(name)(x), x * 0.5)
        assert torch.equal(recollect.open_model("half.scale", input_range="-1,1")(x), (x - 0.5) / 2 + 0.5)
        try:
            recollect.open_model("nothing.scale")
        except recollect.InputError as error:
            assert ".scale" in str(error)
        else:
            raise AssertionError("there is no such file")
    """)  # fmt: skip


def test_a_source_is_loaded_by_its_address(installed: Path) -> None:
    run(installed, """
        from recollect.sources import SOURCES, reproduce, split

        images = recollect.load(SOURCES["flat"].example)
        assert (len(images), images.shape, float(images.pixels.mean())) == (4, (3, 8, 8), 0.25)
        assert images.name == "flat?count=4&seed=42&part=train&level=0.25"
        both = split("flat?count=4")
        assert reproduce(both.record()).train.ids == both.train.ids
    """)  # fmt: skip
