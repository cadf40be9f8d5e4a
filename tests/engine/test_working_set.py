"""What holds for every method: batches, memory, modes, precision, callbacks, bad input."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from recollect import Blind, Erasure, FullyConnected, InputError, Iterate, KnownMask, Recovery, Stop
from recollect.engine.runtime import CPU_CHUNK
from recollect.methods import Refined
from recollect.recovery import Snapshot
from tests.networks import Halves, Random

SHAPE = (3, 2, 2)
TRUTH = Erasure(torch.tensor([[[[True, True], [True, False]]]]))
METHODS = [Blind(limit=12), KnownMask(), Iterate(limit=40), Refined(limit=12, restart_steps=12, polish_steps=40)]
each_method = pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
on_both_paths = pytest.mark.usefixtures("path")


def recover(method: Callable, f: Callable, y: Tensor, **options: object) -> Recovery:
    return method(f, y, TRUTH, **options) if method.knows_truth else method(f, y, **options)  # type: ignore[attr-defined]


def observations(count: int = 9, dtype: torch.dtype = torch.float64) -> Tensor:
    x = np.random.default_rng(5).random((count, *SHAPE))
    return TRUTH.apply(torch.from_numpy(x)).to(dtype)


class Watching(Halves):
    """Notes the answer to a question each time it is run."""

    def __init__(self, ask: Callable[[], object]) -> None:
        super().__init__()
        self.ask = ask

    def note(self) -> object:
        return self.ask()


# Batches


@on_both_paths
@each_method
@pytest.mark.parametrize("chunk", [1, 2, 7, 100])
def test_the_working_set_does_not_change_results(method: Callable, chunk: int) -> None:
    f, y = Random.draw(8, 12, gain=1.5), observations()
    whole, parts = recover(method, f, y), recover(method, f, y, chunk=chunk)
    assert torch.allclose(parts.estimate, whole.estimate, rtol=1e-9, atol=1e-12)
    for field in ("rounds", "steps", "stop"):
        assert torch.equal(getattr(parts, field), getattr(whole, field))
    if whole.degradation is not None:
        assert torch.equal(parts.degradation.keep, whole.degradation.keep)  # type: ignore[union-attr,attr-defined]
    if method is not METHODS[1]:
        assert len(set(whole.rounds.tolist())) > 1  # else images leaving a batch were not tested


@on_both_paths
@each_method
def test_an_image_alone_or_in_another_order(method: Callable) -> None:
    f, y = Random.draw(8, 12, gain=1.5), observations()
    whole, turned = recover(method, f, y), recover(method, f, y.flip(0))
    assert torch.allclose(turned.estimate.flip(0), whole.estimate, rtol=1e-9, atol=1e-12)
    assert torch.equal(turned.rounds.flip(0), whole.rounds)
    for i in range(len(y)):
        alone = recover(method, f, y[i : i + 1])
        assert torch.allclose(alone.estimate[0], whole.estimate[i], rtol=1e-9, atol=1e-12)
        assert (alone.rounds[0], alone.stop[0]) == (whole.rounds[i], whole.stop[i])


@on_both_paths
@each_method
@pytest.mark.parametrize("chunk", [1, 4])
def test_no_more_than_chunk_images_are_active(method: Callable, chunk: int) -> None:
    f = Halves()
    recover(method, f, observations(10), chunk=chunk)
    assert max(f.sizes) == chunk


@on_both_paths
@each_method
def test_finished_images_leave_and_others_enter(method: Callable) -> None:
    f = Halves()
    recovery = recover(method, f, observations(10), chunk=4)
    most = int(recovery.steps.sum())  # no work on images that have stopped
    assert most - int(recovery.rounds.sum()) <= sum(f.sizes) <= most


@each_method
def test_many_images_run_through_in_bounded_memory(method: Callable) -> None:
    y = torch.from_numpy(np.random.default_rng(0).random((5_000, 1, 2, 2), np.float32))
    few = Refined(steps=2, limit=3, restart_steps=1, polish_steps=1)
    shorter = {m.name: m for m in (Blind(steps=2, limit=3), KnownMask(steps=2), Iterate(limit=3), few)}
    short = shorter[method.name]  # type: ignore[attr-defined]
    f = Halves()
    recovery = recover(short, f, y)
    assert recovery.estimate.shape == y.shape
    assert max(f.sizes) <= CPU_CHUNK
    ends = [0, 2_345, 4_999]
    assert torch.allclose(recovery.estimate[ends], recover(short, f, y[ends]).estimate)


# Divergence


@on_both_paths
@each_method
@pytest.mark.parametrize("factor", [math.nan, math.inf, 1e30])
def test_an_image_that_diverges_is_marked_and_the_others_go_on(method: Callable, factor: float) -> None:
    def f(x: Tensor) -> Tensor:
        bright = x.mean((1, 2, 3), keepdim=True).abs() > 1
        return torch.where(bright, x * factor, (x + 0.5) / 2)

    y = observations(6, torch.float32)
    y[[1, 4]] = 5.0
    recovery = recover(method, f, y, chunk=4)
    diverged = [] if isinstance(method, Refined) else [1, 4]  # from another start, Refined finds the fixed point
    assert [i for i, stop in enumerate(recovery.stops) if stop == Stop.DIVERGED] == diverged
    assert torch.isfinite(recovery.estimate).all()
    good = [0, 2, 3, 5]
    alone = recover(method, f, y[good])
    assert torch.allclose(recovery.estimate[good], alone.estimate)
    assert torch.equal(recovery.rounds[good], alone.rounds)


def test_the_last_finite_estimate_is_kept() -> None:
    recovery = Iterate()(lambda x: torch.where(x < 100, x * 10, math.nan), torch.ones(1, 1, 1, 1))
    assert recovery.stops == [Stop.DIVERGED]
    assert recovery.estimate.item() == 100


# How f is run


@on_both_paths
@each_method
@pytest.mark.parametrize("fails", [False, True])
def test_modes_are_eval_while_running_and_restored(method: Callable, fails: bool) -> None:
    def modes() -> list[bool]:
        return [module.training for module in f.modules()]

    def ask() -> list[bool]:
        if fails and len(f.seen) == 2:
            raise RuntimeError("out of order")
        return modes()

    f = Watching(ask)
    before = modes()
    assert before == [True, True, False]
    if fails:
        with pytest.raises(RuntimeError, match="out of order"):
            recover(method, f, observations())
    else:
        recover(method, f, observations())
    assert f.seen
    assert all(seen == [False] * 3 for seen in f.seen)
    assert modes() == before


@on_both_paths
@each_method
def test_gradients_are_off_while_running(method: Callable) -> None:
    f = Watching(torch.is_grad_enabled)
    recovery = recover(method, f, observations().requires_grad_())
    assert set(f.seen) == {False}
    assert torch.is_grad_enabled()
    assert not recovery.estimate.requires_grad


@on_both_paths
@each_method
def test_precision_is_full_while_running(method: Callable) -> None:
    matmul = torch.backends.cuda.matmul
    f = Watching(lambda: (matmul.fp32_precision, torch.is_autocast_enabled("cpu")))
    before = matmul.fp32_precision
    matmul.fp32_precision = "tf32"
    try:
        with torch.autocast("cpu"):
            recover(method, f, observations())
            assert torch.is_autocast_enabled("cpu")
        assert matmul.fp32_precision == "tf32"
    finally:
        matmul.fp32_precision = before
    assert set(f.seen) == {("ieee", False)}


@on_both_paths
@each_method
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_dtype_stays(method: Callable, dtype: torch.dtype) -> None:
    f = FullyConnected(SHAPE, layers=2, width=8).to(dtype)
    assert recover(method, f, observations(dtype=dtype)).estimate.dtype == dtype


@on_both_paths
@each_method
def test_float32_and_float64_agree(method: Callable) -> None:
    f, y = Random.draw(1, 12, gain=0.7), observations()
    one, other = recover(method, f, y), recover(method, f, y.float())
    assert torch.allclose(one.estimate, other.estimate.double(), atol=1e-4)


@on_both_paths
@each_method
def test_the_observations_are_left_alone(method: Callable) -> None:
    y = observations()
    before = y.clone()
    recover(method, lambda x: x.mul_(0.5), y)
    assert torch.equal(y, before)


# Callbacks


@on_both_paths
@each_method
@pytest.mark.parametrize("chunk", [1, 4, None])
def test_progress_rises_to_the_total(method: Callable, chunk: int | None) -> None:
    calls: list[tuple[int, int]] = []
    recover(method, Random.draw(8, 12, gain=1.5), observations(), chunk=chunk, progress=lambda *c: calls.append(c))
    done = [c[0] for c in calls]
    assert done == sorted(set(done))
    assert done[-1] == 9
    assert {c[1] for c in calls} == {9}


@on_both_paths
@each_method
def test_trace_sees_every_round_of_every_image(method: Callable) -> None:
    seen: list[Snapshot] = []
    recovery = recover(method, Random.draw(8, 12, gain=1.5), observations(), chunk=4, trace=seen.append)
    for i in range(9):
        own = [(s, s.index.tolist().index(i)) for s in seen if i in s.index]
        assert [int(s.round[at]) for s, at in own] == list(range(1, int(recovery.rounds[i]) + 1))
        last, at = own[-1]
        assert torch.equal(last.estimate[at], recovery.estimate[i])
        if recovery.degradation is not None:
            assert torch.equal(last.degradation.keep[at], recovery.degradation.keep[i])  # type: ignore[union-attr,attr-defined]


@each_method
def test_nothing_is_printed(method: Callable, capfd: pytest.CaptureFixture[str]) -> None:
    recover(method, Halves(), observations(), trace=lambda s: None, progress=lambda d, n: None)
    assert capfd.readouterr() == ("", "")


# Bad input


BAD_OUTPUTS = [
    (lambda x: (x, x), r"returned a tuple, not a tensor; wrap it so that it returns the image"),
    (lambda x: None, r"returned a NoneType, not a tensor"),
    (lambda x: x.numpy(), r"returned a ndarray, not a tensor"),
    (lambda x: x[:, :1], r"given \d+x3x2x2 float64 on cpu and returned \d+x1x2x2 float64 on cpu; it must return"),
    (lambda x: x.flatten(1), r"given \d+x3x2x2 float64 on cpu and returned \d+x12 float64"),
    (lambda x: x[:1].clone(), r"given 9x3x2x2 float64 on cpu and returned 1x3x2x2"),
    (lambda x: x.float(), r"given \d+x3x2x2 float64 on cpu and returned \d+x3x2x2 float32 on cpu"),
    (lambda x: x > 0.5, r"returned \d+x3x2x2 bool"),
]


@on_both_paths
@each_method
@pytest.mark.parametrize(("f", "message"), BAD_OUTPUTS, ids=range(len(BAD_OUTPUTS)))
def test_an_autoencoder_that_returns_something_else(method: Callable, f: Callable, message: str) -> None:
    with pytest.raises(InputError, match=message):
        recover(method, f, observations())


@on_both_paths
@each_method
def test_an_autoencoder_that_raises(method: Callable) -> None:
    def f(x: Tensor) -> Tensor:
        raise ZeroDivisionError("its own trouble")

    with pytest.raises(ZeroDivisionError, match="its own trouble"):
        recover(method, f, observations())


@each_method
def test_something_that_is_no_autoencoder(method: Callable) -> None:
    with pytest.raises(InputError, match=r"a function from images to images; a str is not one"):
        recover(method, "model.pt", observations())  # type: ignore[arg-type]


@each_method
def test_weights_of_another_dtype(method: Callable) -> None:
    f = FullyConnected(SHAPE, layers=2, width=8)
    with pytest.raises(
        InputError, match=r"weights are torch.float32 and the images torch.float64; convert one of them"
    ):
        recover(method, f, observations())


@each_method
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (torch.zeros(3, 2, 2), r"N x C x H x W with at least one image; got shape \(3, 2, 2\)"),
        (torch.zeros(0, *SHAPE), r"at least one image; got shape \(0, 3, 2, 2\)"),
        (np.zeros((1, *SHAPE)), r"are a tensor N x C x H x W with at least one image; got ndarray"),
        (None, r"at least one image; got NoneType"),
        (torch.zeros(1, *SHAPE, dtype=torch.float16), r"float32 or float64, got torch.float16"),
        (torch.zeros(1, *SHAPE, dtype=torch.uint8), r"float32 or float64, got torch.uint8"),
        (torch.full((1, *SHAPE), math.nan), r"contain NaN or infinite values; erased pixels are zero, not NaN"),
    ],
    ids=range(7),
)
def test_bad_observations(method: Callable, y: Tensor, message: str) -> None:
    with pytest.raises(InputError, match=message):
        recover(method, torch.zeros_like, y)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_value_that_is_not_finite_is_found(value: float, dtype: torch.dtype) -> None:
    y = torch.rand(5000, 1, 2, 2, dtype=dtype)
    y[4999, 0, 1, 0] = value
    for given in (y, y.to(memory_format=torch.channels_last)):
        with pytest.raises(InputError, match="contain NaN or infinite values"):
            Iterate(limit=1)(torch.zeros_like, given)


@each_method
@pytest.mark.parametrize("chunk", [0, -3])
def test_bad_chunks(method: Callable, chunk: int) -> None:
    with pytest.raises(InputError, match=rf"chunk is a number of images, 1 or more; got {chunk}"):
        recover(method, torch.zeros_like, observations(), chunk=chunk)


def test_a_module_without_weights_runs_where_y_is() -> None:
    assert Iterate(limit=2)(nn.Identity(), observations()).stops == [Stop.CONVERGED] * 9


def test_partials_and_lambdas_are_autoencoders() -> None:
    assert Iterate(limit=1)(partial(torch.mul, other=0.5), observations()).estimate.shape == (9, *SHAPE)


def test_a_method_of_a_module_runs_in_eval_mode() -> None:
    """Batch norm in train mode would change the network that is audited."""
    network = nn.Sequential(nn.BatchNorm2d(1), nn.Dropout(0.5)).double()
    y = observations()[:, :1]
    first, second = (Iterate(limit=3)(network.forward, y).estimate for _ in range(2))
    assert torch.equal(first, second)
    assert int(network.state_dict()["0.num_batches_tracked"]) == 0
