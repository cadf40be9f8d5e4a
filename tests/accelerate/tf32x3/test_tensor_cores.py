"""Layers on tensor cores: as exact as float32. What needs a CUDA device is run by make test-gpu."""

import copy
import logging
from contextlib import nullcontext

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from recollect import Blind, FullyConnected, UNet, mask
from recollect.accelerate import Accelerator
from recollect.accelerate.backend import Activation, LayerCall, LayerOutput
from recollect.accelerate.dispatch import KernelDispatch, find_kernels
from recollect.accelerate.tf32x3 import launch
from recollect.accelerate.tf32x3.launch_plan import INT32_VALUES
from recollect.accelerate.tf32x3.lowering import Lowering, lowering_of
from recollect.accelerate.tf32x3.packing import Packed, pack
from recollect.accelerate.tf32x3.tensor_cores import TensorCores, fills_chunks, fuse_upsampling, kernels_work
from recollect.devices.memory import free_memory
from recollect.engine import arithmetic_of, prepare, without_acceleration
from recollect.engine.runtime import IN_PYTORCH

gpu = pytest.mark.gpu


def error_of(out: Tensor, exact: Tensor) -> float:
    return float((out - exact).norm() / exact.norm())


def kernels_for(f: nn.Module, backend: TensorCores | None = None) -> KernelDispatch:
    kernels = find_kernels(f.modules(), next(f.parameters()).device, backend)
    assert kernels is not None
    return kernels


def through(f: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad(), kernels_for(f):
        return f(x)


def drawn(*shape: int) -> Tensor:
    return torch.rand(shape, device="cuda", generator=torch.Generator("cuda").manual_seed(sum(shape)))


class Recording(TensorCores):
    """Tensor cores with notes of what they were asked for."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self.lowerings: list[Lowering] = []
        self.fused: list[Activation | None] = []

    def run(self, call: LayerCall, packed: Packed, activation: Activation | None) -> LayerOutput:
        self.lowerings.append(lowering_of(call))
        self.fused.append(activation)
        return super().run(call, packed, activation)


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


@gpu
def test_convolutions_of_grey_images_are_exact() -> None:
    check_layer(nn.Conv2d(1, 24, 5, padding=2), drawn(9, 1, 10, 12))
    check_layer(nn.Conv2d(24, 1, 5, padding=2), drawn(9, 24, 10, 12))
    check_layer(nn.Conv2d(24, 1, 5), drawn(9, 24, 5, 5))


@gpu
@pytest.mark.parametrize("activation", [Activation("leaky_relu", 0.2), Activation("softplus")])
@pytest.mark.parametrize("processors", [1, 10_000])
@pytest.mark.parametrize("columns", [12, 24, 48, 130])
@pytest.mark.parametrize("spatial", [True, False])
def test_every_tile_is_exact_with_and_without_split_k(
    activation: Activation, processors: int, columns: int, spatial: bool
) -> None:
    x = drawn(9, 6, 7, 200) if spatial else drawn(378, 1, 1, 200)
    weight = drawn(columns, 200, *((3, 3) if spatial else (1, 1))) - 0.5
    call = LayerCall(x, weight, drawn(columns), padding=(1, 1) if spatial else (0, 0))
    values, activated = launch.run_layer(call, pack(weight, lowering_of(call)), processors, activation)
    assert call.bias is not None
    exact = functional.conv2d(x.permute(0, 3, 1, 2).double(), weight.double(), call.bias.double(), 1, call.padding)
    assert error_of(values.permute(0, 3, 1, 2), exact) < 1e-6
    slope = activation.slope
    assert activated is not None
    after = functional.softplus(values) if activation.name == "softplus" else functional.leaky_relu(values, slope)
    assert torch.equal(activated, after)


@gpu
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
        kernels = find_kernels(layer.modules(), x.device)
        with kernels or nullcontext():
            assert torch.equal(layer(x), plain)


class Viewing(nn.Module):
    """Flattens feature maps by a view, which needs channels first."""

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
    with prepare(f, y, None) as network:
        assert error_of(network(y), copy.deepcopy(f).double()(y.double())) < 1e-6
    assert Blind(limit=2)(f, y).estimate.isfinite().all()


@gpu
@pytest.mark.parametrize("network", ["fc", "unet"])
@pytest.mark.parametrize("activation", ["lrelu", "softplus"])
@pytest.mark.parametrize("count", [3, 40, 600])
def test_a_fused_activation_has_pytorch_s_bits(network: str, activation: str, count: int) -> None:
    shape = (3, 16, 16)
    networks: dict[str, nn.Module] = {
        "fc": FullyConnected(shape, layers=4, width=300, activation=activation),
        "unet": UNet(widths=(16, 48), activation=activation),
    }
    f = networks[network]
    f, x = f.cuda().eval(), drawn(count, *shape)
    backend = Recording(x.device)
    with torch.no_grad(), kernels_for(f, backend):
        first = f(x)
        assert not any(backend.fused)
        assert torch.equal(f(x), first)
    assert any(backend.fused)


@gpu
def test_layers_that_share_a_weight_keep_their_own_bias() -> None:
    one, two = nn.Linear(64, 64), nn.Linear(64, 64)
    two.weight = one.weight
    check_layer(nn.Sequential(one, two), drawn(20, 64))


@gpu
def test_float64_networks_run_as_they_are() -> None:
    f = nn.Linear(64, 64).double().cuda()
    assert find_kernels(f.modules(), f.weight.device) is None


@gpu
def test_values_that_are_no_numbers_stay_so() -> None:
    x = torch.ones(64, 128, device="cuda")
    x[3, 5], x[7, 9] = torch.nan, torch.inf
    x[9, 1] = torch.tensor([0x7FFFFFFF], dtype=torch.int32).view(torch.float32)  # as GPUs make it
    bad = ~torch.isfinite(through(nn.Linear(128, 64).cuda(), x)).all(1)
    assert bad.nonzero()[:, 0].tolist() == [3, 7, 9]


@gpu
@pytest.mark.parametrize("network", ["fc", "unet"])
def test_errors_of_networks_are_at_most_twice_pytorch_s(network: str) -> None:
    f = (FullyConnected((3, 32, 32), layers=10) if network == "fc" else UNet()).cuda().eval()
    x = drawn(40, 3, 32, 32)
    with torch.no_grad():
        exact, plain = copy.deepcopy(f).double()(x.double()), f(x)
    assert error_of(through(f, x), exact) < 2 * error_of(plain, exact)


@gpu
@pytest.mark.parametrize("network", ["fc", "unet"])
def test_what_is_recovered_is_the_same_but_for_rounding(network: str) -> None:
    f = FullyConnected((3, 16, 16), layers=3, width=128) if network == "fc" else UNet(widths=(16, 32))
    x = torch.rand(30, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    y = mask("block", (3, 16, 16)).apply(x).cuda()
    method = Blind(limit=3)
    ours = method(f.cuda(), y)
    with without_acceleration():
        assert arithmetic_of(f, x) == IN_PYTORCH
        plain = method(f, y)
    assert arithmetic_of(f, x) == TensorCores.description
    assert not torch.equal(ours.estimate, plain.estimate)
    assert torch.equal(ours.rounds, plain.rounds)
    assert torch.allclose(ours.estimate, plain.estimate, atol=1e-4)


@gpu
@pytest.mark.parametrize("trouble", ["fails", "is wrong"])
def test_a_failed_self_test_leaves_layers_to_pytorch_and_is_logged_once(
    trouble: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(call: LayerCall, *_: object) -> LayerOutput:
        if trouble == "fails":
            raise RuntimeError("there is no compiler")
        return LayerOutput(call.x.new_zeros(call.output_shape), None)

    caplog.set_level(logging.INFO, logger="recollect.accelerate")
    monkeypatch.setattr(launch, "run_layer", broken)
    kernels_work.cache_clear()
    try:
        f = nn.Linear(64, 64).cuda()
        assert find_kernels(f.modules(), f.weight.device) is None
        assert find_kernels(f.modules(), f.weight.device) is None
    finally:
        kernels_work.cache_clear()
    assert len(caplog.records) == 1
    assert "Layers run in PyTorch's kernels" in caplog.text


class Large(TensorCores):
    def packed_bytes(self, weight: Tensor) -> int:
        return free_memory(weight.device)


@gpu
def test_where_memory_is_short_nothing_is_packed() -> None:
    f = nn.Linear(1024, 1024).cuda()
    assert find_kernels(f.modules(), f.weight.device, Large(f.weight.device)) is None


@gpu
def test_weights_that_are_no_parameters_may_change_from_call_to_call() -> None:
    f, x = nn.Linear(64, 64, bias=False).cuda(), drawn(20, 64)
    with torch.no_grad():
        plain = functional.linear(x, f.weight + 0, None)
        with kernels_for(f):
            assert torch.equal(functional.linear(x, f.weight + 0, None), plain)
            assert not torch.equal(functional.linear(x, f.weight, None), plain)


@gpu
def test_a_weight_is_not_packed_within_a_graph() -> None:
    """There it would be packed at every replay, and if the graph came to nothing, never."""
    layer, x = nn.Linear(64, 48).cuda(), drawn(8, 64)
    through(layer, x)  # kernels are there
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), kernels_for(layer):
        with pytest.raises(RuntimeError, match="must be packed before a graph uses it"), torch.cuda.graph(graph):
            layer(x + 0)
        out = layer(x)
        with torch.cuda.graph(again := torch.cuda.CUDAGraph()):
            captured = layer(x)
    again.replay()
    assert torch.equal(captured, out)


@gpu
@pytest.mark.parametrize("count", [1, 9, 200])
@pytest.mark.parametrize(("channels", "columns"), [(20, 7), (64, 130), (512, 256), (48, 16)])
@pytest.mark.parametrize("size", [(1, 1), (4, 4), (3, 5)])
def test_convolutions_with_fused_upsampling_are_exact(
    count: int, channels: int, columns: int, size: tuple[int, int]
) -> None:
    x = drawn(count, channels, *size).to(memory_format=torch.channels_last) - 0.5
    layer = nn.Conv2d(channels, columns, 3, padding=1).cuda()
    f, backend = nn.Sequential(nn.Upsample(scale_factor=2), layer, nn.Softplus()), Recording(x.device)
    with torch.no_grad():
        exact = copy.deepcopy(f).double()(x.double())
        plain = f(x)
        with kernels_for(f, backend):
            outs = [f(x), f(x)]
    assert backend.lowerings == [Lowering.UPSAMPLED] * 2
    for out in outs:
        assert (out - exact).norm() < 2 * (plain - exact).norm() + 1e-7 * exact.norm()
    assert torch.equal(*outs)


@gpu
def test_unets_fuse_upsampling_and_are_exact() -> None:
    f, x = UNet(activation="softplus").cuda().eval(), drawn(50, 3, 32, 32)
    backend = Recording(x.device)
    with torch.no_grad():
        network = Accelerator(f, list(f.modules()), x.device, len(x), known=True, backend=backend)
        exact, ours, plain = copy.deepcopy(f).double()(x.double()), network(x), f(x)
    assert backend.lowerings.count(Lowering.UPSAMPLED) == 3
    assert (ours - exact).norm() < 2 * (plain - exact).norm()


@pytest.mark.parametrize(
    ("weight", "taken"),
    [
        ((8, 16), True),
        ((8, 15), False),
        ((8, 16, 1, 1), True),
        ((8, 3, 1, 1), False),
        ((8, 3, 3, 3), True),
        ((8, 1, 4, 4), True),
        ((8, 1, 3, 5), False),  # a chunk would be half empty
        ((8, 1, 8, 8), True),
        ((8, 3, 5, 5), False),  # too many terms
    ],
)
def test_weights_that_fill_chunks_are_taken(weight: tuple[int, ...], taken: bool) -> None:
    assert fills_chunks(torch.empty(weight)) is taken


def convolution(columns: int, channels: int, taps: int = 3, stride: int = 1, padding: int = 1) -> LayerCall:
    x, weight = torch.empty(2, 6, 10, channels), torch.empty(columns, channels, taps, taps)
    return LayerCall(x, weight, None, stride, (padding, padding))


@pytest.mark.parametrize(
    ("call", "fused"),
    [
        (convolution(30, 20), True),
        (convolution(30, 8), False),
        (convolution(30, 20, taps=5, padding=2), False),
        (convolution(30, 20, stride=2), False),
        (convolution(30, 20, padding=0), False),
    ],
)
def test_convolutions_that_read_maps_before_upsampling(call: LayerCall, fused: bool) -> None:
    source = torch.empty(2, call.x.shape[3], 3, 5)
    rewritten = fuse_upsampling(call, source)
    assert (rewritten is not None) is fused
    if rewritten:
        assert rewritten.output_shape == call.output_shape
        assert (rewritten.x.shape, rewritten.scale) == ((2, 3, 5, call.x.shape[3]), 2)


def test_upsampling_is_not_fused_where_the_packed_weight_cannot_be_addressed() -> None:
    for columns, fused in ((2**18 - 1, True), (2**18, False)):  # 4 phases x 2 x 2 taps x 512 channels of each
        x, weight = torch.empty(1, 2, 2, 512, device="meta"), torch.empty(columns, 512, 3, 3, device="meta")
        call = LayerCall(x, weight, None, padding=(1, 1))
        assert (fuse_upsampling(call, torch.empty(1, 512, 1, 1, device="meta")) is not None) is fused


@gpu
def test_the_admm_step_is_for_what_can_be_addressed() -> None:
    backend = TensorCores(torch.device("cuda", 0))
    assert backend.admm_step(INT32_VALUES - 1) is launch.admm_step
    assert backend.admm_step(INT32_VALUES) is None
