from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from recollect import Iterate
from recollect.devices.model_call import ModelCall
from recollect.devices.precision import apply_checked
from recollect.models import probe_model

X = torch.arange(10.0).view(10, 1, 1, 1)


def at_most(images: int, given: list[int], error: Callable[[], Exception] = MemoryError) -> Callable[[Tensor], Tensor]:
    def f(x: Tensor) -> Tensor:
        given.append(len(x))
        if len(x) > images:
            raise error()
        return 2 * x

    return f


@pytest.mark.parametrize(
    "error",
    [
        MemoryError,
        lambda: torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        lambda: RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: tried to allocate 9 bytes"),
        lambda: RuntimeError("CUDNN_STATUS_ALLOC_FAILED"),
    ],
)
def test_a_batch_for_which_memory_does_not_suffice_is_halved(
    error: Callable[[], Exception], caplog: pytest.LogCaptureFixture
) -> None:
    given: list[int] = []
    call = ModelCall()
    assert torch.equal(call(at_most(3, given, error), X), 2 * X)
    assert given == [10, 5, 2, 2, 1, 2, 2, 1]
    assert caplog.messages == [
        f"The memory does not suffice for {count} images at once; the model is given {half} from here on."
        for count, half in ((10, 5), (5, 2))
    ]
    given.clear()
    call(at_most(3, given), X[:5])  # later batches are cut at once
    assert given == [2, 2, 1]


def test_what_a_model_needs_is_found_out_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    given: list[int] = []
    model = at_most(5, given)
    for _ in range(2):
        assert torch.equal(apply_checked(model, X), 2 * X)
    assert given == [10, 5, 5, 5, 5]
    assert len(caplog.messages) == 1
    assert probe_model(at_most(5, []), X / 20, stated=("input", "output")).images == 10
    assert len(caplog.messages) == 2


def test_what_cannot_be_halved_is_raised() -> None:
    with pytest.raises(MemoryError):
        ModelCall()(at_most(0, []), X[:1])
    with pytest.raises(KeyError) as raised:
        apply_checked(at_most(3, [], lambda: KeyError("codebook")), X)
    assert raised.value.__notes__ == ["The model raised this error, given 10 images"]


def test_a_model_that_overwrote_its_input_is_not_called_again() -> None:
    def f(x: Tensor) -> Tensor:
        x.mul_(2)
        raise MemoryError

    with pytest.raises(MemoryError):
        ModelCall()(f, X.clone())


def test_real_memory_that_cannot_be_allocated() -> None:
    """4 EiB for two images, and a few bytes for one."""

    def f(x: Tensor) -> Tensor:
        torch.empty(2**62 if len(x) > 1 else 8, dtype=torch.uint8)
        return x

    assert torch.equal(ModelCall()(f, X[:2]), X[:2])


class GradientStep(torch.nn.Module):
    """A denoiser that steps along the gradient of a potential, as Cohen et al. 2021 and Hurault et al. 2022 do."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(0.5))

    def forward(self, x: Tensor) -> Tensor:
        x = x.requires_grad_()
        potential = (self.scale * x.square()).sum()
        return x - torch.autograd.grad(potential, x)[0]


def test_a_forward_pass_that_takes_derivatives_runs_with_autograd() -> None:
    call, x = ModelCall(), X.clone()
    with torch.no_grad():
        for _ in range(2):
            out = call(GradientStep(), x)
            assert not out.requires_grad
            assert not x.requires_grad
            assert torch.equal(out, 0 * X)
    assert call.with_autograd
    recovered = Iterate(limit=2)(GradientStep(), X / 10)
    assert torch.equal(recovered.estimate, 0 * X)
    assert probe_model(GradientStep(), X.view(10, 1, 1, 1) / 10).deterministic


def test_a_derivative_through_a_model_is_not_lost_to_what_it_needs_without_autograd() -> None:
    class Squared(torch.nn.Module):
        """x^2 as the derivative of x^3 / 3, with a graph of its own where one is wanted."""

        def forward(self, x: Tensor) -> Tensor:
            x = x if x.requires_grad else x.requires_grad_()
            return torch.autograd.grad((x**3).sum() / 3, x, create_graph=True)[0]

    model, x = Squared(), torch.full((1, 1, 1, 1), 3.0)
    with torch.no_grad():
        assert float(apply_checked(model, x.clone())) == 9
    x.requires_grad_()
    apply_checked(model, x).sum().backward()
    assert x.grad is not None
    assert float(x.grad) == 6


@pytest.mark.gpu
def test_a_gpu_that_is_nearly_full(caplog: pytest.LogCaptureFixture) -> None:
    from recollect import Blind, Erasure

    free = torch.cuda.mem_get_info()[0]
    hog = torch.empty(free - 2**31, dtype=torch.uint8, device="cuda")  # 2 GiB are left
    weight = torch.eye(64, device="cuda")

    class Hungry(torch.nn.Module):
        weight: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.calls = 0
            self.register_buffer("weight", weight)

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            room = 2**24 if len(x) <= 4 else 2**28  # far more for an image of a large batch than in a first try
            scratch = torch.empty(len(x) * room, dtype=torch.uint8, device=x.device)
            return (x.flatten(1) @ self.weight).view_as(x) + 0 * scratch[0]

    y = torch.rand(64, 1, 8, 8, device="cuda")
    for method in (Iterate(limit=20), Blind(limit=2)):
        recovered = method(Hungry(), y)
        assert "The memory does not suffice" in caplog.text
        caplog.clear()
        assert bool(recovered.estimate.isfinite().all())
        assert isinstance(recovered.degradation, Erasure | None)
    del hog
