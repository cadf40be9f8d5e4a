"""Captured steps against eager ones. What needs a CUDA device is run by make test-gpu."""

import copy
import gc
import logging
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from recollect import Blind, FullyConnected, KnownMask, Recovery, UNet, mask
from recollect.accelerate import cuda_graphs
from recollect.accelerate.cuda_graph_pool import CudaGraphPool
from recollect.accelerate.cuda_graphs import CudaGraphs, State, Step
from recollect.degradation import all_erased
from recollect.diffusion import Denoiser, DenoiserAt
from recollect.diffusion.networks import network_for
from recollect.diffusion.preconditioning import EDM
from recollect.methods import Refined

gpu = pytest.mark.gpu

SHAPE = (3, 16, 16)


def observations(count: int) -> Tensor:
    x = torch.rand(count, *SHAPE, generator=torch.Generator().manual_seed(0))
    return mask("block", SHAPE).apply(x).cuda()


def network(kind: str) -> nn.Module:
    torch.manual_seed(0)
    f = UNet(widths=(8, 16)) if kind == "unet" else FullyConnected(SHAPE, layers=4, width=64, activation=kind)
    return f.cuda() if torch.cuda.is_available() else f


def eager(f: nn.Module) -> nn.Module:
    """Copy a network with a hook, so that it is not captured."""
    f = copy.deepcopy(f)
    f.register_forward_hook(lambda *_: None)
    return f


def count_replays(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many steps each run of graphs took."""
    taken: list[int] = []
    run = CudaGraphs.run

    def counted(self: CudaGraphs, step: Step, state: State, times: int) -> int:
        taken.append(run(self, step, state, times))
        return taken[-1]

    monkeypatch.setattr(CudaGraphs, "run", counted)
    return taken


def check_equal(captured: Recovery, eagerly: Recovery) -> None:
    assert torch.equal(captured.estimate, eagerly.estimate)
    assert torch.equal(captured.rounds, eagerly.rounds)
    assert torch.equal(captured.stop, eagerly.stop)


@gpu
@pytest.mark.parametrize("kind", ["lrelu", "prelu", "softplus", "unet"])
@pytest.mark.parametrize("count", [8, 64])
def test_captured_and_eager_are_equal_bit_for_bit(kind: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = count_replays(monkeypatch)
    f, y = network(kind), observations(count)
    captured = KnownMask()(f, y, mask("block", SHAPE))
    assert taken == [38]  # all but the last two of 40
    check_equal(captured, KnownMask()(eager(f), y, mask("block", SHAPE)))
    assert taken == [38]


def annealed(kind: str) -> DenoiserAt:
    """A denoiser with random weights, whose noise level falls."""
    settings = {"widths": (16, 32)} if kind == "unet" else {"width": 64, "blocks": 2}
    f = network_for(kind, SHAPE, 0, **settings)
    draws = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in f.parameters():  # some start at zero
            weights.copy_(0.03 * torch.randn(weights.shape, generator=draws))
    return Denoiser(f.cuda(), EDM(), SHAPE, "random").at(0.2, annealed=True)


@gpu
@pytest.mark.parametrize("kind", ["residual", "unet"])
def test_one_graph_serves_all_noise_levels(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = count_replays(monkeypatch)
    f, y, truth = annealed(kind), observations(16), mask("block", SHAPE)
    captured = KnownMask()(f, y, truth)
    assert taken == [38]
    check_equal(captured, KnownMask()(eager(f), y, truth))
    assert not torch.allclose(captured.estimate, KnownMask()(f.denoiser.at(0.2), y, truth).estimate, atol=1e-3)
    for method in (Blind(limit=3), Refined(limit=2)):  # these end with steps at the level 0.2
        first, again = method(f, y, truth), method(eager(f), y, truth)
        assert torch.allclose(first.estimate, again.estimate, atol=1e-3)
    few = KnownMask()(f, y[5:8], truth)
    assert torch.allclose(few.estimate, captured.estimate[5:8], atol=1e-4)


@gpu
@pytest.mark.parametrize("chunk", [None, 24])
def test_blind_with_batches_that_shrink_and_are_filled_up(chunk: int | None) -> None:
    f, y = network("lrelu"), observations(100)
    with torch.no_grad():
        last = [module for module in f.modules() if isinstance(module, nn.Linear)][-1]
        last.weight.mul_(20)  # a network that moves images, so that they stop at different rounds
    for method in (Blind(limit=30), Blind(limit=30, gamma=0.6, start=all_erased)):
        captured, eagerly = method(f, y, chunk=chunk), method(eager(f), y, chunk=chunk)
        assert len(set(captured.rounds.tolist())) > 1
        assert torch.allclose(captured.estimate, eagerly.estimate, atol=1e-3)
        assert captured.cycle is not None
        judged = captured.steps - captured.rounds * 40  # one call for each member of a cycle that was reached
        before_the_limit = captured.rounds < method.limit
        assert torch.equal(judged[before_the_limit], captured.cycle[before_the_limit])
        assert torch.equal(judged > 0, captured.cycle > 0)
        assert (judged <= captured.cycle).all()


@gpu
@pytest.mark.parametrize("unit", [8, 64])
def test_sizes_are_few_and_close(unit: int) -> None:
    graphs = CudaGraphs(CudaGraphPool(torch.device("cuda", 0)), unit)
    for n in range(1, 5000):
        assert n <= graphs.size_for(n) <= max(n + unit - 1, n * 17 // 16)
    assert len({graphs.size_for(n) for n in range(1, 4097)}) < 120


class Sampling(nn.Module):
    """Draws at random in eval mode, as some variational autoencoders do."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        return (x + 0.1 * torch.rand_like(x)) / 2 * self.scale


class Asking(Sampling):
    """Copies a value to the host."""

    def forward(self, x: Tensor) -> Tensor:
        return x / 2 * self.scale if float(x.mean()) < 0.4 else x / 3


class Counting(Sampling):
    """Keeps a state in Python that its output depends on."""

    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x / (1 + self.calls)


class ThroughTheHost(Sampling):
    def forward(self, x: Tensor) -> Tensor:
        return (x.cpu() / 2).to(x.device)


class InPlace(Sampling):
    def forward(self, x: Tensor) -> Tensor:
        return x.mul_(0.3)


class InPlaceUncounted(Sampling):
    def forward(self, x: Tensor) -> Tensor:
        return x.data.mul_(0.3)


@gpu
@pytest.mark.parametrize("kind", [Sampling, Asking, Counting, ThroughTheHost])
def test_networks_that_cannot_be_captured_run_eagerly(kind: type[nn.Module], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="recollect.accelerate")
    y = observations(8)
    recovery = KnownMask()(kind().cuda(), y, mask("block", SHAPE))
    assert "without a CUDA graph" in caplog.text
    assert len(caplog.records) == 1
    if kind in (Asking, ThroughTheHost):
        check_equal(recovery, KnownMask()(eager(kind().cuda()), y, mask("block", SHAPE)))
    torch.rand(3, device="cuda")  # the device is as usable as before
    check_equal(
        KnownMask()(network("lrelu"), y, mask("block", SHAPE)),
        KnownMask()(eager(network("lrelu")), y, mask("block", SHAPE)),
    )


@gpu
@pytest.mark.parametrize("kind", [InPlace, InPlaceUncounted])
def test_a_network_that_works_in_place_is_captured_with_copies(
    kind: type[nn.Module], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, y = count_replays(monkeypatch), observations(8)
    captured = KnownMask()(kind().cuda(), y, mask("block", SHAPE))
    assert taken[-1] == 38
    check_equal(captured, KnownMask()(eager(kind().cuda()), y, mask("block", SHAPE)))
    left_alone = Sampling()
    left_alone.forward = lambda x: x * 0.3  # type: ignore[method-assign]
    check_equal(captured, KnownMask()(left_alone.cuda(), y, mask("block", SHAPE)))


class NoticesCaptures(Sampling):
    """Does something else in a capture, so that a graph of it differs."""

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale / (3 if torch.cuda.is_current_stream_capturing() else 2)


class Uncapturable(Sampling):
    """Keeps something for a number of images, and then brings a value from the host, which no graph can."""

    kept = torch.empty(0)

    def forward(self, x: Tensor) -> Tensor:
        if len(self.kept) != len(x):
            self.kept = torch.ones_like(x) * self.scale
        return x * self.kept * torch.tensor(0.9, device=x.device)


@gpu
@pytest.mark.parametrize("kind", [NoticesCaptures, Uncapturable])
def test_what_a_graph_got_wrong_is_taken_back(kind: type[nn.Module], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="recollect.accelerate")
    y = observations(16)
    f = kind().cuda()
    check_equal(KnownMask()(f, y, mask("block", SHAPE)), KnownMask()(eager(kind().cuda()), y, mask("block", SHAPE)))
    assert "without a CUDA graph" in caplog.text
    assert torch.equal(f(y[:3]), kind().cuda()(y[:3]))


@gpu
def test_a_failed_capture_leaves_memory_and_random_numbers_as_usable_as_before() -> None:
    KnownMask()(Uncapturable().cuda(), observations(8), mask("block", SHAPE))
    other = torch.cuda.Stream()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()  # what other tests hold is not at issue
    for _ in range(20):
        torch.empty(2**26, dtype=torch.uint8, device="cuda").record_stream(other)
        torch.cuda.synchronize()
    assert torch.cuda.memory_reserved() < before + 10 * 2**26
    torch.cuda.empty_cache()
    torch.rand(3, device="cuda")


class Counted:
    """A step on some rows that says how often it ran, and may fail."""

    def __init__(self, rows: int, fails: Callable[[int], Exception | None] = lambda _: None) -> None:
        self.rows, self.calls, self._fails = torch.ones(rows, 4, device="cuda"), 0, fails

    def __call__(self) -> Tensor:
        self.calls += 1
        self.rows.mul_(0.5)
        if error := self._fails(self.calls):
            raise error
        return self.rows + 1


@gpu
@pytest.mark.parametrize(("known", "calls"), [(True, 2), (False, 3)])
def test_only_a_known_step_is_captured_before_it_has_run(known: bool, calls: int) -> None:
    step, graphs = Counted(8), CudaGraphs(CudaGraphPool(torch.device("cuda", 0)), known=known)
    assert graphs.run(step, [step.rows], 6) == 6
    assert step.calls == calls  # a capture and one to compare with, or one more before
    assert torch.equal(step.rows, torch.full_like(step.rows, 0.5**6))


@gpu
def test_a_known_step_that_needs_a_first_run_gets_one() -> None:
    step = Counted(8, lambda call: RuntimeError("not set up") if call == 1 else None)
    graphs = CudaGraphs(CudaGraphPool(torch.device("cuda", 0)), known=True)
    assert graphs.run(step, [step.rows], 6) == 6
    assert torch.equal(step.rows, torch.full_like(step.rows, 0.5**6))
    assert graphs.once_more(8) is not None


@gpu
@pytest.mark.parametrize("failing", [1, 2, 3])
def test_where_a_step_fails_beside_its_graph_nothing_was_done(failing: int, caplog: pytest.LogCaptureFixture) -> None:
    """As for want of memory: an eager step, the capture, or the one that is compared."""
    caplog.set_level(logging.INFO, logger="recollect.accelerate")
    step = Counted(8, lambda call: torch.cuda.OutOfMemoryError("no room") if call == failing else None)
    graphs = CudaGraphs(CudaGraphPool(torch.device("cuda", 0)))
    assert graphs.run(step, [step.rows], 6) == 0
    assert torch.equal(step.rows, torch.ones_like(step.rows))
    assert "capturing it failed (no room)" in caplog.text
    assert graphs.once_more(8) is None


@gpu
def test_a_graph_that_is_not_kept_leaves_room_for_others() -> None:
    large, small, graphs = Counted(64), Counted(8), CudaGraphs(CudaGraphPool(torch.device("cuda", 0)), known=True)
    graphs.launch_share = float("inf")
    assert 2 <= graphs.run(large, [large.rows], 6) <= 6
    assert graphs.once_more(64) is None
    graphs.launch_share = 0
    assert graphs.run(small, [small.rows], 6) == 6
    assert small.calls == 2  # none of them failed
    assert graphs.once_more(8) is not None


@gpu
def test_batches_that_keep_the_device_busy_are_not_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches are said to take too small a share of a step's time, whatever they take here."""
    monkeypatch.setattr(cuda_graphs, "LAUNCH_SHARE", float("inf"))
    taken, y, f = count_replays(monkeypatch), observations(64), network("lrelu")
    recovery = KnownMask()(f, y, mask("block", SHAPE), chunk=32)
    assert taken[0] >= 2
    assert not any(taken[1:])  # later batches of that size are not tried again
    check_equal(recovery, KnownMask()(eager(f), y, mask("block", SHAPE), chunk=32))


class Turning(Counted):
    """A step that depends on a number, which it moves on."""

    def __init__(self, rows: int) -> None:
        super().__init__(rows)
        self.numbers = torch.tensor([0.5, 2.0, 4.0], device="cuda")

    def __call__(self) -> Tensor:
        returned = super().__call__() * self.numbers[0]
        self.rows.mul_(self.numbers[0])
        self.numbers.copy_(self.numbers.roll(-1, 0))
        return returned


@gpu
@pytest.mark.parametrize("known", [True, False])
def test_a_step_may_change_several_tensors(known: bool) -> None:
    step, eagerly = Turning(8), Turning(8)
    graphs = CudaGraphs(CudaGraphPool(torch.device("cuda", 0)), known=known)
    graphs.launch_share = 0
    for _ in range(2):
        assert graphs.run(step, [step.rows, step.numbers], 7) == 7
        for _ in range(7):
            eagerly()
        assert torch.equal(step.rows, eagerly.rows)
        assert torch.equal(step.numbers, eagerly.numbers)


@gpu
def test_hooks_are_called_at_every_step() -> None:
    f, calls = network("lrelu"), []
    f.register_forward_hook(lambda *_: calls.append(1))
    KnownMask()(f, observations(8), mask("block", SHAPE), chunk=8)
    assert len(calls) == 4 + 39  # before: in PyTorch, in kernels, and while launches are rehearsed and compiled


@gpu
def test_a_network_s_own_error_is_its_own() -> None:
    class Failing(Sampling):
        def forward(self, x: Tensor) -> Tensor:
            raise RuntimeError("its own trouble")

    with pytest.raises(RuntimeError, match="its own trouble"):
        KnownMask()(Failing().cuda(), observations(8), mask("block", SHAPE), chunk=8)


@gpu
def test_on_a_stream_of_the_caller() -> None:
    f, y = network("lrelu"), observations(64)
    expected = Blind(limit=3)(f, y, chunk=16)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        there = Blind(limit=3)(f, y, chunk=16)
    stream.synchronize()
    check_equal(there, expected)


@gpu
def test_memory_is_free_again_when_a_run_has_ended() -> None:
    f, y = network("unet"), observations(64)
    KnownMask()(f, y, mask("block", SHAPE))
    before = torch.cuda.memory_allocated()
    gc.disable()  # it must not depend on a collection
    try:
        KnownMask()(f, y, mask("block", SHAPE))
        assert torch.cuda.memory_allocated() == before
    finally:
        gc.enable()
