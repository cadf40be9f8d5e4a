"""Threads that share a module: it stays in eval mode until the last of them leaves."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor, nn

from recollect import Blind
from recollect.devices.module_mode import eval_mode
from recollect.devices.precision import evaluation_mode, float32_precision, float32_switches

PATIENCE = 60  # seconds, after which a test fails instead of hanging


def switches() -> list[str]:
    return [switch.fp32_precision for switch in float32_switches()]  # type: ignore[attr-defined]


class Meeting(nn.Module):
    """An autoencoder of ones in eval mode and of zeros in train mode. Two threads meet inside its third call, and the
    second stays there until the first has left: the first two calls are the engine's own, which it makes one at a time.
    """

    def __init__(self) -> None:
        super().__init__()
        self.part = nn.Identity()
        self.weight = nn.Parameter(torch.ones(1))
        self.first_thread: int | None = None
        self.both_inside, self.first_has_left = threading.Barrier(2), threading.Event()
        self.calls: Counter[int] = Counter()

    def forward(self, x: Tensor) -> Tensor:
        thread = threading.get_ident()
        self.calls[thread] += 1
        if self.calls[thread] == 3:
            self.both_inside.wait(PATIENCE)
            if thread != self.first_thread:
                assert self.first_has_left.wait(PATIENCE)
        return torch.zeros_like(x) if self.training or self.part.training else torch.ones_like(x)


@pytest.mark.parametrize("repetition", range(3))
def test_a_recovery_that_outlives_another_of_the_same_module_stays_in_eval_mode(repetition: int) -> None:
    f, y, before = Meeting().train(), torch.rand(2, 1, 4, 4), switches()

    def first() -> Tensor:
        f.first_thread = threading.get_ident()
        estimate = Blind()(f, y).estimate
        f.first_has_left.set()
        return estimate

    with ThreadPoolExecutor(2) as threads:
        results = [threads.submit(first), threads.submit(lambda: Blind()(f, y).estimate)]
        estimates = [result.result(PATIENCE) for result in results]
    alone = Blind()(nn.Sequential(nn.Identity(), _Ones()), y).estimate
    assert all(torch.equal(estimate, alone) for estimate in estimates)
    assert min(f.calls.values()) >= 3
    assert f.training
    assert f.part.training
    assert switches() == before


class _Ones(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.ones_like(x)


def test_the_last_to_leave_restores_the_mode_of_each_part() -> None:
    f = nn.Sequential(nn.Dropout(), nn.Dropout().eval())
    with eval_mode(f):
        with eval_mode(f[0]), eval_mode(f):
            assert not any(module.training for module in f.modules())
        assert not any(module.training for module in f.modules())
    assert [module.training for module in f.modules()] == [True, True, False]


def test_modules_that_share_a_part_share_its_mode() -> None:
    shared = nn.Dropout()
    left, right = nn.Sequential(shared), nn.Sequential(shared)
    first, second = eval_mode(left), eval_mode(right)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert (left.training, right.training, shared.training) == (True, False, False)
    second.__exit__(None, None, None)
    assert (left.training, right.training, shared.training) == (True, True, True)


def test_a_thread_that_needs_ieee_has_it_beside_one_that_asks_for_tf32() -> None:
    before, inside, finished = switches(), threading.Barrier(2), threading.Event()

    def evaluate() -> list[str]:
        with evaluation_mode(torch.tanh):
            inside.wait(PATIENCE)
            assert finished.wait(PATIENCE)
            return switches()

    with ThreadPoolExecutor(1) as threads:
        evaluated = threads.submit(evaluate)
        inside.wait(PATIENCE)
        with float32_precision("tf32"):
            assert switches() == ["ieee"] * 5
            finished.set()
            assert evaluated.result(PATIENCE) == ["ieee"] * 5
            assert switches() == ["tf32"] * 5
    assert switches() == before
