import json
from pathlib import Path

import pytest

from recollect import InputError, audit
from recollect.extraction import extract
from tests.auditing.making import images, small_audit
from tests.diffusion.making import memory_of


def test_a_diffusion_model_is_sampled_beside_its_audit(tmp_path: Path) -> None:
    train, denoiser = images(5, 1), memory_of(images(5, 1))
    result = audit(
        denoiser, train=train, control=images(3, 2), masks="block", methods="blind", noise_level=0.2, gamma=0.5,
        samples=8, out=tmp_path,
    )  # fmt: skip
    expected = extract(denoiser, train, samples=8)
    saved = json.loads((tmp_path / "audit.json").read_text())["generated"]
    assert saved["distinct"] == expected.distinct
    assert saved["distinct"]["approximate"] > 1
    assert (saved["evaluations"], saved["samples"], saved["training_images"]) == (8 * 39, 8, 5)
    assert f"Generate and filter: {expected.distinct['approximate']} of 5 training images" in str(result)
    assert "312 network evaluations" in str(result)
    assert "generate and filter, 8 samples" in (tmp_path / "report.html").read_text()


def test_an_autoencoder_is_iterated_from_starts_of_its_own() -> None:
    found = small_audit(masks="half", methods="iterate", samples=12).facts["generated"]
    assert found["kind"] == "attractors from noise, constants, blends and unseen images"
    assert found["distinct"]["approximate"] > 0


def test_none_are_generated_unless_asked_for() -> None:
    assert small_audit(masks="half", methods="iterate").facts["generated"] is None
    with pytest.raises(InputError, match="samples is a number of images, zero or more; got -1"):
        small_audit(samples=-1)
