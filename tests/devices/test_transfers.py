import pytest
import torch
from torch import Tensor

from recollect.devices import transfers
from recollect.devices.transfers import to_device, to_host
from tests.devices.busy import keep_busy

gpu = pytest.mark.gpu


def test_values_on_their_device_are_not_copied() -> None:
    values = torch.rand(3, 4)
    assert to_device(values, "cpu") is to_host(values) is values
    assert to_device(values, "meta").is_meta


VALUES = {
    "one": torch.tensor([7]),
    "flags": torch.rand(50, 3, 4, 4) > 0.5,
    "images": torch.rand(50, 3, 8, 8),
    "doubles": torch.rand(5, 7, dtype=torch.float64),
    "expanded": torch.rand(1, 3, 8, 8).expand(20, -1, -1, -1),
    "channels last": torch.rand(9, 3, 8, 8).to(memory_format=torch.channels_last),
    "every second": torch.arange(40)[::2],
    "none": torch.rand(0, 3),
    "a number": torch.tensor(3.5),
}


@gpu
@pytest.mark.parametrize("piece", [2**24, 1000, 1])
@pytest.mark.parametrize("name", VALUES)
def test_there_and_back(name: str, piece: int) -> None:
    values = VALUES[name]
    there = to_device(values, "cuda", piece)
    assert there.is_cuda
    assert there.dtype == values.dtype
    assert torch.equal(there.cpu(), values)
    for back in (to_device(values.cuda(), "cpu", piece), to_host(values.cuda(), piece)):
        assert back.device.type == "cpu"
        assert back.dtype == values.dtype
        assert torch.equal(back, values)


@gpu
def test_only_small_values_for_a_short_time_stay_in_pinned_memory() -> None:
    values = torch.rand(10, 100, device="cuda")
    assert to_host(values).is_pinned()
    assert not to_device(values, "cpu").is_pinned()
    assert not to_host(values, values.nbytes - 1).is_pinned()


@gpu
def test_copies_wait_for_work_that_is_under_way() -> None:
    values = torch.zeros(1000, 1000, device="cuda")
    keep_busy()
    values += 1
    assert to_host(values).min() == 1
    keep_busy()
    values += 1
    assert to_device(values, "cpu").min() == 2


@gpu
def test_the_source_may_change_after_a_copy() -> None:
    here = torch.ones(1000, 1000)
    keep_busy()  # the copy waits for this
    there = to_device(here, "cuda")
    here.zero_()
    others = [to_device(torch.full((1000, 1000), 2.0), "cuda") for _ in range(5)]  # pinned memory is reused
    assert there.min() == 1
    assert all(other.min() == 2 for other in others)


@gpu
def test_without_pinned_memory_values_are_copied_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Tensor) -> Tensor:
        raise RuntimeError("no memory can be pinned")

    monkeypatch.setattr(transfers, "_pinned_buffer", refuse)
    values = torch.rand(5, 6)
    there = to_device(values, "cuda")
    assert torch.equal(to_device(there, "cpu"), values)
    assert torch.equal(to_host(there), values)


@gpu
def test_dtypes_that_numpy_does_not_have_are_copied_too() -> None:
    values = torch.rand(5, 6).bfloat16()
    assert torch.equal(to_device(to_device(values, "cuda"), "cpu"), values)
