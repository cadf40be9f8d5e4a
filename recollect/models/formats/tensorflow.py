"""Models of Keras and TensorFlow, which are recognised to be refused: their export to ONNX opens."""

from __future__ import annotations

from typing import NoReturn

from recollect.errors import InputError
from recollect.models.formats.base import ModelFormat, ModelReference
from recollect.models.wording import option

FLAGS = {".keras": "--keras", ".h5": "--keras", ".hdf5": "--keras", ".tflite": "--tflite"}  # of tf2onnx, by suffix
HDF5, LITE = b"\x89HDF", b"TFL3"  # how files begin, and what follows the first four bytes
KERAS = "model.weights.h5"  # in a .keras archive
SAVED_MODEL = ("saved_model.pb", "saved_model.pbtxt")  # in a folder


def is_tensorflow(model: ModelReference) -> bool:
    """Return whether a file or a folder holds a model of Keras or TensorFlow."""
    if model.path.is_dir():
        return _is_saved_model(model)
    if model.suffix in FLAGS and model.path.is_file():
        return True
    return model.start[:4] == HDF5 or model.start[4:8] == LITE or KERAS in model.entries


def refuse_tensorflow(model: ModelReference) -> NoReturn:
    """Say how the model becomes one that opens."""
    flag = "--saved-model" if _is_saved_model(model) else FLAGS.get(model.suffix, "--keras")
    new = model.path.with_suffix(".onnx").name
    raise InputError(
        f"{model.path} is a model of Keras or TensorFlow, whose export to ONNX opens. After pip install tf2onnx run: "
        f"python -m tf2onnx.convert {flag} {model.path} --output {new} (in Keras 3: model.export({new!r}, "
        f"format='onnx')). Then give {new} with {option('layout', 'nhwc')}, since its channels come last."
    )


def _is_saved_model(model: ModelReference) -> bool:
    return any((model.path / name).is_file() for name in SAVED_MODEL)


FORMAT = ModelFormat(
    name="tensorflow",
    summary="a model of Keras or TensorFlow, which is refused with a way to convert it",
    example="model.keras",
    recognises=is_tensorflow,
    open=refuse_tensorflow,
    read_weights=refuse_tensorflow,
    order=85,
    listed=False,
)
