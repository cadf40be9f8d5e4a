"""Real Keras models: channels last, as Keras has them, live with its torch backend and exported by it to ONNX."""

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras", reason="needs Keras 3: pip install keras")

from recollect import Images, InputError, Iterate  # noqa: E402  # Keras reads its backend when it is imported
from recollect.auditing import audit  # noqa: E402
from recollect.models import open_model, probe_model  # noqa: E402
from tests.auditing.making import images  # noqa: E402
from tests.cli.running import here  # noqa: E402

TRAIN, SHARPNESS = images(6, 1), 60.0


def memorizer(*, logits: bool = False) -> Any:
    """Softmax attention over the training images as two dense layers: each training image is a fixed point."""
    stored = TRAIN.pixels.permute(0, 2, 3, 1).flatten(1).double().numpy()
    values = np.log(stored / (1 - stored).clip(1e-9)) if logits else stored
    layers = keras.layers
    attend, recall = layers.Dense(6, activation="softmax"), layers.Dense(192)
    model = keras.Sequential([layers.Input((8, 8, 3)), layers.Flatten(), attend, recall, layers.Reshape((8, 8, 3))])
    attention = [2 * SHARPNESS * stored.T, -SHARPNESS * np.square(stored).sum(1)]
    model.set_weights([*attention, values, np.zeros(192)])
    return model


def exported(model: Any, path: Path) -> Path:
    model(TRAIN.pixels.permute(0, 2, 3, 1))  # Keras exports only a model that was called
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch's exporter, on which Keras calls
        model.export(path, format="onnx", verbose=False)
    return path


@pytest.mark.parametrize("kind", ["live", "onnx"])
def test_a_keras_model_is_audited_channels_last(kind: str, tmp_path: Path) -> None:
    model = memorizer() if kind == "live" else exported(memorizer(), tmp_path / "keras.onnx")
    with pytest.raises(InputError, match=r"layout='nhwc' \(--layout nhwc\)"):
        probe_model(open_model(model), TRAIN)
    opened = open_model(model, layout="nhwc")
    assert probe_model(opened, TRAIN).mse < 1e-10
    found = audit(opened, train=TRAIN, control=images(5, 2), masks="half", methods=[Iterate(limit=50)])
    assert (found.rate("train", "half", "iterate").count, found.rate("control", "half", "iterate").count) == (6, 0)


def test_a_keras_model_that_returns_logits(tmp_path: Path) -> None:
    path = exported(memorizer(logits=True), tmp_path / "keras.onnx")
    with pytest.raises(InputError, match=r"set layout='nhwc' \(--layout nhwc\), with which it runs"):
        probe_model(open_model(path), TRAIN)
    with pytest.raises(InputError, match=r"The output looks wrong: .* with output='sigmoid' \(--output sigmoid\)"):
        probe_model(open_model(path, layout="nhwc"), TRAIN)
    for name, pixels in (("train", TRAIN.pixels), ("control", images(5, 2).pixels)):
        np.save(tmp_path / f"{name}.npy", pixels.numpy())
    result = here(
        "audit", str(path), "--layout", "nhwc", "--output", "sigmoid", "--train", str(tmp_path / "train.npy"),
        "--control", str(tmp_path / "control.npy"), "--masks", "half", "--methods", "iterate", "--out",
        str(tmp_path / "audit"),
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    headline = "Attacks recover 6 of 6 training images from this model (95% interval 61-100%). Of 5"
    assert headline in " ".join(result.stdout.split())


def test_a_keras_network_of_convolutions(tmp_path: Path) -> None:
    keras.utils.set_random_seed(1)
    layers = keras.layers
    encode = layers.Conv2D(4, 3, strides=2, padding="same", activation="relu")
    decode = layers.Conv2DTranspose(3, 2, strides=2, activation="sigmoid")
    model = keras.Sequential([layers.Input((8, 8, 3)), encode, decode])
    outputs = []
    for form in (model, exported(model, tmp_path / "keras.onnx")):
        with pytest.raises(InputError, match=r"cannot take images of 3x8x8 .*--layout nhwc"):
            probe_model(open_model(form), TRAIN)
        with torch.no_grad():
            outputs.append(open_model(form, layout="nhwc")(TRAIN.pixels))
    assert outputs[0].shape == TRAIN.pixels.shape
    assert torch.allclose(outputs[0], outputs[1], atol=1e-6)
    assert isinstance(Images(outputs[0]), Images)


@pytest.mark.parametrize("kind", ["live", "onnx"])
def test_a_keras_network_of_signals(kind: str, tmp_path: Path) -> None:
    keras.utils.set_random_seed(1)
    layers, signals = keras.layers, Images(torch.rand(20, 2, 12, generator=torch.Generator().manual_seed(1)))
    model = keras.Sequential([layers.Input((12, 2)), layers.Conv1D(2, 3, padding="same", activation="sigmoid")])
    values = signals.pixels.permute(0, 2, 1)
    expected = model(values).detach().permute(0, 2, 1)
    if kind == "onnx":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.export(tmp_path / "keras.onnx", format="onnx", verbose=False)
    form = model if kind == "live" else tmp_path / "keras.onnx"
    with pytest.raises(InputError, match=r"--layout nhwc"):
        probe_model(open_model(form), signals)
    opened = open_model(form, layout="nhwc")
    assert torch.allclose(opened(signals.pixels).detach(), expected, atol=1e-6)
    found = audit(opened, train=signals, masks="random:0.5", methods=[Iterate(limit=3)])
    assert found.rate("train", "random:0.5", "iterate").total == 20


def test_rows_have_no_layout() -> None:
    with pytest.raises(InputError, match="rows have no channels"):
        probe_model(open_model(lambda x: x, layout="nhwc"), Images(torch.rand(5, 7)))
