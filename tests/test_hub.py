from pathlib import Path

import pytest

from recollect import InputError, open_model
from recollect.hub import fetch, is_hub_name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("google/ddpm-cifar10-32", True),
        ("a/b.c", True),
        ("model", False),
        ("./a/b", False),
        ("a/b/c", False),
        ("~/model", False),
        ("../model", False),
        ("a/../b", False),
        ("package.module:factory", False),
    ],
)
def test_the_form_of_a_name(text: str, expected: bool) -> None:
    assert is_hub_name(text) == expected


def test_what_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match=r"no file or folder some/vae, and no model of that name could be fetched"):
        open_model("some/vae")
    with pytest.raises(InputError, match="There is no folder some/folder with a model in it"):
        fetch(Path("some/folder"))
    with pytest.raises(InputError, match=r"runs/model\.pt does not exist"):
        open_model("runs/model.pt")  # a file is meant, so nothing is looked up


def test_a_name_opens_as_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub's client finds a model in its cache without a network, laid out as it keeps it."""
    pytest.importorskip("huggingface_hub")
    folder = tmp_path / "models--some--model"
    (folder / "snapshots" / "abc").mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("abc")
    (folder / "snapshots" / "abc" / "config.json").write_text('{"_class_name": "UNet2DModel"}')
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(InputError, match=r"snapshots/abc holds a UNet2DModel; autoencoders of diffusers that open are"):
        open_model("some/model")
