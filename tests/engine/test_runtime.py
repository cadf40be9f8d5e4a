"""An autoencoder prepared for a method: its working set, what is known of its code, how it is computed."""

import pytest
import torch
from torch import Tensor, nn

from recollect import FullyConnected, InputError, Iterate, KnownMask, TiedTwoLayer, UNet, mask
from recollect.devices.memory import free_memory
from recollect.engine import arithmetic_of, prepare, shared_runtimes, without_acceleration
from recollect.engine.runtime import CPU_CHUNK, CPU_CHUNK_CONVOLUTIONS, IN_PYTORCH
from tests.networks import Halves

gpu = pytest.mark.gpu
CPU = torch.device("cpu")
ROWS_OF_32 = torch.rand(5, 1, 4, 32)


def chunk_for(image_bytes: int) -> int:
    image = torch.zeros(1).expand(1, 1, 1, image_bytes // 4)  # without memory of its own
    with prepare(torch.zeros_like, image, None) as runtime:
        return runtime.chunk


def test_the_working_set_shrinks_with_the_free_memory() -> None:
    """Half of the memory is used, and a network takes up to 512 times the memory of its images."""
    assert chunk_for(4) == CPU_CHUNK
    for images in (16, 4):
        assert images / 2 <= chunk_for(free_memory(CPU) // (1024 * images)) <= 2 * images  # others use memory too
    assert chunk_for(free_memory(CPU) // 256) == 1


@pytest.mark.usefixtures("path")
def test_the_working_set_is_small_for_convolutions() -> None:
    y = torch.rand(100, 1, 4, 4)
    for f, size in ((nn.Conv2d(1, 1, 3, padding=1), CPU_CHUNK_CONVOLUTIONS), (nn.Linear(4, 4), 100)):
        sizes: list[int] = []
        Iterate(limit=1)(f, y, trace=lambda s, sizes=sizes: sizes.append(len(s.index)))  # type: ignore[misc]
        assert max(sizes) == size


@pytest.mark.parametrize("method", [Iterate(limit=5), KnownMask(steps=12)], ids=lambda m: m.name)
@pytest.mark.parametrize(
    "f", [FullyConnected((3, 8, 8), layers=3, width=32), UNet(widths=(16, 24))], ids=["fc", "unet"]
)
def test_both_paths_give_the_same_but_for_rounding(method: Iterate | KnownMask, f: nn.Module) -> None:
    truth = mask("block", (3, 8, 8))
    y = truth.apply(torch.rand(40, 3, 8, 8, generator=torch.Generator().manual_seed(0)))
    accelerated = method(f, y, truth)
    with without_acceleration():
        plain = method(f, y, truth)
    assert torch.allclose(accelerated.estimate, plain.estimate, atol=1e-4)
    for field in ("rounds", "steps", "stop"):
        assert torch.equal(getattr(accelerated, field), getattr(plain, field))


def test_without_acceleration_there_are_no_fused_steps(path: str) -> None:
    with prepare(nn.Linear(32, 32), ROWS_OF_32, None) as runtime:
        assert (runtime.fused_admm(0.5, 40) is None) is (path == "plain")
        assert runtime.fused_admm(0.5, 40) is runtime.fused_admm(0.5, 40)
    with prepare(nn.Linear(32, 32), ROWS_OF_32, None, accelerated=False) as runtime:
        assert runtime.fused_admm(0.5, 40) is None


def test_the_environment_can_switch_acceleration_off(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for setting, plain in (("", path == "plain"), ("off", True)):
        monkeypatch.setenv("RECOLLECT_ACCELERATE", setting)
        with prepare(nn.Linear(32, 32), ROWS_OF_32, None) as runtime:
            assert (runtime.fused_admm(0.5, 40) is None) is plain
    monkeypatch.setenv("RECOLLECT_ACCELERATE", "fast")
    with pytest.raises(InputError, match="RECOLLECT_ACCELERATE is 'off' or not set; it is 'fast'"):
        arithmetic_of(nn.Linear(32, 32), ROWS_OF_32)


class Clamping(nn.Module):
    """Changes its input without a change of version."""

    def forward(self, x: Tensor) -> Tensor:
        return x.data.clamp_(0, 1) / 2


@pytest.mark.usefixtures("path")
def test_what_a_network_does_to_its_input_is_known_before_it_runs() -> None:
    for f, changes in ((Clamping(), True), (nn.Linear(32, 32), False)):
        with prepare(f, ROWS_OF_32, None) as runtime:  # values from 0 to 1, which clamping does not change
            assert runtime.changes_input is changes


def with_another_forward() -> nn.Module:
    layer = nn.Linear(32, 32)
    layer.forward = lambda input: input / 2  # type: ignore[method-assign]
    return layer


@pytest.mark.parametrize(
    ("f", "known"),
    [
        (FullyConnected((1, 4, 32), layers=3, width=8), True),
        (UNet(channels=1, widths=(4, 8)), True),
        (nn.Sequential(nn.Linear(32, 32), nn.Tanh()), True),
        (nn.Sequential(nn.Linear(32, 32), Halves()), False),
        (with_another_forward(), False),
        (TiedTwoLayer(torch.rand(8, 128)), False),
    ],
    ids=range(6),
)
def test_known_code_is_pytorch_s_and_ours(f: nn.Module, known: bool) -> None:
    with prepare(f, ROWS_OF_32, 1) as runtime:
        assert runtime.is_known_code is known


def test_a_function_is_not_known_code() -> None:
    with prepare(lambda x: x / 2, ROWS_OF_32, 1) as runtime:
        assert not runtime.is_known_code


@gpu
@pytest.mark.parametrize(("f", "watched"), [(nn.Linear(32, 32), False), (Halves(), True)])
def test_only_unknown_code_is_watched_for_waiting(f: nn.Module, watched: bool) -> None:
    """Watching takes time; a hook that copies a value to the host shows whether it is done."""

    def read_back(_: nn.Module, __: object, output: Tensor) -> None:
        output.max().item()

    f.cuda().register_forward_hook(read_back)
    with prepare(f, ROWS_OF_32.cuda(), 1) as runtime:
        assert bool(runtime.waits) is watched


@pytest.mark.usefixtures("path")
def test_records_say_how_layers_are_computed() -> None:
    assert arithmetic_of(nn.Linear(32, 32), ROWS_OF_32) == IN_PYTORCH


def test_recoveries_of_a_block_share_what_was_prepared_for_as_many_images() -> None:
    f, other = nn.Linear(32, 32), nn.Linear(32, 32)
    with shared_runtimes():
        with prepare(f, ROWS_OF_32, None) as nested, prepare(f, ROWS_OF_32, None) as second:
            assert second is not nested  # it is in use
        with prepare(f, ROWS_OF_32, None) as first:
            pass
        few, exact = ROWS_OF_32[:2], ROWS_OF_32.double()
        for y, chunk, same in ((few, None, True), (ROWS_OF_32, 3, False), (exact, None, False)):
            with prepare(f.to(y.dtype), y, chunk) as again:
                assert (again is first) is same
        with prepare(f.float(), ROWS_OF_32.repeat(2, 1, 1, 1), None) as larger:
            assert larger is not first
        with prepare(other, ROWS_OF_32, None), without_acceleration():
            pass
        with prepare(f, ROWS_OF_32, None) as again:
            assert again is not larger  # only one network's are kept
    with prepare(f, ROWS_OF_32, None) as after:
        assert after is not again


def test_a_shared_runtime_gives_the_same_bits(path: str) -> None:
    f = FullyConnected((3, 8, 8), layers=3, width=32)
    truth, images = mask("block", (3, 8, 8)), torch.rand(40, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    y, method = truth.apply(images), KnownMask(steps=12)
    alone = method(f, y[:7], truth).estimate
    with shared_runtimes():
        method(f, y, truth)
        assert torch.equal(method(f, y[:7], truth).estimate, alone), path


def test_a_failed_recovery_leaves_no_runtime_behind() -> None:
    f = nn.Linear(32, 32)
    with shared_runtimes():
        with pytest.raises(ZeroDivisionError), prepare(f, ROWS_OF_32, None) as failed:
            _ = 1 / 0
        with prepare(f, ROWS_OF_32, None) as after:
            assert after is not failed
