from pathlib import Path

import numpy as np
import pytest

from recollect import InputError
from recollect.models import open_model
from recollect.models.formats import FORMATS
from tests.models.making import export, script, tiny


@pytest.mark.parametrize("name", ["m.onnx", "m.pt2", "m.pt", "m.safetensors", "m.ts", "m.h5", "m.npz"])
def test_a_broken_file_is_an_error_in_words(tmp_path: Path, name: str) -> None:
    for content in (b"", b"nonsense", b"PK\x03\x04 nonsense"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=name):
            open_model(tmp_path / name)


@pytest.mark.parametrize("name", ["m.pt", "m.onnx", "m.txt"])
def test_an_empty_file_is_called_so(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    with pytest.raises(InputError, match=f"{name} is an empty file"):
        open_model(tmp_path / name)


@pytest.mark.parametrize("name", ["m.pt2", "m.pt"])
def test_a_truncated_program_is_an_error_in_words(tmp_path: Path, name: str) -> None:
    path = export(tiny(), tmp_path / name) if name == "m.pt2" else script(tiny(), tmp_path / name)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InputError, match=name):
        open_model(path)


def test_every_format_says_what_it_is() -> None:
    asked_in_turn = [
        "diffusion", "autoencoder-folder", "masked-autoencoder", "checkpoint", "factory",
        "exported-program", "torchscript", "onnx", "weights", "tensorflow", "pickle",
    ]  # fmt: skip
    assert [name for name in FORMATS if name in asked_in_turn] == asked_in_turn
    assert all(model_format.summary and model_format.example for model_format in FORMATS.values())


def test_what_no_format_takes_is_refused_with_the_known_suffixes(tmp_path: Path) -> None:
    np.savez(tmp_path / "arrays.bin", a=np.zeros(2))
    (tmp_path / "notes.txt").write_text("hello")
    known = r"\.safetensors, \.pt2, \.pt, \.ts, \.onnx, \.pth"
    for name, problem in [
        ("absent.pt", "does not exist"),
        (".", r"is a folder, not a file, and no config\.json in it names a network"),
        ("arrays.bin.npz", "holds arrays, not a model"),
        ("notes.txt", "is not a file of a known kind"),
    ]:
        with pytest.raises(InputError, match=f"{problem}; a model is .*{known}"):
            open_model(tmp_path / name)


def test_a_folder_that_holds_the_folder_of_a_network_names_it(tmp_path: Path) -> None:
    (tmp_path / "vae").mkdir()
    (tmp_path / "vae" / "config.json").write_text('{"_class_name": "AutoencoderKL"}')
    with pytest.raises(InputError, match=rf"is a folder, not a file, and the network in it is {tmp_path}/vae; a model"):
        open_model(tmp_path)
    with pytest.raises(InputError, match="No model is named; a model is a file"):
        open_model("")


def test_an_address_on_the_web_is_refused() -> None:
    with pytest.raises(InputError, match=r"download https://example\.com/m\.pt and give its path.* Hugging Face hub"):
        open_model("https://example.com/m.pt")
