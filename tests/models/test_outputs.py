"""Which part of what a model returns is the image."""

from collections import namedtuple
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from recollect import InputError
from recollect.models import open_model, probe_model
from tests.models.making import images, tiny

Named = namedtuple("Named", "hidden reconstruction")


@dataclass
class Decoded:
    sample: Tensor
    loss: float = 0.5


@pytest.mark.parametrize(
    ("returned", "output", "suggested"),
    [
        (lambda x: (x[:, :1], x, 3), 1, "--output 1"),
        (lambda x: [x], 0, "--output 0"),
        (lambda x: {"mu": x[:1], "reconstruction": x}, "reconstruction", "--output reconstruction"),
        (lambda x: Decoded(x), "sample", "--output sample"),
        (lambda x: SimpleNamespace(sample=x), "sample", "--output sample"),
        (lambda x: Named(None, x), "reconstruction", "--output reconstruction"),
    ],
)
def test_outputs_of_every_form(returned: Any, output: str | int, suggested: str) -> None:
    with pytest.raises(InputError, match=suggested):
        probe_model(open_model(returned), images())
    assert torch.equal(open_model(returned, output=output)(images()), images())
    assert torch.equal(open_model(returned, output=str(output))(images()), images())
    with pytest.raises(InputError, match=r"There is no output='absent'.*" + suggested):
        open_model(returned, output="absent")(images())


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda x: {"loss": x.mean(), "logits": x.flatten(1)}, "--output logits"),
        (lambda x: {"loss": x.mean(), "latent": x[:, :1], "decoder": {"sample": x}}, "--output decoder"),
        (lambda x: {"loss": x.mean(), "epoch": 3}, "no tensor was found that could hold the images"),
    ],
)
def test_the_likeliest_part_is_proposed(returned: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        probe_model(open_model(returned), images())


def test_outputs_within_outputs() -> None:
    def nested(x: Tensor) -> Any:
        return x[:, :1], {"decoded": Decoded(x)}

    assert torch.equal(open_model(nested, output="1.decoded.sample")(images()), images())
    with pytest.raises(InputError, match=r"--output 1.decoded.sample"):
        open_model(nested, output="1.decoded")(images())
    with pytest.raises(InputError, match=r"tensor, which has no part '0'; leave output=0"):
        open_model(tiny(), output=0)(images())
    with pytest.raises(InputError, match="a NoneType, in which no tensor"):
        open_model(lambda x: None)(images())
