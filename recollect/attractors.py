"""The autoencoder around a point: fixed-point error, Jacobian spectrum, and the proximal test of Theorem 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from recollect.devices.precision import apply_checked, check_dtype, evaluation_mode
from recollect.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator

Autoencoder = Callable[[Tensor], Tensor]
RADIUS_MARGIN = 1e-3  # a radius this near 1 is not called below or above
EIGENVALUES = 6  # of largest size, which are sought together: equal sizes would hide one another
KRYLOV_VECTORS = 48
RESTARTS = 40  # of Arnoldi's method, each with fewer products than Krylov vectors
GROWTH_PRODUCTS = 100
ROWS_AT_ONCE = 64  # of a whole Jacobian
DENSE_LIMIT = 768  # up to this many values the whole Jacobian is computed; above, only its products with vectors


def fixed_point_error(f: Autoencoder, images: Tensor) -> Tensor:
    """Compute per image the MSE between it and its image under f: zero at a fixed point.

    Args:
        f: The autoencoder.
        images: A batch of images.

    Returns:
        One error for each image.

    Examples:
        >>> import torch
        >>> from recollect.attractors import fixed_point_error
        >>> fixed_point_error(lambda x: x, torch.rand(2, 3, 8, 8))
        tensor([0., 0.], dtype=torch.float64)
    """
    _check_given(f, images)
    with torch.no_grad(), evaluation_mode(f):
        moved = apply_checked(f, images.clone()).double() - images.double()
    return moved.flatten(1).square().mean(1)


@dataclass(frozen=True)
class SpectralRadius:
    """The largest size of a Jacobian's eigenvalues, and whether the eigensolver converged to it.

    Args:
        value: The radius; an estimate where the solver did not converge.
        converged: Whether the solver converged.

    Examples:
        >>> from recollect.attractors import SpectralRadius
        >>> SpectralRadius(0.5, converged=True).below_one
        True
    """

    value: float  # an estimate where the solver did not converge
    converged: bool

    @property
    def below_one(self) -> bool | None:
        """Whether small disturbances die out; None where this is not known."""
        if not self.converged or abs(self.value - 1) <= RADIUS_MARGIN:
            return None
        return self.value < 1


def spectral_radius(
    f: Autoencoder, image: Tensor, *, tolerance: float = 1e-5, seed: int = 0, dense_limit: int = DENSE_LIMIT,
    is_batch: bool = False,
) -> SpectralRadius:  # fmt: skip
    """Compute the spectral radius of the Jacobian at one image; below 1 a fixed point is an attractor.

    Only products with the transpose are taken, whose eigenvalues are the same: they need no forward differentiation,
    which attention does not have. Above `dense_limit` values their number is bounded.

    Args:
        f: The autoencoder.
        image: One image.
        tolerance: Of the eigensolver.
        seed: Seed of its first vector.
        dense_limit: Up to this many values the whole Jacobian is computed.
        is_batch: Whether the first dimension counts images, which the shape of signals and rows does not tell.

    Returns:
        The radius.

    Examples:
        >>> import torch
        >>> from recollect.attractors import spectral_radius
        >>> round(spectral_radius(lambda x: x / 2, torch.rand(1, 2, 2)).value, 4)
        0.5
    """
    with evaluation_mode(f):
        jacobian = Jacobian(f, image, is_batch=is_batch)
        if jacobian.size <= dense_limit:
            return _dense_radius(jacobian.dense())
        return _iterative_radius(jacobian, tolerance, seed)


@dataclass(frozen=True)
class ProximalTest:
    """The result of testing a Jacobian against the conditions of Theorem 1.

    Args:
        asymmetry: |J - J^T| / |J|, which is 0 for a symmetric Jacobian.
        lowest: The lowest eigenvalue of the symmetric part.
        highest: The highest eigenvalue of the symmetric part.
        tolerance: Deviation that is allowed.
        method: "dense" or "iterative".

    Examples:
        >>> from recollect.attractors import ProximalTest
        >>> ProximalTest(0.0, 0.1, 0.9, 1e-4, "dense").passed
        True
    """

    asymmetry: float  # |J - J^T| / |J|: 0 for a symmetric Jacobian
    lowest: float  # extreme eigenvalues of the symmetric part; NaN where the eigensolver did not converge
    highest: float
    tolerance: float
    method: str  # "dense" or "iterative"

    @property
    def symmetric(self) -> bool:
        return self.asymmetry <= self.tolerance

    @property
    def eigenvalues_in_unit_interval(self) -> bool:
        return self.lowest >= -self.tolerance and self.highest <= 1 + self.tolerance

    @property
    def passed(self) -> bool:
        return self.symmetric and self.eigenvalues_in_unit_interval

    @property
    def undecided(self) -> bool:
        """Whether an eigenvalue that would decide is not known."""
        outside = self.lowest < -self.tolerance or self.highest > 1 + self.tolerance
        violated = self.asymmetry > self.tolerance or outside
        return math.isnan(self.asymmetry + self.lowest + self.highest) and not violated

    def __str__(self) -> str:
        verdict = "acts as a proximity operator here" if self.passed else "is no proximity operator"
        if self.undecided:
            verdict = "may act as a proximity operator here or not, the eigensolver did not converge"
        return (
            f"The autoencoder {verdict}: asymmetry {self.asymmetry:.2g}, "
            f"eigenvalues in [{self.lowest:.4f}, {self.highest:.4f}] ({self.method})."
        )


def proximal_test(
    f: Autoencoder, image: Tensor, *, tolerance: float = 1e-4, seed: int = 0, dense_limit: int = DENSE_LIMIT
) -> ProximalTest:
    """Test whether the Jacobian at one image is symmetric with eigenvalues in [0, 1], like a proximity operator's.

    Args:
        f: The autoencoder.
        image: One image.
        tolerance: Deviation that is allowed.
        seed: Seed of random probes.
        dense_limit: Up to this many values the whole Jacobian is computed.

    Returns:
        The result; `passed` says whether both conditions hold.

    Examples:
        >>> import torch
        >>> from recollect.attractors import proximal_test
        >>> proximal_test(lambda x: x / 2, torch.rand(1, 2, 2)).passed
        True
    """
    with evaluation_mode(f):
        jacobian = Jacobian(f, image)
        if jacobian.size <= dense_limit:
            return _dense_test(jacobian.dense(), tolerance)
        return _iterative_test(jacobian, tolerance, seed)


def firmly_nonexpansive(f: Autoencoder, a: Tensor, b: Tensor, *, tolerance: float = 1e-6) -> Tensor:
    """Test per pair: |f(a) - f(b)|^2 <= <f(a) - f(b), a - b>, up to `tolerance` times |a - b|^2.

    Args:
        f: The autoencoder.
        a: The first image of each pair.
        b: The second image of each pair.
        tolerance: Deviation that is allowed.

    Returns:
        True or False for each pair.

    Examples:
        >>> import torch
        >>> from recollect.attractors import firmly_nonexpansive
        >>> firmly_nonexpansive(lambda x: x / 2, torch.zeros(1, 1, 2, 2), torch.ones(1, 1, 2, 2))
        tensor([True])
    """
    _check_given(f, a)
    _check_given(f, b)
    if a.shape != b.shape:
        raise InputError(f"Pairs need equal shapes, got {tuple(a.shape)} and {tuple(b.shape)}.")
    with torch.no_grad(), evaluation_mode(f):
        moved = (apply_checked(f, a.clone()).double() - apply_checked(f, b.clone()).double()).flatten(1)
    apart = (a.double() - b.double()).flatten(1)
    return moved.square().sum(1) <= (moved * apart).sum(1) + tolerance * apart.square().sum(1)


def _check_given(f: Autoencoder, images: Tensor) -> None:
    if not isinstance(images, Tensor):
        raise InputError(f"Expected pixels as a tensor, such as images.pixels; got {type(images).__name__}.")
    if not images.is_floating_point():
        raise InputError(f"Pixels must be floating point in [0, 1], got {images.dtype}.")
    check_dtype(f, images)


class Jacobian:
    """The Jacobian of f at one image as a linear map: its products with vectors, and those of its transpose."""

    def __init__(self, f: Autoencoder, image: Tensor, *, is_batch: bool = False) -> None:
        _check_given(f, image)
        if not is_batch and image.ndim == 3:
            image = image[None]
        if len(image) != 1 or (not is_batch and image.ndim != 4):
            raise InputError(f"A Jacobian is taken at one image, C x H x W; got shape {tuple(image.shape)}.")
        self._f = lambda x: apply_checked(f, x.clone())  # a copy, for networks that work in place
        self._image = image
        self.size = image.numel()
        self._pull = torch.func.vjp(self._f, image)[1]

    def times(self, vector: np.ndarray) -> np.ndarray:
        """Compute J v; attention has forward differentiation in its plain form alone."""
        with sdpa_kernel(SDPBackend.MATH):
            return self._flat(torch.func.jvp(self._f, (self._image,), (self._shaped(vector),))[1])

    def transposed_times(self, vector: np.ndarray) -> np.ndarray:
        """Compute J^T v."""
        return self._flat(self._pull(self._shaped(vector))[0])

    def dense(self) -> np.ndarray:
        """Compute the whole matrix, for small images: many rows at once, each at a copy of the image."""
        blocks = []
        for rows in torch.eye(self.size).to(self._image).split(ROWS_AT_ONCE):
            copies = self._image.expand(len(rows), *self._image.shape[1:])
            block = torch.func.vjp(self._f, copies)[1](rows.view_as(copies))[0]
            blocks.append(block.detach().flatten(1).double().cpu().numpy())
        return np.concatenate(blocks)

    def _shaped(self, vector: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(vector, np.float64)).to(self._image).view_as(self._image)

    def _flat(self, values: Tensor) -> np.ndarray:
        return values.detach().double().cpu().numpy().ravel()


def _dense_test(matrix: np.ndarray, tolerance: float) -> ProximalTest:
    size = max(float(np.linalg.norm(matrix)), np.finfo(float).tiny)
    values = np.linalg.eigvalsh((matrix + matrix.T) / 2)
    asymmetry = float(np.linalg.norm(matrix - matrix.T)) / size
    return ProximalTest(asymmetry, float(values[0]), float(values[-1]), tolerance, "dense")


def _iterative_test(jacobian: Jacobian, tolerance: float, seed: int) -> ProximalTest:
    """Test symmetry with random probes (they estimate Frobenius norms), extreme eigenvalues with Lanczos."""
    from scipy.sparse.linalg import LinearOperator

    rng = np.random.default_rng(seed)
    probes = rng.standard_normal((8, jacobian.size))
    forward = np.stack([jacobian.times(p) for p in probes])
    backward = np.stack([jacobian.transposed_times(p) for p in probes])
    if not (np.isfinite(forward).all() and np.isfinite(backward).all()):
        return ProximalTest(math.nan, math.nan, math.nan, tolerance, "iterative")
    size = max(float(np.linalg.norm(forward)), np.finfo(float).tiny)
    shift = 1 + size / np.sqrt(len(probes))  # above every eigenvalue's magnitude: the Frobenius norm bounds them

    def shifted(v: np.ndarray) -> np.ndarray:
        """Apply the symmetric part plus shift: near 0, Lanczos' relative tolerance would never be met."""
        return (jacobian.times(v) + jacobian.transposed_times(v)) / 2 + shift * v.ravel()

    operator = LinearOperator((jacobian.size,) * 2, matvec=shifted, dtype=np.float64)
    close = tolerance / 10 / shift
    highest = _extreme_eigenvalue(operator, "LA", probes[0], close) - shift
    lowest = _extreme_eigenvalue(operator, "SA", probes[0], close) - shift
    return ProximalTest(float(np.linalg.norm(forward - backward)) / size, lowest, highest, tolerance, "iterative")


def _extreme_eigenvalue(operator: LinearOperator, end: str, start: np.ndarray, tolerance: float) -> float:
    """Run Lanczos' method with a bounded number of restarts; NaN where it does not converge."""
    from scipy.sparse.linalg import ArpackError, eigsh

    basis = min(KRYLOV_VECTORS, operator.shape[0])
    try:
        eigenvalues = eigsh(
            operator, k=1, which=end, ncv=basis, v0=start, tol=tolerance, maxiter=RESTARTS, return_eigenvectors=False
        )
    except ArpackError:  # ArpackNoConvergence is one of these
        return math.nan
    return float(eigenvalues[0])


def _dense_radius(matrix: np.ndarray) -> SpectralRadius:
    if not np.isfinite(matrix).all():
        return SpectralRadius(math.nan, converged=False)
    return SpectralRadius(float(np.abs(np.linalg.eigvals(matrix)).max()), converged=True)


def _iterative_radius(jacobian: Jacobian, tolerance: float, seed: int) -> SpectralRadius:
    """Run Arnoldi's method with a bounded number of restarts; what it has not settled is said."""
    from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigs

    operator = LinearOperator((jacobian.size,) * 2, matvec=jacobian.transposed_times, dtype=np.float64)
    start = np.random.default_rng(seed).standard_normal(jacobian.size)
    first = jacobian.transposed_times(start)
    if not np.isfinite(first).all():
        return SpectralRadius(math.nan, converged=False)
    if not first.any():  # a random vector meets every direction: the Jacobian is zero
        return SpectralRadius(0.0, converged=True)
    basis = min(KRYLOV_VECTORS, jacobian.size)
    try:
        values = eigs(
            operator, k=min(EIGENVALUES, basis - 2), ncv=basis, v0=start, tol=tolerance, maxiter=RESTARTS,
            return_eigenvectors=False,
        )  # fmt: skip
    except ArpackNoConvergence as stopped:
        settled = np.abs(stopped.eigenvalues)
        return SpectralRadius(max(_growth(jacobian, start), *settled, 0.0), converged=False)
    except ArpackError:
        return SpectralRadius(_growth(jacobian, start), converged=False)
    return SpectralRadius(float(np.abs(values).max()), converged=True)


def _growth(jacobian: Jacobian, start: np.ndarray) -> float:
    """Estimate the radius by the growth of a vector over many products, where the eigensolver did not converge."""
    vector = start / np.linalg.norm(start)
    logs = []
    for _ in range(GROWTH_PRODUCTS):
        vector = jacobian.transposed_times(vector)
        size = float(np.linalg.norm(vector))
        if size == 0:
            return 0.0
        logs.append(np.log(size))
        vector = vector / size
    return float(np.exp(np.mean(logs[GROWTH_PRODUCTS // 2 :])))
