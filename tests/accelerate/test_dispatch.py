"""Which calls of a network run in our kernels, and with what: here with kernels for any device."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional

from recollect.accelerate.dispatch import weights_among
from recollect.accelerate.tf32x3 import launch as products
from recollect.accelerate.tf32x3.launch import Call
from recollect.engine.runtime import products_of
from tests.accelerate.by_hand import ByHand, on_a_cpu

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
    "one number": (nn.Conv2d(32, 24, 3, padding=(1,)), torch.rand(2, 32, 6, 6)),
    "transposed": (nn.ConvTranspose2d(32, 24, 3), torch.rand(2, 32, 6, 6)),
    "float64": (nn.Linear(40, 24).double(), torch.rand(9, 40).double()),
}


@pytest.mark.parametrize("name", TAKEN)
def test_layers_that_the_kernel_takes(name: str, calls: list[Call]) -> None:
    layer, x = TAKEN[name]
    with torch.no_grad():
        plain = layer(x)
        with on_a_cpu(layer):
            ours = layer(x)
    assert len(calls) == 1
    assert ours.shape == plain.shape
    assert torch.allclose(ours, plain, atol=1e-5)


def test_weights_of_groups_and_dilated_layers_are_no_weights_of_ours() -> None:
    layers = [nn.Conv2d(32, 32, 3), nn.Conv2d(32, 32, 3, groups=2), nn.Conv2d(32, 32, 3, dilation=2)]
    layers += [nn.Conv2d(32, 32, 3, groups=32), nn.ConvTranspose2d(32, 32, 3)]  # type: ignore[list-item]
    weights = weights_among(layers, torch.device("cpu"), ByHand())
    assert [id(weight) for weight in weights] == [id(layers[0].weight)]


@pytest.mark.parametrize("name", LEFT)
def test_layers_that_are_left_to_the_library(name: str, calls: list[Call]) -> None:
    layer, x = LEFT[name]
    with torch.no_grad():
        plain = layer(x)
        with on_a_cpu(layer):
            assert torch.equal(layer(x), plain)
    assert not calls


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
def test_what_is_wrong_is_left_to_the_library_to_say(layer: nn.Module, x: Tensor, calls: list[Call]) -> None:
    with pytest.raises(RuntimeError) as plain:
        layer(x)
    with torch.no_grad(), on_a_cpu(layer), pytest.raises(RuntimeError) as ours:
        layer(x)
    assert str(ours.value) == str(plain.value)
    assert not calls


def test_a_network_that_differentiates_is_left_to_the_library(calls: list[Call]) -> None:
    layer = nn.Linear(40, 40)
    with on_a_cpu(layer):
        layer(torch.rand(9, 40)).sum().backward()
    assert layer.weight.grad is not None
    assert not calls


def test_so_are_autocast_and_the_transforms_of_torch_func(calls: list[Call]) -> None:
    layer, x = nn.Linear(40, 40), torch.rand(9, 4, 40)
    with torch.no_grad(), on_a_cpu(layer):
        torch.func.vmap(layer)(x)
        with torch.autocast("cpu"):
            layer(x)
        with forward_ad.dual_level():
            through = layer(forward_ad.make_dual(x, torch.ones_like(x)))
            assert forward_ad.unpack_dual(through).tangent is not None
    assert not calls


class Marked(Tensor):
    """A subclass, which may have a linear layer of its own."""


class Named(nn.Parameter):
    pass


def test_so_are_subclasses_sparse_and_nested_tensors(calls: list[Call]) -> None:
    layer, own = nn.Linear(40, 40), nn.Linear(40, 40)
    own.weight = Named(torch.rand(40, 40))
    with torch.no_grad(), on_a_cpu(layer, own):
        assert type(layer(torch.rand(9, 40).as_subclass(Marked))) is Marked
        own(torch.rand(9, 40))
        functional.linear(torch.rand(9, 40).to_sparse(), layer.weight, None)
        layer(torch.nested.nested_tensor([torch.rand(3, 40), torch.rand(2, 40)], layout=torch.jagged))
    assert not calls


def test_weights_of_the_wrong_kind_of_layer_are_left_to_the_library_to_refuse(calls: list[Call]) -> None:
    dense, spatial = nn.Linear(40, 24), nn.Conv2d(40, 24, 1)
    with torch.no_grad(), on_a_cpu(dense, spatial):
        with pytest.raises(RuntimeError):
            functional.linear(torch.rand(9, 40), spatial.weight, None)
        with pytest.raises(RuntimeError):
            torch.conv2d(torch.rand(2, 40, 6, 6), dense.weight, None, (1, 1), (0, 0), (1, 1), 1)
    assert not calls


@pytest.mark.parametrize("bits", [0x7FC00000, 0x7FFFFFFF, -1])
def test_a_weight_that_is_no_number_stays_so(bits: int, calls: list[Call]) -> None:
    layer = nn.Linear(40, 24)
    with torch.no_grad(), on_a_cpu(layer):
        layer.weight[5, 7] = torch.tensor([bits], dtype=torch.int32).view(torch.float32)
        assert layer(torch.rand(9, 40)).isnan().any(0).nonzero().tolist() == [[5]]
    assert calls


def test_looking_for_weights_changes_no_network() -> None:
    """The weight of a parametrized layer is made when it is asked for, which may move what it is made from."""
    f = nn.utils.parametrizations.spectral_norm(nn.Linear(40, 40))
    before = f.parametrizations.weight[0]._u.clone()
    products_of(f, torch.rand(2, 1, 1, 40))
    assert torch.equal(f.parametrizations.weight[0]._u, before)


@pytest.mark.parametrize("bias", [torch.rand(24, 2)[:, 0], torch.rand(1).expand(24), torch.rand(1)])
def test_biases_of_all_kinds(bias: Tensor, calls: list[Call]) -> None:
    layer, x = nn.Linear(40, 24), torch.rand(9, 40)
    with torch.no_grad(), on_a_cpu(layer):
        ours = functional.linear(x, layer.weight, bias)
    assert torch.allclose(ours, x @ layer.weight.T + bias, atol=1e-5)
    assert len(calls) == (bias.shape == (24,))


def test_a_weight_is_packed_once_however_its_bias_changes(calls: list[Call]) -> None:
    layer, x = nn.Linear(40, 24), torch.rand(9, 40)
    inside = on_a_cpu(layer)
    with torch.no_grad(), inside:
        for _ in range(3):
            bias = torch.rand(24)
            ours = functional.linear(x, layer.weight, bias)
            assert torch.allclose(ours, x @ layer.weight.T + bias, atol=1e-5)
    assert len(inside._packed) == 1
    assert len(calls) == 3


def test_a_weight_that_changes_is_left_to_the_library_from_then_on(calls: list[Call]) -> None:
    one, two, x = nn.Linear(40, 40), nn.Linear(40, 40), torch.rand(9, 40)
    with torch.no_grad(), on_a_cpu(one, two):
        two(one(x))
        one.weight.mul_(2)
        two.weight.data = torch.rand(40, 40)
        for layer in (one, two, one, two):
            assert torch.allclose(layer(x), x @ layer.weight.T + layer.bias, atol=1e-4)
    assert len(calls) == 2


def test_weights_made_in_inference_mode(calls: list[Call]) -> None:
    with torch.inference_mode():
        layer, x = nn.Linear(40, 24), torch.rand(9, 40)
        with on_a_cpu(layer):
            assert torch.allclose(layer(x), x @ layer.weight.T + layer.bias, atol=1e-5)
    assert calls


def test_what_cannot_be_counted_is_left_to_the_library(calls: list[Call], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "LARGEST", 24 * 64)
    layer, x = nn.Linear(40, 24), torch.rand(9, 40)
    with torch.no_grad(), on_a_cpu(layer):
        layer(x)
        assert not calls  # its 40 channels are filled up to 64
        monkeypatch.setattr(products, "LARGEST", 24 * 64 + 1)
        layer(x)
    assert calls


def test_feature_maps_lie_channels_last_unless_asked_otherwise(calls: list[Call]) -> None:
    layer, x = nn.Conv2d(20, 30, 3), torch.rand(2, 20, 6, 6)
    inside = on_a_cpu(layer)
    with torch.no_grad(), inside:
        assert layer(x).is_contiguous(memory_format=torch.channels_last)
        inside.as_given = True
        assert layer(x).is_contiguous()
    assert len(calls) == 2


@pytest.fixture
def activations(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of the library, how many there were."""
    made: list[int] = []

    def counting(plain: Any) -> Any:
        def counted(*args: Any) -> Tensor:
            made.append(1)
            return plain(*args)

        return counted

    monkeypatch.setattr(torch._C._nn, "leaky_relu", counting(torch._C._nn.leaky_relu))
    return made


@pytest.mark.parametrize("kind", ["linear", "tokens", "convolution", "strided", "as given"])
def test_an_activation_after_a_layer_is_computed_along_from_the_second_time_on(
    kind: str, calls: list[Call], activations: list[int]
) -> None:
    layer, x = TAKEN["convolution" if kind == "as given" else kind]
    f = nn.Sequential(layer, nn.LeakyReLU(0.2), nn.Tanh())
    inside = on_a_cpu(layer)
    inside.as_given = kind == "as given"
    with torch.no_grad():
        plain = f(x)
        activations.clear()
        with inside:
            first, second = f(x), f(x)
    assert len(calls) == 2
    assert len(activations) == 1
    assert torch.equal(first, second)
    assert first.stride() == second.stride()
    assert torch.allclose(first, plain, atol=1e-5)


def test_softplus_is_computed_along_and_with_other_settings_it_is_the_library_s(calls: list[Call]) -> None:
    layer, x = nn.Linear(40, 24), 60 * torch.rand(9, 40) - 30
    with torch.no_grad(), on_a_cpu(layer) as inside:
        for beta in (1.0, 1.0, 2.0, 1.0):
            expected = functional.softplus(x @ layer.weight.T + layer.bias, beta)
            assert torch.allclose(nn.Softplus(beta)(layer(x)), expected, atol=1e-4)
        layer(x)
        assert inside._latest.activated is not None
    assert len(calls) == 5


def test_each_layer_has_the_slope_that_followed_it_last(calls: list[Call], activations: list[int]) -> None:
    one, two, x = nn.Linear(40, 40), nn.Linear(40, 40), torch.rand(9, 40) - 0.5
    with torch.no_grad(), on_a_cpu(one, two):
        for round_number, slopes in enumerate([(0.1, 0.2), (0.1, 0.2), (0.1, 0.3), (0.1, 0.3)]):
            activations.clear()
            for layer, slope in zip((one, two), slopes, strict=True):
                expected = functional.linear(x.double(), layer.weight.double(), layer.bias.double())
                ours = functional.leaky_relu(layer(x), slope)
                assert torch.allclose(ours.double(), functional.leaky_relu(expected, slope), atol=1e-5)
            assert len(activations) == 2 + [2, 0, 1, 0][round_number]  # two are of what is expected
    assert len(calls) == 8


def test_an_activation_that_no_longer_follows_is_no_longer_computed_along(calls: list[Call]) -> None:
    layer, x = nn.Linear(40, 24), torch.rand(9, 40)
    with torch.no_grad(), on_a_cpu(layer) as inside:
        for follow in (nn.LeakyReLU(), nn.LeakyReLU(), nn.Tanh(), nn.Tanh()):
            follow(layer(x))
        layer(x)
        assert inside._latest.activated is None
    assert len(calls) == 5


@pytest.mark.parametrize("between", ["a write", "a write through data", "a write in numpy", "another tensor"])
def test_a_leaky_relu_of_anything_else_is_not_the_one_along(between: str, calls: list[Call]) -> None:
    layer, x = nn.Linear(40, 24), torch.rand(9, 40) - 0.5

    def through_layer() -> Tensor:
        out = layer(x)
        if between == "a write":
            torch._C._VariableFunctions.neg_(out)  # type: ignore[attr-defined]
        elif between == "a write through data":
            out.data.neg_()
        elif between == "a write in numpy":
            out.numpy()[:] *= -1
        else:
            out = -out
        return functional.leaky_relu(out, 0.2)

    with torch.no_grad(), on_a_cpu(layer):
        for _ in range(2):
            functional.leaky_relu(layer(x), 0.2)
        expected = functional.leaky_relu(-(x @ layer.weight.T + layer.bias), 0.2)
        assert torch.allclose(through_layer(), expected, atol=1e-5)
    assert len(calls) == 3


def test_leaky_relus_in_place_and_in_inference_mode_run_in_the_library(
    calls: list[Call], activations: list[int]
) -> None:
    layer, x = nn.Linear(40, 24), torch.rand(9, 40) - 0.5
    f = nn.Sequential(layer, nn.LeakyReLU(0.2))
    with torch.no_grad():
        plain = f(x)
    for _ in range(2):
        with torch.inference_mode(), on_a_cpu(layer) as inside:
            assert torch.allclose(f(x), plain, atol=1e-5)
            assert torch.allclose(f(x), plain, atol=1e-5)
        assert inside._latest is None
    assert len(activations) == 5
    f[1].inplace = True
    with torch.no_grad(), on_a_cpu(layer):
        for _ in range(3):
            assert torch.allclose(f(x), plain, atol=1e-5)
    assert len(calls) == 7


def test_what_a_layer_returned_is_not_held(calls: list[Call]) -> None:
    layer, x = nn.Linear(40, 24), torch.rand(9, 40)
    with torch.no_grad(), on_a_cpu(layer) as inside:
        layer(x)
        assert inside._latest is not None
        assert inside._latest.values() is None
    assert inside._latest is None


def test_watching_runs_the_library_and_notes_what_follows(calls: list[Call], activations: list[int]) -> None:
    layer, x = nn.Conv2d(20, 30, 3, padding=1), torch.rand(2, 20, 6, 6).to(memory_format=torch.channels_last)
    f = nn.Sequential(nn.Upsample(scale_factor=2), layer, nn.LeakyReLU(0.2))
    inside = on_a_cpu(layer)
    with torch.no_grad():
        plain = f(x)
        with inside.watching():
            assert torch.equal(f(x), plain)
        assert not calls
        assert inside._followed
        activations.clear()
        with inside:
            assert torch.allclose(f(x), plain, atol=1e-5)
    assert [call.scale for call in calls] == [2]
    assert not activations
