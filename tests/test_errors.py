"""Mistakes of someone with their own model and their own images: each ends in one sentence, none in a traceback."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import recollect
from recollect import Blind, Erasure, FullyConnected, Images, InputError, Iterate, Score, TiedTwoLayer, UNet
from recollect.attractors import firmly_nonexpansive, fixed_point_error, proximal_test, spectral_radius
from recollect.errors import first_line, is_number, is_whole, last_line
from recollect.methods import Refined
from recollect.models import open_model
from tests.auditing.making import images

SET = images(6, 1)
X = SET.pixels
F = FullyConnected(SET.shape, layers=2, width=8)
BLOCK = recollect.mask("block", SET.shape)
Y = recollect.observe(SET, BLOCK).y


class Sampling(nn.Module):
    """As VAEs do: the image, drawn anew each time, beside other things."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x + torch.randn_like(x), x.flatten(1).mean(1)


def audit(model: Any = F, **changes: Any) -> Any:
    quick: dict[str, Any] = {"train": SET, "masks": "block", "methods": [Iterate(limit=3)]}
    return recollect.audit(model, **quick | changes)


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    # masks
    "a mask that erases nothing": (lambda: audit(masks="random:0%"), "erases nothing, so there is nothing to recover"),
    "a mask that erases all": (lambda: audit(masks="random:100%"), "erases everything"),
    # models
    "a class of ours": (lambda: audit(FullyConnected), "an object, not the class FullyConnected"),
    "a class of one's own": (lambda: audit(Sampling), r"make one, with Sampling\(...\)"),
    # numbers
    "noise in words": (lambda: recollect.observe(SET, BLOCK, noise_std="x"), "zero or more, got 'x'"),  # type: ignore[arg-type]
    "noise of an audit": (lambda: audit(noise_std="x"), "zero or more, got 'x'"),
    "no noise at all": (lambda: audit(noise_std=None), "zero or more, got None"),
    "attractors in words": (lambda: audit(attractors="all"), "number of images, zero or more; got 'all'"),
    "half an attractor": (lambda: audit(attractors=1.5), "number of images, zero or more; got 1.5"),
    "gamma as a list": (lambda: audit(gamma=[1]), r"gamma is a number or 'auto', not \[1\]"),
    "a negative seed": (lambda: audit(seed=-1), "A seed is a whole number, zero or more; got -1"),
    "a seed of a mask": (lambda: recollect.mask("random:0.3", SET.shape, seed=-1), "seed is a whole number"),
    "a seed in words": (lambda: recollect.mask("random:0.3", SET.shape, seed="x"), "got 'x'"),  # type: ignore[arg-type]
    "a seed of noise": (lambda: recollect.observe(SET, BLOCK, noise_std=0.1, seed=-1), "seed is a whole number"),
    "a seed of weights": (lambda: FullyConnected(SET.shape, layers=2, width=8, seed=-1), "seed is a whole number"),
    "a count in words": (lambda: recollect.mask("random-each:0.3", SET.shape, count="x"), "count='x'"),  # type: ignore[arg-type]
    "a threshold in words": (lambda: Score.of(X, X).rate("low"), "A threshold is a mean square error"),  # type: ignore[arg-type]
    "a tolerance in words": (lambda: Iterate(tolerance="low"), "zero or more; got 'low'"),  # type: ignore[arg-type]
    "polishing in words": (lambda: Refined(polish_steps="many"), "got 'many'"),  # type: ignore[arg-type]
    "a batch in words": (lambda: open_model(F, batch="all"), "1 or more; got 'all'"),  # type: ignore[arg-type]
    # shapes and sizes
    "images for a shape": (
        lambda: recollect.mask("block", X),  # type: ignore[arg-type]
        r"such as images\.shape; got a Tensor of shape \(\d+, 3, \d+, \d+\)\.",
    ),
    "widths of one number": (lambda: UNet(widths=8), r"several widths, such as .*; got 8"),  # type: ignore[arg-type]
    "a number for a folder": (lambda: audit(out=3), "out is a folder for results, got 3"),
    "a set that there is not": (
        lambda: audit().rate("test", "block", "iterate", 1),
        "no cell test, block, iterate; it has the sets train, the masks block and the methods iterate",
    ),
    "a size for a shape": (lambda: recollect.mask("block", 8), "C x H x W, such as images.shape; got 8"),  # type: ignore[arg-type]
    "a shape in words": (lambda: recollect.mask("block", "3x8x8"), "got '3x8x8'"),  # type: ignore[arg-type]
    "a negative side": (lambda: recollect.mask("block", (3, -8, 8)), r"got \(3, -8, 8\)"),
    "a network of a size": (lambda: FullyConnected(8), "such as images.shape"),  # type: ignore[arg-type]
    "layers in words": (lambda: FullyConnected(SET.shape, layers="ten"), "got 'ten'"),  # type: ignore[arg-type]
    "a negative width": (lambda: FullyConnected(SET.shape, width=-3), "width -3"),
    "a U-Net of nothing": (lambda: UNet(widths=()), "channels and widths of 1 or more"),
    "a matrix in words": (lambda: TiedTwoLayer("W"), "W is an m x d matrix, got a str"),  # type: ignore[arg-type]
    "another size": (lambda: Blind()(F, torch.rand(2, 3, 9, 9)), "takes images of 3x8x8; these are 3x9x9"),
    "another size, audited": (lambda: audit(train=torch.rand(6, 3, 9, 9)), "takes images of 3x8x8; these are 3x9x9"),
    # things in place of other things
    "a start by name": (lambda: Blind(start="half_kept"), "start is a function .* got 'half_kept'"),  # type: ignore[arg-type]
    "a class for a method": (lambda: audit(methods=[Iterate]), r"write Iterate\(\) in place of Iterate"),
    "arrays to score": (lambda: Score.of(X.numpy(), X.numpy()), "between tensors, .* got ndarray"),  # type: ignore[arg-type]
    "Images to score": (lambda: Score.of(SET, SET), "between tensors, .* got Images"),  # type: ignore[arg-type]
    "nothing to score": (lambda: Score.of(X[:0], X[:0]).accurate.value, "at least one image, and there is none"),
    "a model by name": (lambda: fixed_point_error("f", X), "a str is not one"),  # type: ignore[arg-type]
    "weights for a model": (lambda: audit(F.state_dict()), "got an OrderedDict"),
    "an iterator for images": (lambda: audit(train=iter(X)), "Cannot make images of"),
    # values
    "0 to 255": (lambda: audit(train=X * 255), "divide by 255"),
    "-1 to 1": (lambda: audit(train=X * 2 - 1), r"use \(pixels \+ 1\) / 2"),
    "a model of -1 to 1": (lambda: audit(lambda x: x if x.min() < 0 else x * 0 + 5), "input_range='-1,1'"),
    "other numbers": (lambda: proximal_test(F, X[0].double()), r"convert one of them, for example autoencoder\.to"),
    "other numbers still": (lambda: spectral_radius(F, X[0].half()), "weights are torch.float32"),
    "bytes": (lambda: proximal_test(F, (X[0] * 255).byte()), "must be floating point"),
    "pairs of two kinds": (lambda: firmly_nonexpansive(F, X, X.double()), "weights are torch.float32"),
    # models
    "a VAE": (lambda: audit(Sampling()), "tuple of 2 parts .* output=0"),
    "half precision": (lambda: audit(FullyConnected(SET.shape, layers=2, width=8).half()), r"call model.float\(\)"),
    "no weights yet": (lambda: audit(FullyConnected(SET.shape, layers=2, width=8).to("meta")), "load them first"),
    "a device that is none": (lambda: open_model(F, device="gpu0"), "The device gpu0 cannot be used"),
    # paths
    "no such path": (lambda: recollect.load(Path("nowhere")), "There is no folder .*nowhere"),
    "a folder for an array": (lambda: audit(train="here.npy"), "There is no file here.npy"),
    "a file for a folder": (lambda: audit(train="folder:text.txt"), r"text.txt is a file, not a folder; .* \.npy"),
    "a web address": (lambda: audit(train="https://example.org/a.npy?x=1"), "No source opens an address on the web"),
    "a script for a module": (lambda: audit("models/vae.py:build"), "so write models.vae:build"),
    "an option of the model": (lambda: audit(device="mps"), "device is an option of the model .*recollect.open_model"),
    "a chunk that is no number": (lambda: audit(chunk="a"), "chunk is a number of images, 1 or more; got 'a'"),
    "items without an image": (lambda: audit(train=[{"label": 1}] * 4), "keys label; none of these holds an image"),
    "an empty folder": (lambda: audit(train="folder:empty"), "The folder empty holds nothing"),
    "a folder for a model": (lambda: audit("empty"), "empty is a folder, not a file"),
    "a file for results": (lambda: audit(out="text.txt"), "text.txt is a file; results need a folder"),
}


@pytest.mark.parametrize(("make", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_sentence(
    make: Callable[[], Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("empty", "here.npy"):
        (tmp_path / folder).mkdir()
    (tmp_path / "text.txt").write_text("no images\n")
    with pytest.raises(InputError, match=words) as mistake:
        make()
    assert "\n" not in str(mistake.value)


def test_what_is_a_number() -> None:
    assert all(is_number(value) for value in (0, -1.5, np.float32(1), np.int64(2)))
    assert not any(is_number(value) for value in (True, "1", None, 1j, torch.ones(1)))
    assert all(is_whole(value, 2) for value in (2, np.int64(2), 10**30))
    assert not any(is_whole(value, 2) for value in (1, 2.0, True, "2", None))


def test_one_line_is_taken_of_another_library_and_no_control_character_reaches_the_terminal() -> None:
    assert first_line(ValueError("a\x1b[31mb\nsecond")) == r"a\x1b[31mb"
    assert first_line(ValueError("It does not fit:\n\tsize mismatch\nthird")) == "It does not fit: size mismatch"
    of_onnx = "Got invalid dimensions for input: x for the following indices\n index: 2 Got: 8 Expected: 16\n Fix"
    assert first_line(ValueError(of_onnx)).endswith("for the following indices index: 2 Got: 8 Expected: 16")
    wrapped = (
        "The following operation failed in the TorchScript interpreter.\nTraceback\n  code\nRuntimeError: shapes\n"
    )
    assert first_line(RuntimeError(wrapped)) == "RuntimeError: shapes"
    assert last_line(ValueError("Traceback\n  why\x1b\n")) == r"why\x1b"
    assert first_line(ValueError()) == last_line(ValueError("\n")) == "ValueError"
    assert len(first_line(ValueError("x" * 1000))) == 300


def test_what_is_not_refused() -> None:
    """A path for images, a tensor to train on, and a model in training mode are no mistakes."""
    training = FullyConnected(SET.shape, layers=2, width=8)
    assert recollect.train_to_loss(training, X, until=0.5).reached  # type: ignore[arg-type]
    training.train()
    assert isinstance(recollect.audit(training, train=X, masks="block", methods="iterate").headline, str)
    assert training.training
    assert isinstance(Images.of(X), Images)
    assert isinstance(BLOCK, Erasure)
