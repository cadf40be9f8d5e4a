"""Models that compute each image by itself are told from those that do not."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from recollect import InputError
from recollect.models import open_model, probe_model
from recollect.models.batch_check import TOLERANCE, batch_influence
from recollect.networks import NETWORKS
from tests.auditing.making import small_audit
from tests.models.making import images, tiny
from tests.planted import Memorizer


def batch_statistics() -> nn.Module:
    layer = nn.BatchNorm2d(3, track_running_stats=False).eval()
    nn.init.constant_(layer.weight, 0.2)
    nn.init.constant_(layer.bias, 0.5)  # values of images, so that their range is not in doubt
    return layer


def attention(x: Tensor) -> Tensor:
    flat = x.flatten(1)
    return 0.95 * x + 0.05 * (torch.softmax(flat @ flat.T / 20, 1) @ flat).view_as(x)


def whole_set(x: Tensor) -> Tensor:
    return (x - x.mean()) / x.std() * 0.2 + 0.5


def padded(x: Tensor) -> Tensor:
    """Fill up to eight images, and let the filling weigh in."""
    filled = torch.cat([x, x.new_zeros(-len(x) % 8, *x.shape[1:])])
    return (0.9 * filled + 0.1 * filled.mean(0))[: len(x)]


def ordered(x: Tensor) -> Tensor:
    return x * 0.9 + torch.arange(len(x)).view(-1, 1, 1, 1) * 1e-3


def neighbour(x: Tensor) -> Tensor:
    return 0.99 * x + 0.01 * x.roll(1, 0)


def by_size(x: Tensor) -> Tensor:
    return x * (1 - 1e-3 * len(x))


DEPENDENT = [batch_statistics(), attention, whole_set, padded, ordered, neighbour, by_size]


@pytest.mark.parametrize("model", DEPENDENT, ids=lambda model: getattr(model, "__name__", "batch_statistics"))
@pytest.mark.parametrize("count", [1, 2, 16])
def test_batch_mates_that_matter_are_seen(model: Any, count: int) -> None:
    probe = probe_model(model, images(count))
    assert probe.deterministic
    assert probe.batch_influence is not None
    assert probe.batch_influence > TOLERANCE
    alone = probe_model(open_model(model, batch=1), images(count))
    assert alone.batch_influence == 0


@pytest.mark.parametrize(
    "model",
    [
        tiny(),
        nn.Sequential(tiny(), nn.BatchNorm2d(3)).train(),  # which is judged in eval mode
        NETWORKS["fc"].for_images((3, 8, 8), layers=6, width=256, seed=0),
        NETWORKS["unet"].for_images((3, 8, 8), seed=0),
        Memorizer(images(4)),
        lambda x: torch.sin(3000 * x.flatten(1).mean(1).view(-1, 1, 1, 1) * x),  # enlarges rounding greatly
    ],
    ids=["small", "stored statistics", "fc", "unet", "memorizer", "chaotic"],
)
def test_rounding_between_batch_sizes_is_not_taken_for_it(model: Any) -> None:
    assert probe_model(model, images(16)).batch_influence == 0


def test_a_sum_in_another_order_is_rounding() -> None:
    weights = torch.randn(192, 192, generator=torch.Generator().manual_seed(0)) * 30

    def model(x: Tensor) -> Tensor:
        flat = x.flatten(1)
        order = torch.arange(192) if len(x) % 2 else torch.arange(191, -1, -1)
        return torch.tanh(flat[:, order] @ weights[order]).view_as(x)

    assert not torch.equal(model(images(2))[0], model(images(1))[0])
    assert batch_influence(model, images(4)) == 0


def test_nan_that_a_batch_mate_causes_is_seen() -> None:
    assert batch_influence(lambda x: x / (x.amin() > 0.3), images(4) * 0.5 + 0.4) == 1.0


def test_chance_hides_it() -> None:
    assert probe_model(lambda x: x + 1e-3 * torch.randn_like(x), images()).batch_influence is None


def test_a_model_of_one_number_of_images_is_refused_with_the_option_to_set() -> None:
    def five(x: Tensor) -> Tensor:
        return x.view(5, 3, 8, 8)

    with pytest.raises(InputError, match=r"takes 5 images at once and fails with 1 .*--batch 5"):
        probe_model(five, images())
    assert probe_model(open_model(five, batch=5), images()).batch_influence == 0


def test_an_audit_says_so() -> None:
    audit = small_audit(model=whole_set, control=None, masks="half", methods="iterate")
    check = next(check for check in audit.checks if check.name == "batch")
    assert check.level == "warning"
    assert "changes with the other images of its batch" in check.sentence
    assert "--batch 1" in check.sentence
