import pytest
import torch

from recollect.devices.memory import free_memory, pytorch_memory


def test_free_memory_is_known() -> None:
    assert 10**7 < free_memory(torch.device("cpu")) < 10**14


@pytest.mark.gpu
def test_on_a_gpu_unused_memory_is_free() -> None:
    device = torch.device("cuda", 0)
    values = torch.empty(2**28, dtype=torch.uint8, device=device)
    torch.cuda.reset_peak_memory_stats(device)
    before, was_free = pytorch_memory(device), free_memory(device)
    assert before.used == before.peak == torch.cuda.memory_allocated(device)
    assert before.reserved == torch.cuda.memory_reserved(device)
    del values
    now = pytorch_memory(device)
    assert (now.used, now.peak, now.reserved) == (before.used - 2**28, before.peak, before.reserved)
    assert free_memory(device) == pytest.approx(was_free + 2**28, abs=2**26)  # others may use it too
