"""Products on tensor cores: as exact as float32. What needs a CUDA device is run by make test-gpu."""

import copy
import logging

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from recollect import Blind, FullyConnected, UNet, mask
from recollect.recovery import tensor_cores
from recollect.recovery.running import ready
from recollect.recovery.tensor_cores import (
    AT_ONCE,
    CHUNK,
    ROWS,
    SHORTEST,
    TensorCores,
    exact_products,
    in_tf32,
    is_plain,
    pack,
    tiling,
)

gpu = pytest.mark.gpu
PROCESSORS = 132
CPU = torch.device("cpu")


@given(st.floats(2.0**-90, 2.0**90, width=32), st.sampled_from([1, -1]))
def test_a_number_is_the_sum_of_two_in_tf32_but_for_what_float32_rounds(value: float, sign: int) -> None:
    x = torch.tensor([sign * value])
    upper = in_tf32(x)
    rest = x - upper
    assert (upper.view(torch.int32) & 0x1FFF).item() == 0  # ten bits behind the leading one
    assert upper.double() + rest.double() == x.double()  # nothing is lost in the difference
    cut_off = (rest.view(torch.int32) & ~0x1FFF).view(torch.float32)  # what tensor cores see of it
    assert abs(x.double() - upper.double() - cut_off.double()) <= 2**-22 * abs(x.double())


@given(columns=st.integers(1, 5), channels=st.integers(1, 70), taps=st.sampled_from([None, (1, 1), (3, 3), (2, 4)]))
def test_a_packed_weight_is_the_weight(columns: int, channels: int, taps: tuple[int, int] | None) -> None:
    weight = torch.randn(columns, channels, *(taps or ()), generator=torch.Generator().manual_seed(channels))
    packed = pack(weight, None)
    assert packed.upper.shape[3] % CHUNK == 0
    whole = (packed.upper.double() + packed.rest.double()).permute(0, 3, 1, 2)
    assert torch.equal(whole[:, :channels].float(), weight if taps else weight[:, :, None, None])
    assert not whole[:, channels:].any()
    assert torch.equal(packed.bias, torch.zeros(columns))


@given(rows=st.integers(1, 10**6), columns=st.integers(1, 30_000), chunks=st.integers(1, 1000))
def test_parts_cover_the_sum_and_can_be_counted(rows: int, columns: int, chunks: int) -> None:
    wide, each, parts = tiling(rows, columns, chunks, PROCESSORS)
    assert (parts - 1) * each < chunks <= parts * each
    if parts > 1:
        assert each >= SHORTEST
        assert parts * -(-rows // ROWS) * -(-columns // wide) <= AT_ONCE[wide] * PROCESSORS


def test_few_images_get_parts_and_many_wide_tiles() -> None:
    assert tiling(64, 1024, 12288 // CHUNK, PROCESSORS) == (64, 16, 24)
    assert tiling(512, 1024, 1024 // CHUNK, PROCESSORS) == (128, 8, 4)
    assert tiling(4096, 1024, 12288 // CHUNK, PROCESSORS) == (128, 384, 1)
    assert tiling(1024, 3, 18, PROCESSORS) == (16, 3, 6)


@pytest.mark.parametrize(
    ("settings", "known"),
    [
        (((1, 1), (1, 1), (1, 1), 1), True),
        (((2, 2), (0, 3), (1, 1), 1), True),
        (((1, 2), (1, 1), (1, 1), 1), False),
        (((1, 1), "same", (1, 1), 1), False),
        (((1, 1), (1, 1), (2, 2), 1), False),
        (((1, 1), (1, 1), (1, 1), 4), False),
    ],
)
def test_other_convolutions_are_left_to_the_library(settings: tuple, known: bool) -> None:
    assert is_plain(*settings) is known


def test_on_a_cpu_nothing_changes() -> None:
    assert not isinstance(exact_products([nn.Linear(32, 32)], CPU), TensorCores)


def error_of(out: Tensor, exact: Tensor) -> float:
    return float((out - exact).norm() / exact.norm())


def through(f: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad(), exact_products(f.modules(), x.device) as products:
        assert isinstance(products, TensorCores)
        return f(x)


def drawn(*shape: int) -> Tensor:
    return torch.rand(shape, device="cuda", generator=torch.Generator("cuda").manual_seed(sum(shape)))


def check_layer(layer: nn.Module, x: Tensor) -> None:
    layer = layer.cuda()
    with torch.no_grad():
        exact, plain = copy.deepcopy(layer).double()(x.double()), layer(x)
    ours = through(layer, x)
    assert ours.shape == plain.shape
    assert not torch.equal(ours, plain)  # it did run in the kernel
    assert error_of(ours, exact) < 3e-7
    assert torch.equal(ours, through(layer, x))


@gpu
@pytest.mark.parametrize("rows", [2, 8, 65, 300, 3000])
@pytest.mark.parametrize(("channels", "columns"), [(1024, 1024), (784, 100), (50, 7), (3072, 513)])
def test_linear_layers_are_exact(rows: int, channels: int, columns: int) -> None:
    check_layer(nn.Linear(channels, columns), drawn(rows, channels))


@gpu
def test_linear_layers_of_more_dimensions_and_without_bias_are_exact() -> None:
    check_layer(nn.Linear(64, 48, bias=False), drawn(5, 7, 64))
    check_layer(nn.Linear(64, 48), drawn(48, 2 * 64)[:, ::2])


@gpu
@pytest.mark.parametrize("count", [1, 9, 200])
@pytest.mark.parametrize(
    "settings",
    [
        {"kernel_size": 3, "padding": 1},
        {"kernel_size": 1},
        {"kernel_size": 5, "padding": 2, "bias": False},
        {"kernel_size": 4, "padding": 1, "stride": 2},
        {"kernel_size": (1, 3), "padding": (0, 1)},
        {"kernel_size": 3, "padding": 1, "padding_mode": "reflect"},
    ],
)
@pytest.mark.parametrize(("channels", "columns"), [(64, 128), (48, 3), (17, 33)])
def test_convolutions_are_exact(count: int, settings: dict, channels: int, columns: int) -> None:
    check_layer(nn.Conv2d(channels, columns, **settings), drawn(count, channels, 10, 12))


@gpu
@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Linear(64, 32), (1, 64)),  # a vector
        (nn.Linear(8, 32), (30, 8)),
        (nn.Conv2d(3, 32, 3), (9, 3, 8, 8)),
        (nn.Conv2d(64, 64, 3, groups=2), (9, 64, 8, 8)),
        (nn.Conv2d(64, 64, 3, dilation=2), (9, 64, 8, 8)),
        (nn.Conv2d(64, 64, 3, padding="same"), (9, 64, 8, 8)),
    ],
)
def test_other_layers_run_as_they_are(layer: nn.Module, shape: tuple[int, ...]) -> None:
    f, x = nn.Sequential(layer, nn.Flatten(), nn.LazyLinear(16)).cuda(), drawn(*shape)
    with torch.no_grad():
        f(x)
        plain = layer(x)
        with exact_products(f.modules(), x.device):
            assert torch.equal(layer(x), plain)


class Viewing(nn.Module):
    """Flattens feature maps by a view, which needs channels first, as in the library."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.linear = nn.Conv2d(3, 32, 3, padding=1), nn.Linear(32 * 64, 3 * 64)
        self.second = nn.Conv2d(32, 32, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        maps = self.second(torch.relu(self.convolution(x)))
        return torch.sigmoid(self.linear(maps.view(len(x), -1))).view_as(x)


@gpu
def test_a_network_that_views_feature_maps_is_recovered_from() -> None:
    f, y = Viewing().cuda(), drawn(20, 3, 8, 8)
    with ready(f, y, None) as network:
        assert error_of(network(y), copy.deepcopy(f).double()(y.double())) < 1e-6
    assert Blind(limit=2)(f, y).estimate.isfinite().all()


@gpu
def test_layers_that_share_a_weight_keep_their_own_bias() -> None:
    one, two = nn.Linear(64, 64), nn.Linear(64, 64)
    two.weight = one.weight
    check_layer(nn.Sequential(one, two), drawn(20, 64))


@gpu
def test_float64_networks_run_as_they_are() -> None:
    f = nn.Linear(64, 64).double().cuda()
    assert not isinstance(exact_products(f.modules(), f.weight.device), TensorCores)


@gpu
def test_values_that_are_no_numbers_stay_so() -> None:
    x = torch.ones(64, 128, device="cuda")
    x[3, 5], x[7, 9] = torch.nan, torch.inf
    bad = ~torch.isfinite(through(nn.Linear(128, 64).cuda(), x)).all(1)
    assert bad.nonzero()[:, 0].tolist() == [3, 7]


@gpu
@pytest.mark.parametrize("network", ["fc", "unet"])
def test_networks_are_as_exact_as_in_the_library(network: str) -> None:
    f = (FullyConnected((3, 32, 32), layers=10) if network == "fc" else UNet()).cuda().eval()
    x = drawn(40, 3, 32, 32)
    with torch.no_grad():
        exact, plain = copy.deepcopy(f).double()(x.double()), f(x)
    assert error_of(through(f, x), exact) < 3 * error_of(plain, exact)


@gpu
@pytest.mark.parametrize("network", ["fc", "unet"])
def test_what_is_recovered_is_the_same_but_for_rounding(network: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f = FullyConnected((3, 16, 16), layers=3, width=128) if network == "fc" else UNet(widths=(16, 32))
    x = torch.rand(30, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    y = mask("block", (3, 16, 16)).apply(x).cuda()
    method = Blind(limit=3)
    ours = method(f.cuda(), y)
    monkeypatch.setattr(tensor_cores, "_kernel_works", lambda _: False)
    plain = method(f, y)
    assert not torch.equal(ours.estimate, plain.estimate)
    assert torch.equal(ours.rounds, plain.rounds)
    assert torch.allclose(ours.estimate, plain.estimate, atol=1e-4)


@gpu
@pytest.mark.parametrize("trouble", ["fails", "is wrong"])
def test_without_the_kernel_recovery_goes_on_with_a_word(
    trouble: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(x: Tensor, layer: tensor_cores.Packed, *_: object) -> Tensor:
        if trouble == "fails":
            raise RuntimeError("there is no compiler")
        return x.new_zeros(len(x), 1, 1, len(layer.bias))

    caplog.set_level(logging.INFO, logger=tensor_cores.__name__)
    monkeypatch.setattr(tensor_cores, "run_kernel", broken)
    tensor_cores._kernel_works.cache_clear()
    try:
        f = nn.Linear(64, 64).cuda()
        assert not isinstance(exact_products(f.modules(), f.weight.device), TensorCores)
        assert not isinstance(exact_products(f.modules(), f.weight.device), TensorCores)
    finally:
        tensor_cores._kernel_works.cache_clear()
    assert len(caplog.records) == 1
    assert "Products run in the library" in caplog.text


@gpu
def test_where_memory_is_short_nothing_is_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    f = nn.Linear(1024, 1024).cuda()
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (2**23, 2**33))
    assert not isinstance(exact_products(f.modules(), f.weight.device), TensorCores)


@gpu
def test_weights_that_are_no_parameters_may_change_from_call_to_call() -> None:
    f, x = nn.Linear(64, 64, bias=False).cuda(), drawn(20, 64)
    with torch.no_grad():
        plain = functional.linear(x, f.weight + 0, None)
        with exact_products(f.modules(), x.device):
            assert torch.equal(functional.linear(x, f.weight + 0, None), plain)
            assert not torch.equal(functional.linear(x, f.weight, None), plain)
