"""Products on tensor cores: as exact as float32. What needs a CUDA device is run by make test-gpu."""

import copy
import logging

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from recollect import Blind, FullyConnected, UNet, mask
from recollect.accelerate import dispatch as own_products_module
from recollect.accelerate.dispatch import BY_THE_LIBRARY, OwnProducts, library_products, own_products
from recollect.accelerate.tf32x3 import backend as tensor_cores
from recollect.accelerate.tf32x3.backend import TensorCores
from recollect.accelerate.tf32x3.launch import Activation, Call, Outcome, run_kernel
from recollect.accelerate.tf32x3.packing import pack
from recollect.engine.runtime import products_of, ready

pytestmark = pytest.mark.gpu


def error_of(out: Tensor, exact: Tensor) -> float:
    return float((out - exact).norm() / exact.norm())


def through(f: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad(), own_products(f.modules(), x.device) as inside:
        assert isinstance(inside, OwnProducts)
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


@pytest.mark.parametrize("rows", [2, 8, 65, 300, 3000])
@pytest.mark.parametrize(("channels", "columns"), [(1024, 1024), (784, 100), (50, 7), (3072, 513)])
def test_linear_layers_are_exact(rows: int, channels: int, columns: int) -> None:
    check_layer(nn.Linear(channels, columns), drawn(rows, channels))


def test_linear_layers_of_more_dimensions_and_without_bias_are_exact() -> None:
    check_layer(nn.Linear(64, 48, bias=False), drawn(5, 7, 64))
    check_layer(nn.Linear(64, 48), drawn(48, 2 * 64)[:, ::2])


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


@pytest.mark.parametrize("count", [1, 9, 200])
@pytest.mark.parametrize(
    "settings",
    [
        {"kernel_size": 3, "padding": 1},
        {"kernel_size": 4, "padding": 1, "stride": 2},
        {"kernel_size": (2, 4), "padding": (0, 3), "bias": False},
        {"kernel_size": 3, "padding": 1, "padding_mode": "reflect"},
    ],
)
@pytest.mark.parametrize(("channels", "columns"), [(3, 64), (4, 3), (64, 3), (40, 5)])
def test_convolutions_of_few_channels_or_columns_are_exact(
    count: int, settings: dict, channels: int, columns: int
) -> None:
    layer, x = nn.Conv2d(channels, columns, **settings), drawn(count, channels, 10, 12)
    check_layer(layer, x)
    check_layer(layer, x.to(memory_format=torch.channels_last))
    check_layer(layer, drawn(count, channels, 10, 24)[..., ::2])


def test_convolutions_of_grey_images_are_exact() -> None:
    check_layer(nn.Conv2d(1, 24, 5, padding=2), drawn(9, 1, 10, 12))
    check_layer(nn.Conv2d(24, 1, 5, padding=2), drawn(9, 24, 10, 12))
    check_layer(nn.Conv2d(24, 1, 5), drawn(9, 24, 5, 5))


@pytest.mark.parametrize("activation", [Activation("leaky_relu", 0.2), Activation("softplus")])
@pytest.mark.parametrize("processors", [1, 10_000])
@pytest.mark.parametrize("columns", [12, 24, 48, 130])
@pytest.mark.parametrize("spatial", [True, False])
def test_every_tile_is_exact_in_whole_sums_and_in_parts(
    activation: Activation, processors: int, columns: int, spatial: bool
) -> None:
    x = drawn(9, 6, 7, 200) if spatial else drawn(378, 1, 1, 200)
    weight = drawn(columns, 200, *((3, 3) if spatial else (1, 1))) - 0.5
    call = Call(x, weight, drawn(columns), padding=(1, 1) if spatial else (0, 0))
    values, activated = run_kernel(call, pack(weight, call.way), processors, activation)
    exact = functional.conv2d(x.permute(0, 3, 1, 2).double(), weight.double(), call.bias.double(), 1, call.padding)
    assert error_of(values.permute(0, 3, 1, 2), exact) < 1e-6
    slope = activation.slope
    assert activated is not None
    after = functional.softplus(values) if activation.name == "softplus" else functional.leaky_relu(values, slope)
    assert torch.equal(activated, after)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Linear(64, 32), (1, 64)),  # a vector
        (nn.Linear(8, 32), (30, 8)),
        (nn.Conv2d(1, 32, 3), (9, 1, 8, 8)),
        (nn.Conv2d(64, 64, 3, groups=2), (9, 64, 8, 8)),
        (nn.Conv2d(64, 64, 3, dilation=2), (9, 64, 8, 8)),
        (nn.Conv2d(64, 64, 3, padding="same"), (9, 64, 8, 8)),
    ],
)
def test_other_layers_run_as_they_are(layer: nn.Module, shape: tuple[int, ...]) -> None:
    layer, x = layer.cuda(), drawn(*shape)
    with torch.no_grad():
        plain = layer(x)
        with own_products(layer.modules(), x.device):
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


def test_a_network_that_views_feature_maps_is_recovered_from() -> None:
    f, y = Viewing().cuda(), drawn(20, 3, 8, 8)
    with ready(f, y, None) as network:
        assert error_of(network(y), copy.deepcopy(f).double()(y.double())) < 1e-6
    assert Blind(limit=2)(f, y).estimate.isfinite().all()


@pytest.mark.parametrize("network", ["fc", "unet"])
@pytest.mark.parametrize("activation", ["lrelu", "softplus"])
@pytest.mark.parametrize("count", [3, 40, 600])
def test_an_activation_that_is_computed_along_has_the_library_s_bits(network: str, activation: str, count: int) -> None:
    shape, how = (3, 16, 16), {"activation": activation}
    f = FullyConnected(shape, layers=4, width=300, **how) if network == "fc" else UNet(widths=(16, 48), **how)
    f, x = f.cuda().eval(), drawn(count, *shape)
    with torch.no_grad(), own_products(f.modules(), x.device) as inside:
        assert isinstance(inside, OwnProducts)
        first = f(x)
        assert inside._followed
        assert torch.equal(f(x), first)


def test_layers_that_share_a_weight_keep_their_own_bias() -> None:
    one, two = nn.Linear(64, 64), nn.Linear(64, 64)
    two.weight = one.weight
    check_layer(nn.Sequential(one, two), drawn(20, 64))


def test_float64_networks_run_as_they_are() -> None:
    f = nn.Linear(64, 64).double().cuda()
    assert not isinstance(own_products(f.modules(), f.weight.device), OwnProducts)


def test_values_that_are_no_numbers_stay_so() -> None:
    x = torch.ones(64, 128, device="cuda")
    x[3, 5], x[7, 9] = torch.nan, torch.inf
    x[9, 1] = torch.tensor([0x7FFFFFFF], dtype=torch.int32).view(torch.float32)  # as GPUs make it
    bad = ~torch.isfinite(through(nn.Linear(128, 64).cuda(), x)).all(1)
    assert bad.nonzero()[:, 0].tolist() == [3, 7, 9]


@pytest.mark.parametrize("network", ["fc", "unet"])
def test_errors_of_networks_are_at_most_twice_the_library_s(network: str) -> None:
    f = (FullyConnected((3, 32, 32), layers=10) if network == "fc" else UNet()).cuda().eval()
    x = drawn(40, 3, 32, 32)
    with torch.no_grad():
        exact, plain = copy.deepcopy(f).double()(x.double()), f(x)
    assert error_of(through(f, x), exact) < 2 * error_of(plain, exact)


@pytest.mark.parametrize("network", ["fc", "unet"])
def test_what_is_recovered_is_the_same_but_for_rounding(network: str) -> None:
    f = FullyConnected((3, 16, 16), layers=3, width=128) if network == "fc" else UNet(widths=(16, 32))
    x = torch.rand(30, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    y = mask("block", (3, 16, 16)).apply(x).cuda()
    method = Blind(limit=3)
    ours = method(f.cuda(), y)
    with library_products():
        assert products_of(f, x) == BY_THE_LIBRARY
        plain = method(f, y)
    assert products_of(f, x) == TensorCores.in_words
    assert not torch.equal(ours.estimate, plain.estimate)
    assert torch.equal(ours.rounds, plain.rounds)
    assert torch.allclose(ours.estimate, plain.estimate, atol=1e-4)


@pytest.mark.parametrize("trouble", ["fails", "is wrong"])
def test_without_the_kernel_recovery_goes_on_with_a_word(
    trouble: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(call: Call, *_: object) -> Outcome:
        if trouble == "fails":
            raise RuntimeError("there is no compiler")
        return Outcome(call.x.new_zeros(call.outcome), None)

    caplog.set_level(logging.INFO, logger=tensor_cores.__name__)
    monkeypatch.setattr(tensor_cores, "run_kernel", broken)
    tensor_cores._kernel_works.cache_clear()
    try:
        f = nn.Linear(64, 64).cuda()
        assert not isinstance(own_products(f.modules(), f.weight.device), OwnProducts)
        assert not isinstance(own_products(f.modules(), f.weight.device), OwnProducts)
    finally:
        tensor_cores._kernel_works.cache_clear()
    assert len(caplog.records) == 1
    assert "Products run in the library" in caplog.text


def test_where_memory_is_short_nothing_is_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    f = nn.Linear(1024, 1024).cuda()
    monkeypatch.setattr(own_products_module, "free_memory", lambda _: 2**23)
    assert not isinstance(own_products(f.modules(), f.weight.device), OwnProducts)


def test_weights_that_are_no_parameters_may_change_from_call_to_call() -> None:
    f, x = nn.Linear(64, 64, bias=False).cuda(), drawn(20, 64)
    with torch.no_grad():
        plain = functional.linear(x, f.weight + 0, None)
        with own_products(f.modules(), x.device):
            assert torch.equal(functional.linear(x, f.weight + 0, None), plain)
            assert not torch.equal(functional.linear(x, f.weight, None), plain)


def test_a_weight_is_not_packed_within_a_graph() -> None:
    """There it would be packed at every replay, and if the graph came to nothing, never."""
    layer, x = nn.Linear(64, 48).cuda(), drawn(8, 64)
    through(layer, x)  # kernels are there
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), own_products([layer], x.device) as inside:
        with pytest.raises(RuntimeError, match="packed before it is used in a graph"), torch.cuda.graph(graph):
            layer(x + 0)
        out = layer(x)
        with torch.cuda.graph(again := torch.cuda.CUDAGraph()):
            captured = layer(x)
    again.replay()
    assert isinstance(inside, OwnProducts)
    assert torch.equal(captured, out)
