import zipfile
from pathlib import Path

import pytest

from recollect import InputError
from recollect.models import open_model

HDF5 = b"\x89HDF\r\n\x1a\n" + bytes(20)


def keras(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("metadata.json", "config.json", "model.weights.h5"):
            archive.writestr(name, b"{}")
    return path


def saved_model(path: Path) -> Path:
    path.mkdir()
    (path / "saved_model.pb").write_bytes(b"\x08\x01")
    return path


@pytest.mark.parametrize(
    ("name", "content", "flag", "new"),
    [
        ("m.h5", HDF5, "--keras", "m.onnx"),
        ("m.bin", HDF5, "--keras", "m.onnx"),
        ("m.tflite", b"\x1c\0\0\0TFL3" + bytes(20), "--tflite", "m.onnx"),
        ("m.keras", None, "--keras", "m.onnx"),
        ("renamed.zip", None, "--keras", "renamed.onnx"),
        ("folder", None, "--saved-model", "folder.onnx"),
    ],
)
def test_a_model_of_tensorflow_is_told_with_its_way_to_onnx(
    name: str, content: bytes | None, flag: str, new: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    elif name == "folder":
        saved_model(path)
    else:
        keras(path)
    with pytest.raises(InputError) as refused:
        open_model(path)
    sentence = str(refused.value)
    assert f"python -m tf2onnx.convert {flag} {path} --output {new}" in sentence
    assert f"give {new} with layout='nhwc' (--layout nhwc)" in sentence


def test_other_archives_are_not_taken_for_one(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.zip", "w") as archive:
        archive.writestr("config.json", b"{}")
    with pytest.raises(InputError, match="is an archive of something else"):
        open_model(tmp_path / "m.zip")


def test_weights_of_keras_are_refused_beside_a_factory_too(tmp_path: Path) -> None:
    (tmp_path / "w.h5").write_bytes(HDF5)
    with pytest.raises(InputError, match="is a model of Keras or TensorFlow"):
        open_model("torch.nn:Identity", weights=tmp_path / "w.h5")
