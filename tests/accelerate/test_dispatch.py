"""Which calls of a network run in kernels, and with what; here in a backend for any device."""

import copy
import logging
import weakref
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional

from recollect.accelerate.backend import Activation, LayerCall
from recollect.accelerate.dispatch import backend_for, find_kernels, weights_among
from recollect.devices.memory import free_memory
from recollect.engine import arithmetic_of
from tests.accelerate.by_hand import CPU, ByHand
from tests.accelerate.conftest import CountActivations

TAKEN: dict[str, tuple[nn.Module, Tensor]] = {
    "linear": (nn.Linear(40, 24), torch.rand(9, 40)),
    "without bias": (nn.Linear(40, 24, bias=False), torch.rand(9, 40)),
    "tokens": (nn.Linear(40, 24), torch.rand(3, 5, 40)),
    "every other": (nn.Linear(40, 24), torch.rand(9, 80)[:, ::2]),
    "negated": (nn.Linear(40, 24), torch.rand(9, 40, dtype=torch.complex64).conj().imag),
    "convolution": (nn.Conv2d(20, 30, 3, padding=1), torch.rand(2, 20, 6, 7)),
    "channels last": (nn.Conv2d(20, 30, 3), torch.rand(2, 20, 6, 7).to(memory_format=torch.channels_last)),
    "strided": (nn.Conv2d(20, 3, 4, stride=2, padding=1), torch.rand(2, 20, 8, 8)),
    "one way": (nn.Conv2d(20, 30, (1, 3), padding=(0, 1)), torch.rand(2, 20, 6, 7)),
    "reflecting": (nn.Conv2d(20, 30, 3, padding=1, padding_mode="reflect"), torch.rand(2, 20, 6, 7)),
}
LEFT: dict[str, tuple[nn.Module, Tensor]] = {
    "a vector": (nn.Linear(40, 24), torch.rand(1, 40)),
    "no images": (nn.Linear(40, 24), torch.rand(0, 40)),
    "few channels": (nn.Linear(8, 24), torch.rand(9, 8)),
    "few maps": (nn.Conv2d(1, 24, 3), torch.rand(2, 1, 6, 6)),
    "no batch": (nn.Conv2d(20, 24, 3), torch.rand(20, 6, 6)),
    "groups": (nn.Conv2d(32, 24, 3, groups=2), torch.rand(2, 32, 6, 6)),
    "dilated": (nn.Conv2d(32, 24, 3, dilation=2), torch.rand(2, 32, 6, 6)),
    "same": (nn.Conv2d(32, 24, 3, padding="same"), torch.rand(2, 32, 6, 6)),
    "one number": (nn.Conv2d(32, 24, 3, padding=cast(Any, (1,))), torch.rand(2, 32, 6, 6)),
    "transposed": (nn.ConvTranspose2d(32, 24, 3), torch.rand(2, 32, 6, 6)),
    "float64": (nn.Linear(40, 24).double(), torch.rand(9, 40).double()),
}


@pytest.mark.parametrize("name", TAKEN)
def test_layers_that_run_in_kernels(name: str, by_hand: ByHand) -> None:
    layer, x = TAKEN[name]
    with torch.no_grad():
        plain = layer(x)
        with by_hand.dispatch(layer):
            ours = layer(x)
    assert len(by_hand.calls) == 1
    assert ours.shape == plain.shape
    assert torch.allclose(ours, plain, atol=1e-5)


def test_weights_of_grouped_dilated_and_transposed_layers_are_not_taken() -> None:
    layers = [nn.Conv2d(32, 32, 3), nn.Conv2d(32, 32, 3, groups=2), nn.Conv2d(32, 32, 3, dilation=2)]
    layers += [nn.Conv2d(32, 32, 3, groups=32), nn.ConvTranspose2d(32, 32, 3)]  # type: ignore[list-item]
    weights = weights_among(layers, CPU, ByHand())
    assert [id(weight) for weight in weights] == [id(layers[0].weight)]


@pytest.mark.parametrize("name", LEFT)
def test_layers_that_are_left_to_pytorch(name: str, by_hand: ByHand) -> None:
    layer, x = LEFT[name]
    with torch.no_grad():
        plain = layer(x)
        with by_hand.dispatch(layer):
            assert torch.equal(layer(x), plain)
    assert not by_hand.calls


@pytest.mark.parametrize(
    ("layer", "x"),
    [
        (nn.Linear(64, 48), torch.rand(9, 40)),
        (nn.Linear(64, 48), torch.rand(9, 100)),
        (nn.Conv2d(32, 16, 3), torch.rand(2, 20, 6, 6)),
        (nn.Conv2d(32, 16, 9), torch.rand(2, 32, 6, 6)),
        (nn.Conv2d(32, 16, 3), torch.rand(2, 32, 6, 6, 6)),
    ],
)
def test_what_is_wrong_is_left_to_pytorch_to_say(layer: nn.Module, x: Tensor, by_hand: ByHand) -> None:
    with pytest.raises(RuntimeError) as plain:
        layer(x)
    with torch.no_grad(), by_hand.dispatch(layer), pytest.raises(RuntimeError) as ours:
        layer(x)
    assert str(ours.value) == str(plain.value)
    assert not by_hand.calls


def test_a_network_that_differentiates_is_left_to_pytorch(by_hand: ByHand) -> None:
    layer = nn.Linear(40, 40)
    with by_hand.dispatch(layer):
        layer(torch.rand(9, 40)).sum().backward()
    assert layer.weight.grad is not None
    assert not by_hand.calls


def test_so_are_autocast_and_the_transforms_of_torch_func(by_hand: ByHand) -> None:
    layer, x = nn.Linear(40, 40), torch.rand(9, 4, 40)
    with torch.no_grad(), by_hand.dispatch(layer):
        torch.func.vmap(layer)(x)
        with torch.autocast("cpu", dtype=torch.float16):
            layer(x)
        with forward_ad.dual_level():
            through = layer(forward_ad.make_dual(x, torch.ones_like(x)))
            assert forward_ad.unpack_dual(through).tangent is not None
    assert not by_hand.calls


class Marked(Tensor):
    """A subclass, which may have a linear layer of its own."""


class Named(nn.Parameter):
    pass


def test_so_are_subclasses_sparse_and_nested_tensors(by_hand: ByHand) -> None:
    layer, own = nn.Linear(40, 40), nn.Linear(40, 40)
    own.weight = Named(torch.rand(40, 40))
    with torch.no_grad(), by_hand.dispatch(layer, own):
        assert type(layer(torch.rand(9, 40).as_subclass(Marked))) is Marked
        own(torch.rand(9, 40))
        functional.linear(torch.rand(9, 40).to_sparse(), layer.weight, None)
        layer(torch.nested.nested_tensor([torch.rand(3, 40), torch.rand(2, 40)], layout=torch.jagged))
    assert not by_hand.calls


def test_weights_of_the_wrong_kind_of_layer_are_left_to_pytorch_to_refuse(by_hand: ByHand) -> None:
    dense, spatial = nn.Linear(40, 24), nn.Conv2d(40, 24, 1)
    with torch.no_grad(), by_hand.dispatch(dense, spatial):
        with pytest.raises(RuntimeError):
            functional.linear(torch.rand(9, 40), spatial.weight, None)
        with pytest.raises(RuntimeError):
            torch.conv2d(torch.rand(2, 40, 6, 6), dense.weight, None, (1, 1), (0, 0), (1, 1), 1)
    assert not by_hand.calls


@pytest.mark.parametrize("bits", [0x7FC00000, 0x7FFFFFFF, -1])
def test_a_weight_that_is_no_number_stays_so(bits: int, by_hand: ByHand) -> None:
    layer = nn.Linear(40, 24)
    with torch.no_grad(), by_hand.dispatch(layer):
        layer.weight[5, 7] = torch.tensor([bits], dtype=torch.int32).view(torch.float32)
        assert layer(torch.rand(9, 40)).isnan().any(0).nonzero().tolist() == [[5]]
    assert by_hand.calls


def test_looking_for_weights_changes_no_network() -> None:
    """Reading the weight of a parametrized layer computes it, which may change the state behind it."""
    f = nn.utils.parametrizations.spectral_norm(nn.Linear(40, 40))
    before = copy.deepcopy(f.state_dict())
    arithmetic_of(f, torch.rand(2, 1, 1, 40))
    assert all(torch.equal(values, before[name]) for name, values in f.state_dict().items())


@pytest.mark.parametrize("bias", [torch.rand(24, 2)[:, 0], torch.rand(1).expand(24), torch.rand(1)])
def test_biases_of_all_kinds(bias: Tensor, by_hand: ByHand) -> None:
    layer, x = nn.Linear(40, 24), torch.rand(9, 40)
    with torch.no_grad(), by_hand.dispatch(layer):
        ours = functional.linear(x, layer.weight, bias)
    assert torch.allclose(ours, x @ layer.weight.T + bias, atol=1e-5)
    assert len(by_hand.calls) == (bias.shape == (24,))


def test_a_weight_is_packed_once_however_its_bias_changes(by_hand: ByHand) -> None:
    layer, x = nn.Linear(40, 24), torch.rand(9, 40)
    with torch.no_grad(), by_hand.dispatch(layer):
        for _ in range(3):
            bias = torch.rand(24)
            ours = functional.linear(x, layer.weight, bias)
            assert torch.allclose(ours, x @ layer.weight.T + bias, atol=1e-5)
    assert len(by_hand.packed) == 1
    assert len(by_hand.calls) == 3


def test_a_weight_that_changes_is_left_to_pytorch_from_then_on(by_hand: ByHand) -> None:
    one, two, x = nn.Linear(40, 40), nn.Linear(40, 40), torch.rand(9, 40)
    with torch.no_grad(), by_hand.dispatch(one, two):
        two(one(x))
        one.weight.mul_(2)
        two.weight.data = torch.rand(40, 40)
        for layer in (one, two, one, two):
            assert torch.allclose(layer(x), x @ layer.weight.T + layer.bias, atol=1e-4)
    assert len(by_hand.calls) == 2


def test_weights_made_in_inference_mode(by_hand: ByHand) -> None:
    with torch.inference_mode():
        layer, x = nn.Linear(40, 24), torch.rand(9, 40)
        with by_hand.dispatch(layer):
            assert torch.allclose(layer(x), x @ layer.weight.T + layer.bias, atol=1e-5)
    assert by_hand.calls


class FewRows(ByHand):
    def accepts(self, call: LayerCall) -> bool:
        return len(call.x) < 9


def test_calls_that_the_backend_does_not_accept_are_left_to_pytorch() -> None:
    layer, backend = nn.Linear(40, 24), FewRows()
    with torch.no_grad(), backend.dispatch(layer):
        layer(torch.rand(9, 40))
        assert not backend.calls
        layer(torch.rand(8, 40))
    assert len(backend.calls) == 1


def test_feature_maps_lie_channels_last_unless_asked_otherwise(by_hand: ByHand) -> None:
    layer, x = nn.Conv2d(20, 30, 3), torch.rand(2, 20, 6, 6)
    inside = by_hand.dispatch(layer)
    with torch.no_grad(), inside:
        assert layer(x).is_contiguous(memory_format=torch.channels_last)
        inside.channels_first = True
        assert layer(x).is_contiguous()
    assert len(by_hand.calls) == 2


@pytest.mark.parametrize("kind", ["linear", "tokens", "convolution", "strided", "channels first"])
def test_an_activation_after_a_layer_is_fused_from_the_second_time_on(
    kind: str, by_hand: ByHand, activations: CountActivations
) -> None:
    layer, x = TAKEN["convolution" if kind == "channels first" else kind]
    f = nn.Sequential(layer, nn.LeakyReLU(0.2), nn.Tanh())
    inside = by_hand.dispatch(layer)
    inside.channels_first = kind == "channels first"
    with torch.no_grad():
        plain = f(x)
        activations.count = 0
        with inside:
            first, second = f(x), f(x)
    assert len(by_hand.calls) == 2
    assert activations.count == 1
    assert torch.equal(first, second)
    assert first.stride() == second.stride()
    assert torch.allclose(first, plain, atol=1e-5)


def test_softplus_is_fused_and_with_other_settings_left_to_pytorch(by_hand: ByHand) -> None:
    layer, x = nn.Linear(40, 24), 60 * torch.rand(9, 40) - 30
    with torch.no_grad(), by_hand.dispatch(layer):
        for beta in (1.0, 1.0, 2.0, 1.0):
            expected = functional.softplus(x @ layer.weight.T + layer.bias, beta)
            assert torch.allclose(nn.Softplus(beta)(layer(x)), expected, atol=1e-4)
        layer(x)
    softplus = Activation("softplus")
    assert by_hand.fused == [None, softplus, softplus, None, softplus]


def test_each_layer_has_the_slope_that_followed_it_last(by_hand: ByHand, activations: CountActivations) -> None:
    one, two, x = nn.Linear(40, 40), nn.Linear(40, 40), torch.rand(9, 40) - 0.5
    with torch.no_grad(), by_hand.dispatch(one, two):
        for round_number, slopes in enumerate([(0.1, 0.2), (0.1, 0.2), (0.1, 0.3), (0.1, 0.3)]):
            activations.count = 0
            for layer, slope in zip((one, two), slopes, strict=True):
                expected = functional.linear(x.double(), layer.weight.double(), layer.bias.double())
                ours = functional.leaky_relu(layer(x), slope)
                assert torch.allclose(ours.double(), functional.leaky_relu(expected, slope), atol=1e-5)
            assert activations.count == 2 + [2, 0, 1, 0][round_number]  # two are of what is expected
    assert len(by_hand.calls) == 8


def test_an_activation_that_no_longer_follows_is_no_longer_fused(by_hand: ByHand) -> None:
    layer, x = nn.Linear(40, 24), torch.rand(9, 40)
    with torch.no_grad(), by_hand.dispatch(layer):
        for follow in (nn.LeakyReLU(), nn.LeakyReLU(), nn.Tanh(), nn.Tanh()):
            follow(layer(x))
        layer(x)
    assert by_hand.fused == [None, Activation("leaky_relu", 0.01), Activation("leaky_relu", 0.01), None, None]


@pytest.mark.parametrize("between", ["a write", "a write through data", "a write in numpy", "another tensor"])
def test_a_leaky_relu_of_anything_else_is_not_the_fused_one(between: str, by_hand: ByHand) -> None:
    layer, x = nn.Linear(40, 24), torch.rand(9, 40) - 0.5

    def through_layer() -> Tensor:
        out = layer(x)
        if between == "a write":
            with torch._C.DisableTorchFunction():  # as compiled code does
                out.neg_()
        elif between == "a write through data":
            out.data.neg_()
        elif between == "a write in numpy":
            out.numpy()[:] *= -1
        else:
            out = -out
        return functional.leaky_relu(out, 0.2)

    with torch.no_grad(), by_hand.dispatch(layer):
        for _ in range(2):
            functional.leaky_relu(layer(x), 0.2)
        expected = functional.leaky_relu(-(x @ layer.weight.T + layer.bias), 0.2)
        assert torch.allclose(through_layer(), expected, atol=1e-5)
    assert len(by_hand.calls) == 3


def test_leaky_relus_in_place_and_in_inference_mode_run_in_pytorch(
    by_hand: ByHand, activations: CountActivations
) -> None:
    layer, x = nn.Linear(40, 24), torch.rand(9, 40) - 0.5
    f = nn.Sequential(layer, nn.LeakyReLU(0.2))
    with torch.no_grad():
        plain = f(x)
    for _ in range(2):
        with torch.inference_mode(), by_hand.dispatch(layer):
            assert torch.allclose(f(x), plain, atol=1e-5)
            assert torch.allclose(f(x), plain, atol=1e-5)
    assert activations.count == 5
    cast(nn.LeakyReLU, f[1]).inplace = True
    with torch.no_grad(), by_hand.dispatch(layer):
        for _ in range(3):
            assert torch.allclose(f(x), plain, atol=1e-5)
    assert len(by_hand.calls) == 7


def test_what_a_layer_returned_is_not_held(by_hand: ByHand) -> None:
    layer, x = nn.Linear(40, 24), torch.rand(9, 40)
    with torch.no_grad(), by_hand.dispatch(layer):
        returned = weakref.ref(layer(x))
        assert returned() is None


def test_watching_runs_pytorch_and_notes_what_follows(by_hand: ByHand, activations: CountActivations) -> None:
    layer, x = nn.Conv2d(20, 30, 3, padding=1), torch.rand(2, 20, 6, 6).to(memory_format=torch.channels_last)
    f = nn.Sequential(nn.Upsample(scale_factor=2), layer, nn.LeakyReLU(0.2))
    inside = by_hand.dispatch(layer)
    with torch.no_grad():
        plain = f(x)
        with inside.watching():
            assert torch.equal(f(x), plain)
        assert not by_hand.calls
        activations.count = 0
        with inside:
            assert torch.allclose(f(x), plain, atol=1e-5)
    assert by_hand.scales == [2]
    assert not activations.count


class Large(ByHand):
    def packed_bytes(self, _weight: Tensor) -> int:
        return free_memory(CPU)


def test_kernels_are_found_for_layers_that_gain_while_memory_lasts(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="recollect.accelerate")
    layer = nn.Linear(40, 24)
    assert find_kernels([layer], CPU, ByHand()) is not None
    assert find_kernels([nn.Linear(8, 24), nn.Tanh()], CPU, ByHand()) is None
    assert not caplog.records
    assert find_kernels([layer], CPU, Large()) is None
    assert "packed weights would fill the device's memory" in caplog.text


def test_other_devices_have_no_backend() -> None:
    assert backend_for(torch.device("meta")) is None
