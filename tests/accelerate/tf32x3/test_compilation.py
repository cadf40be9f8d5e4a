"""Launches are rehearsed and compiled once; a stand-in for Triton's functions needs no GPU."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from recollect import FullyConnected, UNet
from recollect.accelerate.tf32x3.compilation import compile_ahead, compile_variants, launch_kernel, rehearsal
from recollect.engine import prepare

CPU = torch.device("cpu")


@dataclass(eq=False)
class Kernel:
    """Two tensors or numbers, the second of which has no variants, and a constant."""

    launched: list[Any] = field(default_factory=list)
    params = (SimpleNamespace(do_not_specialize=False), SimpleNamespace(do_not_specialize=True))
    cache_key = "a hash"

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        return lambda *arguments, **settings: self.launched.append((grid, arguments, settings))

    def warmup(self, *arguments: Any, grid: tuple[int, ...], **settings: Any) -> None:
        raise AssertionError("compiled without its device")


def test_a_launch_is_made_outside_of_a_rehearsal_and_noted_within() -> None:
    kernel = Kernel()
    with rehearsal() as launches:
        launch_kernel(kernel, (1,), torch.zeros(2), 3, BLOCK=4)
    assert not kernel.launched
    assert launches[0].arguments == (torch.float32, 3)
    launch_kernel(kernel, (2,), 5, 6, BLOCK=7)
    assert kernel.launched == [((2,), (5, 6), {"BLOCK": 7})]
    assert len(launches) == 1


def test_launches_of_one_variant_are_compiled_once() -> None:
    with rehearsal() as launches:
        kernel = Kernel()
        for first, second, block in [(16, 1, 4), (32, 7, 4), (17, 7, 4), (1, 7, 4), (16, 1, 8), (None, 1, 4)]:
            launch_kernel(kernel, (1,), first, second, BLOCK=block)
        launch_kernel(Kernel(), (1,), 16, 1, BLOCK=4)
    variants = [launch.variant for launch in launches]
    assert variants[0] == variants[1]
    assert len(set(variants)) == 6


def test_errors_are_left_to_the_launch() -> None:
    def failing() -> None:
        launch_kernel(Kernel(), (1,), 1, 2)
        launch_kernel(Kernel(), (1,), 1, 2)
        raise RuntimeError("of the network")

    compile_ahead(failing, CPU)  # torch.cuda.device refuses a CPU in each thread as well
    compile_variants([], CPU)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("network", "shape"),
    [(FullyConnected((3, 8, 8), layers=3, width=64), (40, 3, 8, 8)), (UNet(widths=(16, 32, 64)), (20, 3, 16, 16))],
)
def test_what_is_compiled_ahead_is_what_runs(network: nn.Module, shape: tuple[int, ...]) -> None:
    """After it, a network of known code launches nothing that was not compiled."""
    from recollect.accelerate.tf32x3 import kernels

    def compiled() -> int:
        return sum(len(cache[0]) for cache in kernels.matmul.device_caches.values())

    y = torch.rand(shape, device="cuda")
    with prepare(network.cuda().eval(), y, None) as runtime:
        assert "tensor cores" in runtime.arithmetic
        before = compiled()
        for size in (1, len(y)):
            runtime(y[:size])
        assert compiled() == before > 0
