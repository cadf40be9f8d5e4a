import sys
from pathlib import Path

import pytest
import torch

from recollect import InputError
from recollect.models import open_model
from tests.models.making import agree, images, tiny


def test_a_factory_alone(code: Path) -> None:
    assert agree(open_model("own_code:tiny"), tiny())
    assert agree(open_model("own_code:ready"), tiny())
    assert next(open_model("own_code:half").parameters()).dtype == torch.float32
    assert torch.equal(open_model("own_code:plain")(images()), images() / 2)
    assert str(code) not in sys.path


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("own_code:absent", "has no absent; it has"),
        ("no_code_here:tiny", "There is no module no_code_here"),
        ("own_code:number", "is an int"),
        ("own_code:needy", "called without arguments and raised TypeError"),
        ("own_code:broken", "raised KeyError: 'no such setting'"),
        ("own_code:nothing", "returned an int"),
    ],
)
def test_a_factory_that_builds_nothing_is_refused(code: Path, what: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_model(what)


def test_a_key_without_a_file_of_weights_is_refused(code: Path) -> None:
    with pytest.raises(InputError, match=r"names an entry of a file of weights, and none is given; add --weights FILE"):
        open_model("own_code:tiny", weights_key="ema")


def test_a_function_takes_no_weights(code: Path) -> None:
    with pytest.raises(InputError, match="own_code:plain built a function, which takes no weights; leave them out"):
        open_model("own_code:plain", weights="w.pt")
