import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from recollect import InputError, audit
from recollect.auditing import Audit
from recollect.auditing.verify import verify_audit
from recollect.diffusion import Denoiser
from recollect.extraction import extract
from tests.auditing.making import images, small_audit
from tests.diffusion.making import memory_of, posterior_mean


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


def test_training_images_among_the_samples_count_at_the_gate(tmp_path: Path) -> None:
    """At the noise level of the attacks this model copies its input, so they recover nothing."""
    train = images(5, 1)
    memory = posterior_mean(2 * train.pixels - 1)
    model = Denoiser.of(
        lambda x, sigma: torch.where((sigma < 0.02).view(-1, 1, 1, 1), x, memory(x, sigma)),
        train.image_shape,
        "copying",
    )
    result = audit(
        model, train=train, control=images(3, 2), masks="half", methods="blind", noise_level=0.01, gamma=0.5,
        samples=8, fail_above=0.1, out=tmp_path,
    )  # fmt: skip
    found = result.facts["generated"]["found"]
    assert len(found) == result.facts["generated"]["distinct"]["approximate"] > 1
    assert result.finding.train.count == 0
    sentence = f"{len(found)} more training images appeared among samples of the model."
    assert sentence in result.headline
    assert f'<p class="alert">{sentence}</p>' in (tmp_path / "report.html").read_text()
    assert result.verdict is not None
    assert result.verdict.outcome == "failed"
    assert f"{len(found)} of them only among samples of the model" in result.verdict.reason
    assert verify_audit(tmp_path).passed
    assert Audit.load(tmp_path).finding == result.finding


def sampled(fails: Callable[[Tensor, Tensor], Tensor], **more: Any) -> Audit:
    """Audit a memory whose samples are not finite where this says so; at the level of the attacks all is well."""
    train = images(5, 1)
    memory = posterior_mean(2 * train.pixels - 1)

    def denoise(x: Tensor, sigma: Tensor) -> Tensor:
        return memory(x, sigma).masked_fill(((sigma > 10) & fails(x, sigma)).view(-1, 1, 1, 1), math.nan)

    model = Denoiser.of(denoise, train.image_shape, "failing")
    return audit(
        model, train=train, control=images(3, 2), masks="block", methods="blind", noise_level=0.2, gamma=0.5,
        samples=8, **more,
    )  # fmt: skip


def test_samples_that_are_not_finite_are_recorded_and_warned_of(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Generate and filter: . of the 8 samples held NaN or infinite values"):
        sampled(lambda x, sigma: x.mean((1, 2, 3)) > 0, out=tmp_path)
    saved = json.loads((tmp_path / "audit.json").read_text())["generated"]
    assert 0 < saved["not_finite"] < 8
    with pytest.warns(UserWarning, match=f"{saved['not_finite']} of the 8 samples"):  # also of finished work
        sampled(lambda x, sigma: x.mean((1, 2, 3)) > 0, out=tmp_path)


def test_without_one_finite_sample_nothing_is_reported_of_samples() -> None:
    with pytest.raises(InputError, match=r"None of 8 samples is finite, .* leave them out \(--samples\)"):
        sampled(lambda x, sigma: x.flatten(1).isfinite().all(1))


def test_an_autoencoder_is_iterated_from_starts_of_its_own() -> None:
    found = small_audit(masks="half", methods="iterate", samples=12).facts["generated"]
    assert found["kind"] == "attractors from noise, constants, blends and unseen images"
    assert found["distinct"]["approximate"] > 0


def test_none_are_generated_unless_asked_for() -> None:
    assert small_audit(masks="half", methods="iterate").facts["generated"] is None
    with pytest.raises(InputError, match="samples is a number of images, zero or more; got -1"):
        small_audit(samples=-1)
