"""What changes between a stopped or finished audit and the next one in its folder: nothing old is mixed in."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from recollect.auditing import Audit, audit
from recollect.diffusion import can_open_priors, open_denoiser
from recollect.methods import DDNM
from recollect.records import read_records
from tests.auditing.making import comparable_facts, images
from tests.diffusion.folders import write_prior
from tests.models.making import Tiny, export, script, tiny

FACTORY = """
import torch
class Made(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((1,), 0.5))
    def forward(self, x):
        return self.weight * x + {offset}
"""


class Relu(Tiny):
    """The weights of Tiny in another program."""

    def forward(self, x: Tensor) -> Tensor:
        return self.outside(torch.relu(self.inside(x)))


def relu() -> Relu:
    model = Relu()
    model.load_state_dict(tiny().state_dict())
    return model.eval()


def factory(folder: Path, changed: bool) -> dict[str, Any]:
    sys.modules.pop("a_changed_factory", None)
    (folder / "a_changed_factory.py").write_text(FACTORY.format(offset=0.25 if changed else 0.125))
    return {"model": "a_changed_factory:Made"}


def torchscript(folder: Path, changed: bool) -> dict[str, Any]:
    return {"model": str(script(relu() if changed else tiny(), folder / "model.pt"))}


def exported(folder: Path, changed: bool) -> dict[str, Any]:
    return {"model": str(export(relu() if changed else tiny(), folder / "model.pt2"))}


def schedule(folder: Path, changed: bool) -> dict[str, Any]:
    if not can_open_priors():
        pytest.skip("needs diffusers")
    torch.manual_seed(0)
    write_prior(folder / "prior", "linear" if changed else "squaredcos_cap_v2")
    return {"model": tiny(), "methods": {"ddnm": DDNM(open_denoiser(folder / "prior"), steps=2)}}


def run(out: Path, model: Any, **more: Any) -> Audit:
    settings: dict[str, Any] = {"methods": "iterate", "masks": "half"}
    return audit(model, train=images(4, 1), control=images(3, 2), out=out, **settings | more)


def stop_after_one_cell(out: Path, **request: Any) -> None:
    def progress(_doing: str, _done: float, _total: float) -> None:
        if list((out / "cells").glob("*.json")):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(out, progress=progress, **request)
    assert list((out / "cells").glob("*.json"))


@pytest.mark.parametrize("before", [stop_after_one_cell, run])
@pytest.mark.parametrize("change", [factory, torchscript, exported, schedule])
def test_a_change_starts_a_new_audit_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: Callable[..., Any], change: Callable[..., dict[str, Any]]
) -> None:
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "audit"
    sentences: list[str] = []
    before(out, **change(tmp_path, False))
    request = change(tmp_path, True)
    run(out, tell=sentences.append, **request)
    run(tmp_path / "fresh", **request)
    assert comparable_facts(out) == comparable_facts(tmp_path / "fresh")
    assert sentences == [
        f"{out} held an audit of another model, other images or other settings; it was moved to "
        f"{out / 'earlier' / '1'}, and a new audit starts."
    ]


def write_pictures(folder: Path, names: list[str]) -> None:
    folder.mkdir()
    for number, name in enumerate(names):
        values = (images(len(names), 1).pixels[number] * 255).byte().permute(1, 2, 0).numpy()
        Image.fromarray(np.ascontiguousarray(values)).save(folder / name)


def test_a_renamed_file_has_its_new_name_in_every_record(tmp_path: Path) -> None:
    write_pictures(tmp_path / "train", ["a.png", "b.png", "c.png"])
    settings: dict[str, Any] = {"methods": "iterate", "masks": "half"}
    audit(tiny(), train=tmp_path / "train", out=tmp_path / "out", **settings)
    (tmp_path / "train" / "b.png").rename(tmp_path / "train" / "beta.png")
    again = audit(tiny(), train=tmp_path / "train", out=tmp_path / "out", tell=pytest.fail, **settings)
    ids = ["a.png", "beta.png", "c.png"]
    assert [record.ids for record in again.records] == [ids] * len(again.records)
    named = {name for record in again.records for name in record.nearest or []}
    assert named
    assert named <= set(ids)
    assert [record.ids for record in read_records(tmp_path / "out" / "cells")] == [ids] * len(again.records)
    assert "b.png" not in (tmp_path / "out" / "images.csv").read_text()


def test_another_number_of_threads_resumes_the_same_audit(tmp_path: Path) -> None:
    """Rounding may differ by threads; one weight that is changed by a rounding error stands for it here."""

    def model(gain: float) -> Callable[[Tensor], Tensor]:
        return lambda x: x * gain

    first = run(tmp_path, model(0.5))
    again = run(tmp_path, model(0.5 * (1 + 2e-7)), tell=pytest.fail)
    assert [record.key for record in again.records] == [record.key for record in first.records]
