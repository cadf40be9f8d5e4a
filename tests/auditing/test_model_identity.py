import pytest
import torch
from torch import Tensor, nn

from recollect import FullyConnected
from recollect.auditing.model_identity import ModelIdentity, identify, weights_hash
from recollect.models import at_most, open_model
from tests.auditing.making import images
from tests.planted import Memorizer

SOME = images(6, 1)


def network(**more: object) -> FullyConnected:
    return FullyConnected(SOME.shape, **{"layers": 2, "width": 4, **more})  # type: ignore[arg-type]


def identity(f: object, *, deterministic: bool = True, source: str | None = None) -> ModelIdentity:
    return identify(f, SOME, deterministic=deterministic, source=source)


class Gain(nn.Module):
    """One weight, and a program that the weight does not tell."""

    def __init__(self, gain: float) -> None:
        super().__init__()
        self.weight, self.gain = nn.Parameter(torch.ones(1)), gain

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * self.gain * x


def test_weights_kind_and_adaptation_tell_models_apart() -> None:
    assert identity(network()).hash == identity(network()).hash
    other = network()
    other.load_state_dict(network().state_dict())
    with torch.no_grad():
        next(other.parameters())[0, 0] += 1e-6
    assert identity(other).hash != identity(network()).hash
    softplus = network(activation="softplus")
    softplus.load_state_dict(network().state_dict())
    assert weights_hash(softplus) != weights_hash(network())
    adapted = [open_model(network(), input_range=r) for r in ("0,1", "-1,1", "0,255")]
    assert len({identity(f).hash for f in adapted}) == 3
    assert identity(open_model(network(), input_range="-1,1")).hash == identity(adapted[1]).hash
    assert identity(Memorizer(SOME.pixels)).hash == identity(Memorizer(SOME.pixels)).hash
    assert identity(Memorizer(SOME.pixels)).hash != identity(Memorizer(SOME.pixels[:3])).hash


def test_a_limit_of_images_at_once_makes_no_other_model() -> None:
    """An audit that ends for want of memory is resumed with another limit."""
    for model in (Gain(0.5), lambda x: x / 2, open_model(Gain(0.5), input_range="-1,1")):
        assert identity(at_most(model, 2)).matches(identity(model))


def test_a_model_is_given_no_more_images_than_there_are() -> None:
    given: list[int] = []

    def model(x: Tensor) -> Tensor:
        given.append(len(x))
        return x / 2

    identity(model)
    assert max(given) == len(SOME)


def test_weights_of_any_kind_are_hashed() -> None:
    class Odd(nn.Module):
        def __init__(self, steps: int, dtype: torch.dtype = torch.int64, turn: float = 0.0) -> None:
            super().__init__()
            self.narrow = nn.Parameter(torch.ones(2, dtype=torch.bfloat16))
            self.turned = nn.Parameter(torch.full((2,), complex(1, turn)))
            self.register_buffer("steps", torch.tensor(steps, dtype=dtype))

        def get_extra_state(self) -> object:
            return {"any": "thing"}

        def set_extra_state(self, state: object) -> None: ...

    large = 2**53 + 1  # not told from its neighbour by a float
    assert weights_hash(Odd(large)) != weights_hash(Odd(large - 1))
    assert weights_hash(Odd(2**31 - 1, torch.int32)) != weights_hash(Odd(2**31 - 2, torch.int32))
    assert weights_hash(Odd(0, turn=0.5)) != weights_hash(Odd(0))


def test_another_program_with_the_same_weights_is_another_model() -> None:
    one, other = Gain(0.5), Gain(0.4)
    assert weights_hash(one) == weights_hash(other)
    assert not identity(one).matches(identity(other))
    assert identity(one).hash != identity(other).hash
    assert not identity(one, source="a").matches(identity(one, source="b"))


def test_rounding_does_not_make_another_model() -> None:
    """Other devices and numbers of threads give other bits."""
    one, rounded = identity(Gain(0.5)), identity(Gain(0.5 * (1 + 1e-7)))
    assert one.hash != rounded.hash
    assert one.matches(rounded)


def test_a_model_that_differs_from_call_to_call_is_known_by_its_weights() -> None:
    class Noisy(Gain):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) + torch.rand_like(x)

    assert identity(Noisy(0.5), deterministic=False).matches(identity(Noisy(0.5), deterministic=False))
    assert identity(Noisy(0.5), deterministic=False).outputs is None
    assert not identity(Gain(0.5)).matches(identity(Gain(0.5), deterministic=False))


def test_outputs_that_are_not_finite_are_compared_too() -> None:
    class Fails(Gain):
        def forward(self, x: Tensor) -> Tensor:
            return x.where(x > 0.5, float("nan"))

    assert identity(Fails(1)).matches(identity(Fails(1)))
    assert not identity(Fails(1)).matches(identity(Gain(1)))


def test_an_identity_comes_back_from_json() -> None:
    one = identity(Gain(0.5), source="a")
    again = ModelIdentity.read({"weights": one.weights, "source": "a", "outputs": [list(r) for r in one.outputs or ()]})
    assert again == one
    assert ModelIdentity.read({"weights": "w", "source": None, "outputs": None}).outputs is None


@pytest.mark.gpu
def test_a_model_is_the_same_on_the_gpu() -> None:
    assert identity(network().cuda()).matches(identity(network()))
