"""TorchScript models of many styles open, and compute exactly what they computed before."""

import warnings
from pathlib import Path

import pytest
import torch
from torch import nn

from recollect.models import open_model, probe_model
from tests.models.autoencoders import AUTOENCODERS
from tests.models.making import Several, agree, images, script, tiny

# Modes and messages; any other text that an operator takes could be the name of a file.


def made(name: str) -> nn.Module:
    torch.manual_seed(11)
    return AUTOENCODERS[name]().eval()


def compiled(model: nn.Module, style: str) -> torch.jit.ScriptModule:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls TorchScript deprecated, and warns of what a trace fixes
        if style == "traced":
            return torch.jit.trace(model, images(), check_trace=False)
        scripted = torch.jit.script(model)
        return torch.jit.freeze(scripted) if style == "frozen" else scripted


@pytest.mark.parametrize("style", ["scripted", "traced", "frozen"])
@pytest.mark.parametrize("name", AUTOENCODERS)
def test_an_autoencoder_computes_what_it_did(tmp_path: Path, name: str, style: str) -> None:
    original = compiled(made(name), style)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(original, tmp_path / "m.pt")
    opened = open_model(tmp_path / "m.pt", device="cpu")
    with torch.no_grad():
        assert torch.equal(opened(images()), original(images()))
        assert torch.allclose(opened(images()), made(name)(images()), atol=1e-6)


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16])
def test_other_kinds_of_numbers(tmp_path: Path, kind: torch.dtype) -> None:
    original = compiled(made("u-net with skips").to(kind), "scripted")
    original.save(str(tmp_path / "m.pt"))
    with torch.no_grad():
        assert torch.equal(open_model(tmp_path / "m.pt", device="cpu")(images().to(kind)), original(images().to(kind)))


def test_weights_stay_the_same_and_can_be_moved(tmp_path: Path) -> None:
    original = compiled(made("transformer"), "scripted")
    original.save(str(tmp_path / "m.pt"))
    opened = open_model(tmp_path / "m.pt", device="cpu")
    weights = original.state_dict()
    assert {name: weights[name].tolist() for name in weights} == {n: t.tolist() for n, t in opened.state_dict().items()}
    assert opened.to(torch.float64).position.dtype == torch.float64


@pytest.mark.parametrize("suffix", [".pt", ".ts"])
@pytest.mark.parametrize("traced", [False, True])
def test_torchscript(tmp_path: Path, traced: bool, suffix: str) -> None:
    path = script(tiny(), tmp_path / f"m{suffix}", images() if traced else None)
    opened = open_model(path)
    assert agree(opened, tiny())
    assert not opened.training
    assert probe_model(opened, images()).deterministic


def test_torchscript_of_a_vae(tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = Several()
    opened = open_model(script(model, tmp_path / "m.pt"), output="1.image")
    assert torch.allclose(opened(images()), model(images())[1]["image"], atol=1e-6)
