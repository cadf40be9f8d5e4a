"""Linear layers in oneDNN: as exact as float32, and the library's where that cannot be had."""

import copy
import logging
from collections.abc import Iterator
from contextlib import nullcontext

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from recollect import Blind, FullyConnected, InputError, Iterate, mask
from recollect.accelerate import dispatch as own_products_module
from recollect.accelerate import onednn
from recollect.accelerate.dispatch import BY_THE_LIBRARY, OwnProducts, kernels_of, library_products, own_products
from recollect.accelerate.onednn import OneDnn
from recollect.accelerate.tf32x3.launch import Call
from recollect.engine.runtime import products_of, ready

CPU = torch.device("cpu")
WORKS = onednn._works()
pytestmark = pytest.mark.skipif(not WORKS, reason="PyTorch has no oneDNN for this machine")


def rms(values: Tensor) -> float:
    return float(values.square().mean().sqrt())


def through(f: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad(), own_products(f.modules(), CPU) as inside:
        assert isinstance(inside, OwnProducts)
        return f(x)


@given(rows=st.integers(1, 90), channels=st.integers(1, 300), columns=st.integers(1, 300), seed=st.integers(0, 99))
@settings(max_examples=50)
def test_products_have_the_errors_of_float32(rows: int, channels: int, columns: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x, weight = (torch.randn(size, channels, generator=generator) for size in (rows, columns))
    bias, kernels = torch.randn(columns, generator=generator), OneDnn()
    out = kernels.run(Call(x[:, None, None], weight, bias), kernels.pack(weight, 1), None).values[:, 0, 0]
    exact = functional.linear(x.double(), weight.double(), bias.double())
    size = functional.linear(x.double().abs(), weight.double().abs(), bias.double().abs())  # of what is added up
    assert out.shape == exact.shape
    assert ((out - exact).abs() < 1e-6 * size).all()


def test_errors_of_a_network_are_at_most_three_times_the_library_s() -> None:
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


def test_what_is_small_or_otherwise_runs_in_the_library() -> None:
    large = nn.Linear(1024, 1024)
    others = [nn.Linear(1024, 1023), nn.Conv2d(1024, 1024, 1), copy.deepcopy(large).double(), nn.Linear(9, 9)]
    for layer in others:
        assert isinstance(own_products([layer], CPU), nullcontext)
    assert isinstance(own_products([*others, large], CPU), OwnProducts)


def test_a_weight_that_changes_is_the_library_s_from_then_on() -> None:
    layer, x = nn.Linear(1024, 1024), torch.rand(9, 1024)
    with torch.no_grad(), own_products([layer], CPU):
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
    assert products_of(f, y) == OneDnn.in_words
    with library_products():
        assert products_of(f, y) == BY_THE_LIBRARY
        plain = method(f, y)
    assert not torch.equal(ours.estimate, plain.estimate)
    assert torch.equal(ours.rounds, plain.rounds)
    assert torch.allclose(ours.estimate, plain.estimate, atol=1e-4)


def test_the_environment_can_do_without(monkeypatch: pytest.MonkeyPatch) -> None:
    f, y = nn.Linear(1024, 1024), torch.rand(32, 1, 1, 1024)
    for chosen, products in (("", OneDnn.in_words), ("library", BY_THE_LIBRARY)):
        monkeypatch.setenv("RECOLLECT_PRODUCTS", chosen)
        assert products_of(f, y) == products
    monkeypatch.setenv("RECOLLECT_PRODUCTS", "fast")
    with pytest.raises(InputError, match="RECOLLECT_PRODUCTS is 'library' or not set at all; it is 'fast'"):
        products_of(f, y)


def test_few_images_are_the_library_s() -> None:
    """Also where each has many rows."""
    f, x = nn.Linear(1024, 1024), torch.rand(32, 1, 3, 1024)
    with ready(f, x, None) as ours:
        assert ours.runs_kernels
        assert torch.equal(ours(x[:31]), f(x[:31]))
        assert not torch.equal(ours(x), f(x))
        assert ours.batch_unit == 8
    assert products_of(f, x[:31]) == BY_THE_LIBRARY


def test_few_images_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OneDnn, "pack", None)
    with ready(nn.Linear(1024, 1024), torch.rand(31, 1, 1, 1024), None) as ours:
        assert not ours.runs_kernels


def test_other_devices_have_none() -> None:
    assert kernels_of(torch.device("meta")) is None


def test_whatever_the_defaults_are_it_works(not_yet_tried: None) -> None:
    torch.set_default_dtype(torch.float64)
    try:
        with torch.device("meta"):
            assert onednn._works()
    finally:
        torch.set_default_dtype(torch.float32)


def test_what_a_network_draws_is_the_same_with_and_without() -> None:
    class Drawing(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) + torch.rand_like(x)

    f, y, seen = Drawing(1024, 1024), torch.rand(32, 1, 1, 1024), []
    for where in (nullcontext(), library_products()):
        torch.manual_seed(0)
        with where:
            seen.append(Iterate(limit=3)(f, y).estimate)
    assert torch.equal(*seen)


def test_where_memory_is_short_nothing_is_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_products_module, "free_memory", lambda _: 2**22)
    assert isinstance(own_products([nn.Linear(1024, 1024)], CPU), nullcontext)


@pytest.fixture
def not_yet_tried() -> Iterator[None]:
    onednn._works.cache_clear()
    yield
    onednn._works.cache_clear()


def test_one_who_switches_it_off_has_it_off(not_yet_tried: None, caplog: pytest.LogCaptureFixture) -> None:
    torch.backends.mkldnn.set_flags(_enabled=False)
    caplog.set_level(logging.INFO, logger=onednn.__name__)
    try:
        assert isinstance(own_products([nn.Linear(1024, 1024)], CPU), nullcontext)
        assert "switched off" in caplog.text
    finally:
        torch.backends.mkldnn.set_flags(_enabled=True)


@pytest.mark.parametrize(
    ("trouble", "word"), [("there is no such operator", "there is no such operator"), (None, "are wrong")]
)
def test_where_it_cannot_be_had_a_word_says_so_once(
    trouble: str | None,
    word: str,
    not_yet_tried: None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def pack(_: OneDnn, weight: Tensor, __: int) -> Tensor:
        if trouble:
            raise AttributeError(trouble)
        return torch.ops.mkldnn._reorder_linear_weight(2 * weight, 64)

    caplog.set_level(logging.INFO, logger=onednn.__name__)
    monkeypatch.setattr(OneDnn, "pack", pack)
    for _ in range(2):
        assert isinstance(own_products([nn.Linear(1024, 1024)], CPU), nullcontext)
    assert len(caplog.records) == 1
    assert word in caplog.text


def test_on_another_machine_it_is_not_tried(
    not_yet_tried: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger=onednn.__name__)
    monkeypatch.setattr(onednn.platform, "machine", lambda: "aarch64")
    assert isinstance(own_products([nn.Linear(1024, 1024)], CPU), nullcontext)
    assert "there is no oneDNN for x86 CPUs" in caplog.text
