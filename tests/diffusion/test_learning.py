import pytest
import torch
from torch import Tensor

from recollect.diffusion import DenoiserRecipe
from recollect.diffusion.learning import AVERAGE_POWER, Learner
from recollect.diffusion.train import eight_bit
from tests.diffusion.making import TINY, pictures


def learner(recipe: DenoiserRecipe = TINY, device: str = "cpu") -> Learner:
    return Learner(recipe.make_network((3, 8, 8)), eight_bit(pictures()).to(device), recipe)


def after(one: Learner, steps: int) -> list[Tensor]:
    for number in range(steps):
        one.step(number / 10)
    return [w.detach().clone() for w in one.weights]


@pytest.mark.parametrize("schedule", ["edm", "cosine"])
@pytest.mark.parametrize("network", [("unet", {"widths": (16, 16)}), ("residual", {"width": 32, "blocks": 2})])
def test_the_loss_falls(schedule: str, network: tuple[str, dict[str, int]]) -> None:
    """Images of one colour each are easily learned."""
    recipe = DenoiserRecipe(*network, schedule=schedule, batch=16, warm_up=5, rate=3e-3)
    flat = eight_bit(pictures(size=1)).expand(-1, -1, 8, 8).contiguous()
    one, losses = Learner(recipe.make_network((3, 8, 8)), flat, recipe), []
    for _ in range(3):
        after(one, 10)
        losses.append(one.take_loss(10))
    assert losses[-1] < 0.9 * losses[0]


def test_resuming_from_a_state_is_the_same_as_never_having_stopped() -> None:
    through, stopped, resumed = learner(), learner(), learner()
    after(through, 3), after(stopped, 3)
    resumed.restore(*stopped.state())
    for a, b in zip(after(through, 2), after(resumed, 2), strict=True):
        assert torch.equal(a, b)
    for a, b in zip(through.averaged, resumed.averaged, strict=True):
        assert torch.equal(a, b)


def test_the_average_is_weighted_by_a_power_of_the_step() -> None:
    """Weight n in proportion to n^power, as a direct sum has it."""
    one, seen = learner(), []
    for number in range(12):
        one.step(0.0)
        seen.append(one.weights[0].detach().clone())
        assert number + 1 == one.steps
    shares = torch.tensor([n**AVERAGE_POWER for n in range(1, 13)], dtype=torch.float64)
    direct = sum(share * w.double() for share, w in zip(shares / shares.sum(), seen, strict=True))
    assert torch.allclose(one.averaged[0].double(), torch.as_tensor(direct), atol=2e-3)
    assert not torch.equal(one.averaged[0], seen[-1])


def test_the_averaged_network_is_a_copy() -> None:
    one = learner()
    after(one, 2)
    network = one.averaged_network()
    assert all(torch.equal(a, b) for a, b in zip(network.parameters(), one.averaged, strict=True))
    assert not network.training
    assert one.network.training


def test_mirrored_images_are_seen_only_if_asked_for() -> None:
    x = 2 * pictures().pixels - 1
    for flip in (False, True):
        one = learner(DenoiserRecipe(settings={"widths": (16, 16)}, batch=64, flip=flip))
        drawn = one.draw_batch()[0][:, None]
        known = (drawn - x).abs().flatten(2).amax(2).amin(1) < 1e-5
        mirrored = (drawn - x.flip(3)).abs().flatten(2).amax(2).amin(1) < 1e-5
        assert bool((known | mirrored).all())
        assert bool(mirrored.any()) == flip


@pytest.mark.gpu
def test_a_captured_training_resumes_and_keeps_its_state_when_it_is_captured() -> None:
    through, stopped, resumed = (learner(device="cuda") for _ in range(3))
    after(through, 3), after(stopped, 3)
    resumed.restore(*stopped.state())
    for a, b in zip(after(through, 2), after(resumed, 2), strict=True):
        assert torch.allclose(a, b, atol=1e-5)
    eager = Learner(TINY.make_network((3, 8, 8)), eight_bit(pictures()).cuda(), TINY, use_cuda_graph=False)
    captured = learner(device="cuda")
    for a, b in zip(after(captured, 3), after(eager, 3), strict=True):
        assert torch.allclose(a, b, atol=1e-4)


@pytest.mark.gpu
def test_a_compiled_step_is_the_plain_step_but_for_rounding() -> None:
    compiled = Learner(TINY.make_network((3, 8, 8)), eight_bit(pictures()).cuda(), TINY, compiles=True)
    plain = learner(device="cuda")
    before = [w.detach().clone() for w in plain.weights]
    for a, b, w in zip(after(compiled, 1), after(plain, 1), before, strict=True):
        assert (a - b).norm() <= 0.2 * (b - w).norm()
    after(compiled, 4), after(plain, 4)
    assert compiled.take_loss(5) == pytest.approx(plain.take_loss(5), rel=0.02)
