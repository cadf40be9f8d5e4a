from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from recollect import FullyConnected, InputError
from recollect.auditing import AuditRequest, run_audit
from recollect.auditing.inputs import choose_settings, open_inputs
from recollect.auditing.progress import no_progress
from recollect.auditing.request import STARTS
from recollect.auditing.store import Store
from recollect.auditing.tuning import GAMMAS
from recollect.checkpoints import save_checkpoint
from recollect.methods import Blind, Iterate
from recollect.models import Adapted
from tests.auditing.making import images
from tests.planted import Memorizer

TRAIN = images(8, 1)


def request(**settings: Any) -> AuditRequest:
    return AuditRequest(**{"model": Memorizer(TRAIN.pixels), "train": TRAIN, "control": images(3, 2), **settings})


def test_everything_is_opened() -> None:
    inputs = open_inputs(request(masks="half,blur:1", methods="blind,iterate"))
    assert {name: len(s) for name, s in inputs.sets.items()} == {"train": 8, "control": 3}
    assert [(d.set, d.mask) for d in inputs.damaged_sets] == [
        ("train", "half"), ("train", "blur:1"), ("control", "half"), ("control", "blur:1")
    ]  # fmt: skip
    assert list(inputs.methods) == ["blind", "zero-rule", "iterate"]
    assert (inputs.black_masks, inputs.probe.deterministic) == ({"half"}, True)
    assert (inputs.methods["blind"], inputs.methods["iterate"]) == (Blind, Iterate())  # the first needs a setting


def test_a_model_is_opened_with_its_options(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "net.safetensors", FullyConnected(TRAIN.shape, layers=2, width=4), {})
    assert isinstance(open_inputs(request(model=str(tmp_path / "net.safetensors"))).model, FullyConnected)
    in_fours = open_inputs(request(model=nn.Identity(), model_options={"batch": 4}))
    assert isinstance(in_fours.model, Adapted)


@pytest.mark.parametrize(("most", "chunk"), [(14, 8), (5, 5), (1, 1)])
def test_no_part_of_an_audit_gives_a_model_more_images_at_once_than_it_may(most: int, chunk: int) -> None:
    """Neither the probe, the fingerprint, the attractors nor the samples."""
    stored, given = images(12, 1), list[int]()
    memory = Memorizer(stored.pixels)

    class Limited(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            given.append(len(x))
            if len(x) > most:
                raise ValueError(f"at most {most} images")
            return memory(x)

    asked = request(
        model=Limited(), train=stored, masks="half", methods="iterate", attractors=1, samples=6, chunk=chunk,
    )  # fmt: skip
    result = run_audit(asked)
    assert result.facts["generated"]["samples"] == 6
    assert result.attractors is not None
    assert result.attractors[0]["spectral_radius"] is not None
    assert max(given) == chunk


def test_more_attractors_than_training_images_are_refused() -> None:
    with pytest.raises(InputError, match=r"attractors=100 \(--attractors 100\) asks .*; examine 8 at most"):
        open_inputs(request(attractors=100))
    assert len(open_inputs(request(attractors=8)).sets["train"]) == 8


def test_control_images_that_are_all_training_images_are_refused() -> None:
    with pytest.raises(InputError, match="Every control image is also a training image"):
        open_inputs(request(control=TRAIN[2:4]))


def test_a_method_for_erasures_is_refused_under_other_damage() -> None:
    with pytest.raises(InputError, match="biharmonic restores erased pixels and cannot undo blur:1"):
        open_inputs(request(masks="half,blur:1", methods="biharmonic"))


def test_given_settings_build_every_method_and_leave_no_image_out() -> None:
    asked = request(methods="blind", gamma=0.3, start="all_erased", masks="half")
    chosen = choose_settings(asked, open_inputs(asked), Store(None), no_progress)
    assert (chosen.methods["blind"].gamma, chosen.tuning, len(chosen.scored["train"])) == (0.3, None, 8)


def test_a_search_leaves_its_images_out_and_is_stored(tmp_path: Path) -> None:
    asked = request(methods="blind", masks="half")
    opened = open_inputs(asked)
    chosen = choose_settings(asked, opened, Store(tmp_path), no_progress)
    assert chosen.tuning is not None
    assert len(chosen.tuning.images) == len(chosen.scored["train"]) == 4
    assert not set(chosen.tuning.images) & set(chosen.scored["train"].ids)
    assert len(chosen.sets["train"]) == 8
    assert len(list(tmp_path.glob("steps/tuning-*.json"))) == len(GAMMAS) * len(STARTS)
    again = choose_settings(asked, opened, Store(tmp_path), no_progress)
    assert again.methods == chosen.methods


def test_methods_with_settings_of_their_own_are_not_searched_for() -> None:
    asked = request(methods=[Blind(gamma=0.2)], masks="half")
    opened = open_inputs(asked)
    assert choose_settings(asked, opened, Store(None), no_progress) is opened
    assert torch.equal(opened.scored["train"].pixels, TRAIN.pixels)
