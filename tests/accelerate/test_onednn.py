"""Linear layers in oneDNN: as exact as float32, and left to PyTorch where oneDNN does not run."""

import copy
import logging
import platform
from collections.abc import Iterator
from contextlib import nullcontext

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from recollect import Blind, FullyConnected, Iterate, mask
from recollect.accelerate.accelerator import BATCH_UNIT, Accelerator
from recollect.accelerate.backend import LayerCall, passes_self_test
from recollect.accelerate.dispatch import find_kernels
from recollect.accelerate.onednn import OneDnn, is_exact, works
from recollect.engine import arithmetic_of, prepare, without_acceleration
from recollect.engine.runtime import IN_PYTORCH

MACHINE = platform.machine().lower()
CPU = torch.device("cpu")
pytestmark = pytest.mark.skipif(not works(MACHINE), reason="PyTorch has no oneDNN for this machine")


def rms(values: Tensor) -> float:
    return float(values.square().mean().sqrt())


def through(f: nn.Module, x: Tensor) -> Tensor:
    kernels = find_kernels(f.modules(), CPU)
    assert kernels is not None
    with torch.no_grad(), kernels:
        return f(x)


@given(rows=st.integers(1, 90), channels=st.integers(1, 300), columns=st.integers(1, 300), seed=st.integers(0, 99))
@settings(max_examples=50)
def test_layers_have_the_errors_of_float32(rows: int, channels: int, columns: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x, weight = (torch.randn(size, channels, generator=generator) for size in (rows, columns))
    bias, kernels = torch.randn(columns, generator=generator), OneDnn()
    call = LayerCall(x[:, None, None], weight, bias)
    out = kernels.run(call, kernels.pack(weight, kernels.layout(call)), None).values[:, 0, 0]
    exact = functional.linear(x.double(), weight.double(), bias.double())
    size = functional.linear(x.double().abs(), weight.double().abs(), bias.double().abs())  # of what is added up
    assert out.shape == exact.shape
    assert ((out - exact).abs() < 1e-6 * size).all()


def test_errors_of_a_network_are_at_most_three_times_pytorch_s() -> None:
    f = FullyConnected((3, 32, 32), layers=4, width=1024)
    x = torch.rand(40, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        exact, plain = copy.deepcopy(f).double()(x.double()), f(x)
    ours = through(f, x)
    assert not torch.equal(ours, plain)  # it did run elsewhere
    assert rms(ours - exact) < 3 * rms(plain - exact)
    assert torch.equal(ours, through(f, x))


@pytest.mark.parametrize("shape", [(1, 1024), (0, 1024), (9, 1024), (3, 5, 1024), (9, 2048)])
@pytest.mark.parametrize("bias", [True, False])
def test_layers_of_any_shape(shape: tuple[int, ...], bias: bool) -> None:
    layer = nn.Linear(1024, 1025, bias=bias)
    x = torch.rand(shape)[..., :: shape[-1] // 1024]
    assert torch.allclose(through(layer, x), layer(x), atol=1e-5)


def test_small_and_other_layers_run_in_pytorch() -> None:
    large = nn.Linear(1024, 1024)
    others = [nn.Linear(1024, 1023), nn.Conv2d(1024, 1024, 1), copy.deepcopy(large).double(), nn.Linear(9, 9)]
    for layer in others:
        assert find_kernels([layer], CPU) is None
    assert find_kernels([*others, large], CPU) is not None


def test_a_weight_that_changes_runs_in_pytorch_from_then_on() -> None:
    layer, x = nn.Linear(1024, 1024), torch.rand(9, 1024)
    kernels = find_kernels([layer], CPU)
    assert kernels is not None
    with torch.no_grad(), kernels:
        for _ in range(3):
            assert torch.allclose(layer(x), x @ layer.weight.T + layer.bias, atol=1e-5)
            layer.weight.mul_(-1)


def test_values_that_are_no_numbers_stay_so() -> None:
    layer, x = nn.Linear(1024, 1024), torch.ones(20, 1024)
    x[3, 5], x[7, 9] = torch.nan, torch.inf
    bad = ~torch.isfinite(through(layer, x)).all(1)
    assert bad.nonzero()[:, 0].tolist() == [3, 7]


def test_recoveries_are_the_same_but_for_rounding() -> None:
    f = FullyConnected((3, 16, 16), layers=3, width=1024)
    x = torch.rand(40, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    y, method = mask("block", (3, 16, 16)).apply(x), Blind(limit=3)
    ours = method(f, y)
    assert arithmetic_of(f, y) == OneDnn.description
    with without_acceleration():
        assert arithmetic_of(f, y) == IN_PYTORCH
        plain = method(f, y)
    assert not torch.equal(ours.estimate, plain.estimate)
    assert torch.equal(ours.rounds, plain.rounds)
    assert torch.allclose(ours.estimate, plain.estimate, atol=1e-4)


def test_small_batches_run_in_pytorch() -> None:
    """Also if each image has many rows."""
    f, x = nn.Linear(1024, 1024), torch.rand(32, 1, 3, 1024)
    with prepare(f, x, None) as runtime:
        assert runtime.arithmetic == OneDnn.description
        assert torch.equal(runtime(x[:31]), f(x[:31]))
        assert not torch.equal(runtime(x), f(x))
    assert arithmetic_of(f, x[:31]) == IN_PYTORCH


class Unpackable(OneDnn):
    def pack(self, _weight: Tensor, _layout: str) -> Tensor:
        raise NotImplementedError


@pytest.mark.parametrize(("images", "description"), [(31, None), (32, OneDnn.description)])
def test_a_small_set_of_images_needs_no_packed_weights(images: int, description: str | None) -> None:
    f = nn.Linear(1024, 1024)
    accelerator = Accelerator(f, [f], CPU, images, known=True, backend=Unpackable())
    assert accelerator.kernels_description == description
    assert accelerator.batch_unit == BATCH_UNIT


@pytest.fixture
def untested() -> Iterator[None]:
    works.cache_clear()
    yield
    works.cache_clear()


def test_defaults_of_dtype_and_device_do_not_matter(untested: None) -> None:
    torch.set_default_dtype(torch.float64)
    try:
        with torch.device("meta"):
            assert works(MACHINE)
    finally:
        torch.set_default_dtype(torch.float32)


def test_what_a_network_draws_is_the_same_with_and_without() -> None:
    class Drawing(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) + torch.rand_like(x)

    f, y, seen = Drawing(1024, 1024), torch.rand(32, 1, 1, 1024), []
    for path in (nullcontext(), without_acceleration()):
        torch.manual_seed(0)
        with path:
            seen.append(Iterate(limit=3)(f, y).estimate)
    assert torch.equal(*seen)


def test_one_who_switches_it_off_has_it_off(caplog: pytest.LogCaptureFixture) -> None:
    torch.backends.mkldnn.set_flags(_enabled=False)
    caplog.set_level(logging.INFO, logger="recollect.accelerate")
    try:
        assert find_kernels([nn.Linear(1024, 1024)], CPU) is None
        assert "oneDNN is switched off" in caplog.text
    finally:
        torch.backends.mkldnn.set_flags(_enabled=True)


class Missing(OneDnn):
    def pack(self, _weight: Tensor, _layout: str) -> Tensor:
        raise AttributeError("there is no such operator")


class Wrong(OneDnn):
    def pack(self, weight: Tensor, layout: str) -> Tensor:
        return super().pack(2 * weight, layout)


@pytest.mark.parametrize(
    ("backend", "why"), [(Missing(), "there is no such operator"), (Wrong(), "computed wrong values in a self-test")]
)
def test_a_failed_self_test_is_logged(backend: OneDnn, why: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert not passes_self_test("oneDNN", lambda: is_exact(backend), logging.getLogger().info)
    assert why in caplog.text


def test_on_another_machine_it_is_not_tried_and_that_is_logged_once(
    untested: None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="recollect.accelerate")
    assert not works("aarch64")
    assert not works("aarch64")
    assert len(caplog.records) == 1
    assert "there is no oneDNN for x86 CPUs" in caplog.text
