import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from recollect import FullyConnected, InputError, TiedTwoLayer
from recollect.attractors import (
    Jacobian,
    ProximalTest,
    firmly_nonexpansive,
    fixed_point_error,
    proximal_test,
    spectral_radius,
)
from tests.networks import Halves

SHAPE = (1, 4, 6)
SIZE = 24
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {  # slopes in [0, 1]
    "tanh": torch.tanh,
    "softplus": nn.functional.softplus,
    "identity": lambda z: z,
    "sigmoid": torch.sigmoid,
    "atan": torch.atan,
}


def tied(seed: int, hidden: int, largest: float, rho: Callable[[Tensor], Tensor] = torch.tanh) -> TiedTwoLayer:
    """W with singular values between 0 and `largest`, both reached."""
    rng = np.random.default_rng(seed)
    left, _, right = np.linalg.svd(rng.standard_normal((hidden, SIZE)), full_matrices=False)
    singular = np.linspace(largest, 0, min(hidden, SIZE))
    return TiedTwoLayer(torch.from_numpy(left * singular @ right), rho)


def point(seed: int = 0, scale: float = 1.0) -> Tensor:
    return torch.from_numpy(scale * np.random.default_rng(seed).standard_normal(SHAPE))


LIMITS = {"dense": 768, "iterative": 1}  # values up to which the whole Jacobian is computed
each_path = pytest.mark.parametrize("path", LIMITS)


def both_ways(f: Callable[[Tensor], Tensor], x: Tensor) -> tuple[ProximalTest, ...]:
    return tuple(proximal_test(f, x, dense_limit=limit) for limit in LIMITS.values())


# Theorem 1


@settings(max_examples=20)
@given(
    seed=st.integers(0, 10**6),
    hidden=st.sampled_from([3, 16, 40]),
    largest=st.floats(0.1, 1.0),
    rho=st.sampled_from(sorted(ACTIVATIONS)),
)
def test_theorem_1_holds_where_its_conditions_do(seed: int, hidden: int, largest: float, rho: str) -> None:
    f = tied(seed, hidden, largest, ACTIVATIONS[rho])
    for found in both_ways(f, point(seed)):
        assert found.passed, str(found)
    a, b = (torch.from_numpy(np.random.default_rng(seed + i).standard_normal((20, *SHAPE))) for i in (1, 2))
    assert firmly_nonexpansive(f, a, b).all()


def steep(z: Tensor) -> Tensor:
    return 2 * z


def falling(z: Tensor) -> Tensor:
    return -torch.tanh(z)


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), hidden=st.sampled_from([3, 16, 40]))
@pytest.mark.parametrize(
    ("largest", "rho", "low", "high"),
    [(1.3, "identity", False, True), (1.0, "steep", False, True), (1.0, "falling", True, False)],
)
def test_theorem_1_fails_where_its_conditions_do(
    seed: int, hidden: int, largest: float, rho: str, low: bool, high: bool
) -> None:
    """Symmetric all the same, but with eigenvalues above 1 or below 0."""
    f = tied(seed, hidden, largest, {"steep": steep, "falling": falling}.get(rho) or ACTIVATIONS[rho])
    for found in both_ways(f, point(seed, 0.1)):
        assert found.symmetric
        assert (found.lowest < -1e-3, found.highest > 1 + 1e-3) == (low, high)
        assert not found.passed
        assert "is no proximity operator" in str(found)


@each_path
def test_untied_weights_are_not_symmetric(path: str) -> None:
    rng = np.random.default_rng(0)
    encoder, decoder = (torch.from_numpy(rng.standard_normal(s) / 40) for s in [(16, SIZE), (SIZE, 16)])
    found = proximal_test(
        lambda x: (torch.tanh(x.flatten(1) @ encoder.T) @ decoder.T).view_as(x), point(), dense_limit=LIMITS[path]
    )
    assert found.method == path
    assert not found.symmetric
    assert not found.passed


@each_path
def test_a_rotation_is_not_symmetric_though_its_symmetric_part_is_fine(path: str) -> None:
    found = proximal_test(lambda x: (x + x.roll(1, -1)) / 2, point(), dense_limit=LIMITS[path])
    assert not found.symmetric
    assert not found.passed


@settings(max_examples=12)
@given(seed=st.integers(0, 10**6), hidden=st.sampled_from([3, 16, 40]), largest=st.floats(0.2, 3))
def test_the_two_ways_agree(seed: int, hidden: int, largest: float) -> None:
    """Also with a random untied part, and where most eigenvalues are 0."""
    f, other = tied(seed, hidden, largest), torch.from_numpy(np.random.default_rng(seed).standard_normal((SIZE, SIZE)))
    mixed = lambda x: f(x) + 0.1 * (x.flatten(1) @ other).view_as(x)  # noqa: E731
    for g in (f, mixed):
        dense, iterative = both_ways(g, point(seed))
        assert iterative.lowest == pytest.approx(dense.lowest, abs=1e-4)
        assert iterative.highest == pytest.approx(dense.highest, abs=1e-4)
        assert iterative.asymmetry == pytest.approx(dense.asymmetry, rel=0.5, abs=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_large_images_take_the_iterative_way_and_find_the_null_space(dtype: torch.dtype) -> None:
    """Rank 32 of 1024: the lowest eigenvalue is 0, which a relative tolerance on it would never reach."""
    rows = np.linalg.qr(np.random.default_rng(0).standard_normal((1024, 32)))[0].T * np.linspace(0.3, 1, 32)[:, None]
    f = TiedTwoLayer(torch.from_numpy(rows).to(dtype), rho=lambda z: z)
    found = proximal_test(f, torch.zeros(1, 32, 32, dtype=dtype))
    assert found.method == "iterative"
    assert found.passed
    assert (found.lowest, found.highest) == pytest.approx((0, 1), abs=1e-4)


@pytest.mark.parametrize(
    ("f", "lowest", "highest"), [(lambda x: x, 1, 1), (lambda x: 0.5 + 0 * x, 0, 0), (lambda x: -x, -1, -1)]
)
@each_path
def test_trivial_maps(path: str, f: Callable, lowest: float, highest: float) -> None:
    found = proximal_test(f, point(), dense_limit=LIMITS[path])
    assert (found.lowest, found.highest, found.asymmetry) == pytest.approx((lowest, highest, 0), abs=1e-6)
    assert spectral_radius(f, point(), dense_limit=LIMITS[path]).value == pytest.approx(abs(highest), abs=1e-6)


def test_the_verdict_in_words() -> None:
    found = proximal_test(tied(0, 16, 1.0), point())
    assert str(found).startswith("The autoencoder acts as a proximity operator here: asymmetry")
    assert str(found).endswith("(dense).")


# Firm nonexpansiveness


def test_firmly_nonexpansive_by_hand() -> None:
    a, b = torch.rand(5, *SHAPE), torch.rand(5, *SHAPE)
    assert firmly_nonexpansive(lambda x: x / 2, a, b).all()
    assert firmly_nonexpansive(lambda x: x, a, b).all()
    assert not firmly_nonexpansive(lambda x: 1.1 * x, a, b).any()
    assert not firmly_nonexpansive(lambda x: -x / 2, a, b).any()  # nonexpansive, but not firmly
    with pytest.raises(InputError, match=r"Pairs need equal shapes, got \(5, 1, 4, 6\) and \(4, 1, 4, 6\)"):
        firmly_nonexpansive(lambda x: x, a, b[:4])


def test_firm_nonexpansiveness_is_told_pair_by_pair() -> None:
    a = torch.stack([torch.full(SHAPE, 0.1), torch.full(SHAPE, 2.0)])
    assert firmly_nonexpansive(lambda x: torch.where(x > 1, 3 * x, x / 2), a, torch.zeros_like(a)).tolist() == [
        True,
        False,
    ]


# Jacobians, fixed points


def test_the_jacobian_of_a_linear_map_is_its_matrix() -> None:
    matrix = torch.from_numpy(np.random.default_rng(0).standard_normal((SIZE, SIZE)))
    jacobian = Jacobian(lambda x: (x.flatten(1) @ matrix.T).view_as(x), point())
    vector = np.random.default_rng(1).standard_normal(SIZE)
    assert np.allclose(jacobian.dense(), matrix)
    assert np.allclose(jacobian.times(vector), matrix.numpy() @ vector)
    assert np.allclose(jacobian.transposed_times(vector), matrix.numpy().T @ vector)


def test_the_jacobian_of_a_network_is_what_differences_say() -> None:
    f = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.Softplus(), nn.Conv2d(4, 1, 3, padding=1)).double()
    x, h = point()[None], 1e-5
    direction = torch.from_numpy(np.random.default_rng(1).standard_normal((1, *SHAPE)))
    with torch.no_grad():
        slope = (f(x + h * direction) - f(x - h * direction)) / (2 * h)
    assert np.allclose(Jacobian(f, x).times(direction.numpy().ravel()), slope.flatten(), atol=1e-7)


@each_path
def test_the_spectral_radius(path: str) -> None:
    matrix = np.diag(np.linspace(-0.9, 0.5, SIZE))
    matrix[:2, :2] = [[0, 1.2], [-1.2, 0]]  # a complex pair
    weights = torch.from_numpy(matrix)
    radius = spectral_radius(lambda x: (x.flatten(1) @ weights.T).view_as(x), point(), dense_limit=LIMITS[path])
    assert radius.value == pytest.approx(1.2, abs=1e-3)
    assert radius.below_one is False


def linear(matrix: np.ndarray) -> Callable[[Tensor], Tensor]:
    weights = torch.from_numpy(matrix)
    return lambda x: (x.flatten(1) @ weights.T).view_as(x)


@pytest.mark.parametrize("seed", range(4))
def test_a_dense_spectrum_is_met_or_left_undecided(seed: int) -> None:
    """Random matrices have many eigenvalues of nearly the largest size."""
    matrix = np.random.default_rng(seed).standard_normal((200, 200)) / np.sqrt(200)
    exact = np.abs(np.linalg.eigvals(matrix)).max()
    radius = spectral_radius(linear(matrix), torch.zeros(2, 10, 10).double(), dense_limit=0)
    if radius.converged:
        assert radius.value == pytest.approx(exact, rel=1e-4)
    assert radius.below_one in (None, bool(exact < 1))


def test_a_rotation_ends_undecided_after_a_bounded_number_of_products() -> None:
    """All eigenvalues of an orthogonal matrix have the size 1."""
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((400, 400)))[0]
    radius = spectral_radius(linear(rotation), torch.zeros(1, 20, 20).double(), dense_limit=0)
    assert radius.value == pytest.approx(1, abs=1e-6)
    assert radius.below_one is None


def test_no_forward_differentiation_is_needed() -> None:
    class Half(torch.autograd.Function):
        """A function with a backward pass alone."""

        generate_vmap_rule = True

        @staticmethod
        def forward(x: Tensor) -> Tensor:
            return x * 0.5

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            return gradient * 0.5

    assert spectral_radius(Half.apply, point(), dense_limit=0).value == pytest.approx(0.5)


class Attention(nn.Module):
    """Rows of an image attend to each other."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.mix = nn.Parameter(scale * torch.randn(3, 6, 6).double())

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (x @ mix for mix in self.mix)
        return x + nn.functional.scaled_dot_product_attention(query, key, value)


@pytest.mark.parametrize("scale", [0.1, 1.0])
def test_attention_is_examined_in_products_as_in_full(scale: float) -> None:
    f, h = Attention(scale), 1e-6
    x = point()[None]
    with torch.no_grad():
        moved = [(f(x + h * e) - f(x - h * e)).flatten() / (2 * h) for e in torch.eye(SIZE).double().view(-1, *x.shape)]
    exact = torch.stack(moved, 1).numpy()
    assert np.allclose(Jacobian(f, x).dense(), exact, atol=1e-6)
    vector = np.random.default_rng(0).standard_normal(SIZE)
    assert np.allclose(Jacobian(f, x).times(vector), exact @ vector, atol=1e-6)
    radius = float(np.abs(np.linalg.eigvals(exact)).max())
    for limit in LIMITS.values():
        assert spectral_radius(f, x, dense_limit=limit).value == pytest.approx(radius, rel=1e-4)
        assert proximal_test(f, x, dense_limit=limit).highest == pytest.approx(
            float(np.linalg.eigvalsh((exact + exact.T) / 2)[-1]), abs=1e-4
        )


def test_a_jacobian_that_is_not_finite_is_undecided() -> None:
    for limit in (0, 768):
        radius = spectral_radius(lambda x: x.sqrt(), torch.zeros(1, 3, 3), dense_limit=limit)
        assert (radius.converged, radius.below_one) == (False, None)


def test_a_proximal_test_without_its_eigenvalues_is_undecided() -> None:
    """Eigenvalues crowd at both ends: Lanczos' method is stopped before it converges."""
    size = 2000
    spread = (0.5 - torch.linspace(0, math.pi, size).double().cos() / 2).view(1, 1, 40, 50)
    stopped = proximal_test(lambda x: spread * x, torch.zeros(1, 40, 50).double(), tolerance=1e-9)
    assert np.isnan([stopped.lowest, stopped.highest]).all()
    assert (stopped.symmetric, stopped.passed, stopped.undecided) == (True, False, True)
    assert "the eigensolver did not converge" in str(stopped)
    asymmetric = proximal_test(lambda x: (spread * x).roll(1, 3), torch.zeros(1, 40, 50).double(), tolerance=1e-9)
    assert (asymmetric.passed, asymmetric.undecided) == (False, False)


def test_a_proximal_test_of_a_jacobian_that_is_not_finite_is_undecided() -> None:
    assert proximal_test(lambda x: x.sqrt(), torch.zeros(1, 3, 3), dense_limit=0).undecided


def test_fixed_point_error_is_an_images_own(rng: torch.Generator) -> None:
    x = torch.rand(3, *SHAPE, generator=rng)
    errors = fixed_point_error(lambda x: x + torch.tensor([0.0, 0.1, 0.2]).view(3, 1, 1, 1), x)
    assert errors.tolist() == pytest.approx([0, 0.01, 0.04], rel=1e-4)


def test_a_network_that_works_in_place_is_still_judged() -> None:
    x = torch.rand(2, *SHAPE)
    assert fixed_point_error(lambda x: x.mul_(0.5), x).min() > 0.01
    assert not firmly_nonexpansive(lambda x: x.mul_(2), x, torch.zeros_like(x)).any()


@each_path
def test_the_jacobian_of_a_network_that_works_in_place(path: str) -> None:
    x = point()
    before = x.clone()
    assert proximal_test(lambda x: x.mul_(0.5), x, dense_limit=LIMITS[path]).highest == pytest.approx(0.5, abs=1e-4)
    assert spectral_radius(lambda x: x.mul_(0.5), x, dense_limit=LIMITS[path]).value == pytest.approx(0.5, abs=1e-4)
    assert torch.equal(x, before)


@pytest.mark.parametrize("judge", [fixed_point_error, proximal_test, spectral_radius])
def test_pixels_are_asked_for(judge: Callable) -> None:
    with pytest.raises(InputError, match=r"such as images.pixels; got list"):
        judge(torch.tanh, [0.5])


@pytest.mark.parametrize("judge", [fixed_point_error, proximal_test, spectral_radius])
def test_the_network_is_judged_in_eval_mode_and_restored(judge: Callable) -> None:
    f = Halves()  # its dropout would make errors random
    x = torch.full((1, *SHAPE), 0.5)
    if judge is fixed_point_error:
        assert judge(f, x).item() == 0
    elif judge is proximal_test:
        assert judge(f, x).highest == pytest.approx(0.5)
    else:
        assert judge(f, x).value == pytest.approx(0.5)
    assert [m.training for m in f.modules()] == [True, True, False]


def test_bad_points_and_networks() -> None:
    f = FullyConnected(SHAPE, layers=2, width=4)
    with pytest.raises(InputError, match=r"taken at one image, C x H x W; got shape \(2, 1, 4, 6\)"):
        proximal_test(f, torch.zeros(2, *SHAPE))
    for judge in (proximal_test, spectral_radius):
        with pytest.raises(InputError, match=r"given 1x1x4x6 float32 on cpu and returned 1x24 float32"):
            judge(lambda x: x.flatten(1), torch.zeros(SHAPE))
        with pytest.raises(InputError, match=r"returned a tuple, not a tensor"):
            judge(lambda x: (x, x), torch.zeros(SHAPE))  # type: ignore[arg-type,return-value]
    with pytest.raises(InputError, match=r"returned a tuple, not a tensor"):
        fixed_point_error(lambda x: (x, x), torch.zeros(1, *SHAPE))  # type: ignore[arg-type,return-value]
