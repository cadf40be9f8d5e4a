import pytest
import torch
from torch import Tensor

from recollect import Images, InputError, Stop, load, mask, observe
from recollect.degradation import Blur, Erasure
from recollect.methods import Biharmonic
from recollect.recovery import Snapshot
from tests.erased import keep_of


def untouchable(_x: Tensor) -> Tensor:
    raise AssertionError("the autoencoder is never called")


def test_a_plane_comes_back_and_kept_values_are_those_of_y() -> None:
    """A plane is its own smooth surface."""
    rows, columns = torch.meshgrid(torch.linspace(0, 0.4, 12), torch.linspace(0.1, 0.5, 12), indexing="ij")
    planes = Images(torch.stack([rows + columns, columns, 0.9 - rows]).expand(2, 3, 12, 12))
    seen = observe(planes, mask("block", planes.shape))
    found = Biharmonic()(untouchable, seen.y, seen.truth)
    assert torch.allclose(found.estimate, planes.pixels, atol=1e-5)
    keep = keep_of(seen.truth.expand(seen.y))
    assert torch.equal(found.estimate[keep], seen.y[keep])
    assert found.stops == [Stop.DONE] * 2


def test_each_image_and_each_channel_has_its_own_mask(rng: torch.Generator) -> None:
    photos = load("photos?count=3&size=16")
    truth = Erasure(torch.rand(3, 3, 16, 16, generator=rng) > 0.3)
    together = Biharmonic()(None, truth.apply(photos.pixels), truth).estimate
    for i in range(3):
        alone = Biharmonic()(None, truth[i].apply(photos.pixels[i : i + 1]), truth[i]).estimate
        assert torch.equal(alone[0], together[i])
        for c in range(3):
            one = Erasure(truth.keep[i : i + 1, c : c + 1])
            channel = Biharmonic()(None, one.apply(photos.pixels[i : i + 1, c : c + 1]), one).estimate
            assert torch.equal(channel[0, 0], together[i, c])
    errors = (together - photos.pixels).square().mean((1, 2, 3))
    assert bool((errors < 0.2 * (truth.apply(photos.pixels) - photos.pixels).square().mean((1, 2, 3))).all())


def test_where_nothing_is_kept_values_stay_as_they_are() -> None:
    photos = load("photos?count=2&size=8")
    keep = torch.ones(2, 3, 8, 8, dtype=torch.bool)
    keep[0, :, 2:4] = False
    keep[0, 1] = False  # a whole channel
    keep[1] = False  # a whole image
    y = Erasure(keep).apply(photos.pixels).requires_grad_()
    found = Biharmonic()(None, y, Erasure(keep)).estimate
    assert not found[0, 1].any()
    assert not found[1].any()
    assert float((found[0, 0] - photos.pixels[0, 0]).square().mean()) < 0.01


def test_what_it_does_is_told_as_by_every_method() -> None:
    photos = load("photos?count=2&size=8")
    seen = observe(photos, mask("half", photos.shape))
    reported: list[tuple[int, int]] = []
    rounds: list[Snapshot] = []
    recovery = Biharmonic()(
        None, seen.y, seen.truth, progress=lambda done, of: reported.append((done, of)), trace=rounds.append
    )
    assert reported == [(1, 2), (2, 2)]
    assert [r.index.tolist() for r in rounds] == [[0], [1]]
    assert torch.equal(torch.cat([r.estimate for r in rounds]), recovery.estimate)
    assert recovery.rounds.tolist() == [1, 1]
    assert recovery.steps.tolist() == [0, 0]


def test_what_is_not_erased_is_refused() -> None:
    photos = load("photos?count=1&size=8")
    blurred = Blur(torch.ones(1))
    with pytest.raises(InputError, match="biharmonic restores erased pixels: the truth is an Erasure, not a Blur"):
        Biharmonic()(None, photos.pixels, blurred)
