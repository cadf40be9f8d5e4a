import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from recollect import Blind, FullyConnected, mask
from recollect.recovery.thin_products import SHORTEST, ThinProducts, linear_in_parts, parts_for

TILES = 528

gpu = pytest.mark.gpu


@given(rows=st.integers(1, 9), columns=st.integers(1, 9), part=st.integers(1, 9), parts=st.sampled_from([1, 2, 4, 8]))
def test_in_parts_it_is_the_linear_layer(rows: int, columns: int, part: int, parts: int) -> None:
    generator = torch.Generator().manual_seed(rows + 10 * columns + 100 * part)
    x, weight, bias = (
        torch.randn(s, generator=generator) for s in ((rows, part * parts), (columns, part * parts), columns)
    )
    for b in (bias, None):
        assert torch.allclose(linear_in_parts(x, weight, b, parts), functional.linear(x, weight, b), atol=1e-4)


@given(rows=st.integers(1, 5000), columns=st.integers(1, 30_000), length=st.integers(1, 30_000))
def test_parts_are_equal_long_enough_and_not_too_many(rows: int, columns: int, length: int) -> None:
    parts = parts_for(rows, columns, length, TILES)
    assert length % parts == 0
    if parts > 1:
        assert length // parts >= SHORTEST
        assert parts * -(-rows // 64) * -(-columns // 64) <= TILES


def test_few_images_get_parts_and_many_do_not() -> None:
    assert parts_for(1, 1024, 12288, TILES) == 1  # a matrix and a vector: libraries do that well
    assert parts_for(64, 1024, 12288, TILES) == 32
    assert parts_for(512, 1024, 1024, TILES) == 4
    assert parts_for(4096, 1024, 12288, TILES) == 1
    assert parts_for(64, 1024, 1023, TILES) == 1  # cannot be cut equally


@gpu
@pytest.mark.parametrize("count", [2, 8, 40, 300])
def test_on_a_gpu_the_error_is_that_of_float32(count: int) -> None:
    f = FullyConnected((3, 32, 32), layers=4, width=512).cuda().eval()
    x = torch.rand(count, 3, 32, 32, device="cuda", generator=torch.Generator("cuda").manual_seed(0))
    with torch.no_grad():
        exact = copy.deepcopy(f).double()(x.double())
        plain = f(x)
        with ThinProducts(x.device):
            thin = f(x)
    assert not torch.equal(thin, plain)  # it did run in parts
    assert float((thin - exact).abs().max()) < 2 * float((plain - exact).abs().max())


@gpu
@pytest.mark.parametrize("kind", ["transposed", "tokens", "float64"])
def test_on_a_gpu_other_calls_of_linear_run_as_they_are(kind: str) -> None:
    x, weight = torch.rand(64, 256, device="cuda"), torch.rand(256, 64, device="cuda").T
    weight = weight if kind == "transposed" else weight.contiguous()
    x = x[None] if kind == "tokens" else x
    x, weight = (x.double(), weight.double()) if kind == "float64" else (x, weight)
    plain = functional.linear(x, weight, None)
    with ThinProducts(x.device):
        assert torch.equal(functional.linear(x, weight, None), plain)


@gpu
def test_on_a_gpu_what_is_recovered_is_the_same_but_for_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    f = FullyConnected((3, 16, 16), layers=3, width=128).cuda()
    x = torch.rand(30, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    y = mask("block", (3, 16, 16)).apply(x).cuda()
    method = Blind(limit=3)
    thin = method(f, y)
    monkeypatch.setattr("recollect.recovery.thin_products.parts_for", lambda *_: 1)
    plain = method(f, y)
    assert torch.equal(thin.rounds, plain.rounds)
    assert torch.allclose(thin.estimate, plain.estimate, atol=1e-4)
