"""The same methods on a CUDA device; run by make test-gpu."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from recollect import Blind, Images, Iterate, KnownMask, Recovery, Stop, UNet, mask, observe
from recollect.attractors import fixed_point_error, proximal_test
from recollect.degradation import Blur, Coarse, Degradation, Erasure, all_erased, half_kept, odd_ones_kept
from recollect.devices import memory
from recollect.devices.precision import float32_precision
from recollect.engine import runtime as ready
from recollect.methods import Refined
from tests.planted import Memorizer

pytestmark = pytest.mark.gpu

SHAPE = (3, 8, 8)
METHODS = [Blind(limit=10), Blind(limit=10, gamma=1.0, start=all_erased), KnownMask(), Iterate(limit=30)]
METHODS += [Refined(limit=10, restart_steps=20, polish_steps=60)]
each_method = pytest.mark.parametrize("method", METHODS, ids=["blind", "blind-empty", "known", "iterate", "refined"])


def stored(count: int = 20) -> Images:
    return Images(torch.rand(count, *SHAPE, generator=torch.Generator().manual_seed(0)))


def recover(method: Callable, f: Callable, y: Tensor, truth: Erasure, **options: object) -> Recovery:
    return method(f, y, truth, **options) if method.knows_truth else method(f, y, **options)  # type: ignore[attr-defined]


def contracting(dtype: torch.dtype = torch.float64) -> nn.Module:
    """A small network of slope below 1, the same each time."""
    size, draws = math.prod(SHAPE), torch.Generator().manual_seed(0)
    layers = [nn.Linear(size, 32), nn.Linear(32, size)]
    for layer in layers:
        weight = torch.randn(layer.weight.shape, generator=draws, dtype=torch.float64)
        layer.weight.data = (weight / torch.linalg.matrix_norm(weight, 2)).to(dtype)
        layer.bias.data = torch.rand(layer.bias.shape, generator=draws, dtype=torch.float64).to(dtype) / 2
    return nn.Sequential(nn.Flatten(), layers[0], nn.Tanh(), layers[1], nn.Unflatten(1, SHAPE))


@each_method
def test_cpu_and_cuda_agree(method: Callable) -> None:
    seen = observe(stored(), mask("block", SHAPE))
    y, f = seen.y.double(), contracting()
    here = recover(method, f, y, seen.truth)  # type: ignore[arg-type]
    there = recover(method, f.cuda(), y, seen.truth)  # type: ignore[arg-type]
    assert torch.allclose(here.estimate, there.estimate, atol=1e-8)
    assert torch.equal(here.rounds, there.rounds)
    assert torch.equal(here.stop, there.stop)


@each_method
def test_y_on_the_cpu_or_on_the_device(method: Callable) -> None:
    """The result lies where y lies, whatever the network's device."""
    seen = observe(stored(), mask("block", SHAPE))
    f = contracting(torch.float32).cuda()
    there = recover(method, f, seen.y, seen.truth, chunk=7)  # type: ignore[arg-type]
    assert there.estimate.device.type == there.stop.device.type == "cpu"
    on_device = recover(method, f, seen.y.cuda(), seen.truth, chunk=7)  # type: ignore[arg-type]
    assert on_device.estimate.is_cuda
    assert torch.allclose(on_device.estimate.cpu(), there.estimate, atol=1e-4)


def test_blind_recovers_on_cuda() -> None:
    images = stored()
    seen = observe(images, mask("block", SHAPE))
    recovery = Blind()(Memorizer(images.pixels), seen.y.cuda())
    assert recovery.stops == [Stop.CONVERGED] * len(images)
    assert (recovery.estimate.cpu() - images.pixels).square().mean((1, 2, 3)).max() < 1e-7


def test_the_random_start_and_fingerprints_are_those_of_the_cpu() -> None:
    y = stored().pixels
    here, there = half_kept(y), half_kept(y.cuda())
    assert torch.equal(here.keep, there.keep.cpu())
    assert torch.equal(here.fingerprint(), there.fingerprint().cpu())


@pytest.mark.parametrize("truth", [Blur(torch.tensor([0.7])), Coarse(torch.tensor([2])), mask("half", SHAPE)])
def test_degradations_are_those_of_the_cpu(truth: Degradation) -> None:
    x, z = torch.rand(2, 6, *SHAPE, generator=torch.Generator().manual_seed(0))
    here, there = truth.expand(x), truth.expand(x).to("cuda")
    y = here.apply(x)
    assert torch.allclose(there.apply(x.cuda()).cpu(), y, atol=1e-5)
    assert torch.allclose(there.prox(z.cuda(), y.cuda(), 0.5).cpu(), here.prox(z, y, 0.5), atol=1e-5)
    assert torch.equal(there.refit(x.cuda(), y.cuda()).fingerprint().cpu(), here.refit(x, y).fingerprint())
    start = odd_ones_kept(y.cuda())
    assert torch.equal(start.keep.cpu(), odd_ones_kept(y).keep)


def test_tf32_is_off_while_recovering_and_restored() -> None:
    """With TF32 a product of this size is off by about 1e-3; the products seen inside must be exact to float32."""
    a = torch.rand(512, 512, generator=torch.Generator().manual_seed(0)).cuda()
    exact = (a.double() @ a.double()).float()
    errors: list[float] = []

    def f(x: Tensor) -> Tensor:
        errors.append(float(((a @ a) / exact - 1).abs().max()))
        return x / 2

    with float32_precision("tf32"):
        Iterate(limit=3)(f, torch.rand(2, *SHAPE).cuda())
        assert torch.backends.cuda.matmul.fp32_precision == "tf32"
    assert max(errors) < 1e-5


def test_convolutions_on_cuda_are_those_of_the_cpu() -> None:
    f, x = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.Softplus(), nn.Conv2d(64, 3, 3, padding=1)), stored().pixels
    with torch.no_grad():
        expected = f(x)
    there = Iterate(limit=1)(f.cuda(), x)
    assert torch.allclose(there.estimate, expected, atol=1e-5)


def test_the_working_set_is_chosen_from_the_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of what is free, divided by what an image is seen to need."""
    f, y = UNet(widths=(16, 32)).cuda(), torch.rand(64, 3, 32, 32)
    total = torch.cuda.get_device_properties(0).total_memory
    sizes, nothing = [], memory.PyTorchMemory(0, 0, 0)
    monkeypatch.setattr(memory, "pytorch_memory", lambda device: nothing)  # that could be freed
    for free in (200 * 2**30, 2**24):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device=None, free=free: (free, total))
        with ready.prepare(f, y, None) as made:
            sizes.append(made.chunk)
    assert sizes[0] == ready.CUDA_CHUNK
    assert 1 <= sizes[1] < 64


def test_memory_stays_bounded() -> None:
    """Images beyond the working set never sit on the device."""
    f, y = nn.Identity(), torch.rand(4096, 3, 32, 32)
    f.register_buffer("here", torch.zeros(1, device="cuda"))
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    Iterate(limit=2)(f, y, chunk=64)
    assert torch.cuda.max_memory_allocated() - before < y.nbytes / 4


def test_theorem_1_on_cuda() -> None:
    f, x = contracting(), stored(1).pixels.double()
    assert proximal_test(f, x[0]).highest == pytest.approx(proximal_test(f.cuda(), x[0].cuda()).highest, abs=1e-8)
    assert fixed_point_error(f, x.cuda()).is_cuda
