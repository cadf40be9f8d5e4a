from dataclasses import dataclass
from typing import Self

import pytest
import torch
from torch import Tensor

from recollect.engine.collect import Collector
from recollect.per_image import PerImage


@dataclass(frozen=True, eq=False)
class Rows(PerImage):
    value: Tensor
    image: Tensor


def rows_of(index: Tensor) -> Rows:
    return Rows(index + 0.5, index[:, None, None].expand(-1, 4, 4).double())


DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("lots", [1, 2, 7])
def test_rows_arrive_in_order_on_the_host(device: str, lots: int) -> None:
    order = torch.randperm(50, generator=torch.Generator().manual_seed(lots)).to(device)
    with Collector[Rows](50, order.device) as collector:
        for index in order.tensor_split(lots):
            collector.put(index, rows_of(index))
        done = collector.all()
    every = rows_of(torch.arange(50))
    assert done.value.device.type == "cpu"
    assert torch.equal(done.value, every.value)
    assert torch.equal(done.image, every.image)


def counting_rows() -> tuple[type[Rows], list[int]]:
    """Rows that note how many of them go to the host together."""
    lots: list[int] = []

    class Counting(Rows):
        def to_host(self) -> Self:
            lots.append(len(self))
            return super().to_host()

    return Counting, lots


@pytest.mark.gpu
@pytest.mark.parametrize(("chunk", "expected"), [(1, [1] * 6), (4, [4, 2]), (1000, [6])])
def test_lots_are_no_larger_than_the_working_set(chunk: int, expected: list[int]) -> None:
    counting, lots = counting_rows()
    with Collector[Rows](6, torch.device("cuda"), chunk) as collector:
        for index in torch.arange(6, device="cuda").split(1):
            collector.put(index, counting(index + 0.5, index[:, None, None].double()))
        assert torch.equal(collector.all().value, torch.arange(6) + 0.5)
    assert lots == expected


@pytest.mark.gpu
def test_the_device_works_on_while_rows_leave() -> None:
    """Later work on the device does not write into the memory of a lot that is being copied."""
    device = torch.device("cuda")
    with Collector[Rows](4000, device) as collector:
        for start in range(0, 4000, 500):
            index = torch.arange(start, start + 500, device=device)
            rows = Rows(index + 0.5, index[:, None, None].expand(-1, 64, 64).double())
            collector.put(index, rows)
            del rows
            for _ in range(20):  # memory that was given away too early would be written to
                torch.full((500, 64, 64), -1.0, dtype=torch.float64, device=device)
        done = collector.all()
    assert torch.equal(done.image[:, 0, 0], torch.arange(4000).double())
    assert torch.equal(done.image[:, -1, -1], torch.arange(4000).double())


@pytest.mark.parametrize("device", DEVICES)
def test_an_error_while_collecting_is_raised(device: str) -> None:
    index = torch.arange(3, device=device)

    def put_beyond_the_end() -> None:
        with Collector[Rows](3, index.device) as collector:
            collector.put(index + 10, rows_of(index))
            collector.all()

    with pytest.raises(IndexError):
        put_beyond_the_end()


@pytest.mark.parametrize("device", DEVICES)
def test_rows_that_are_at_home_stay_there(device: str) -> None:
    order = torch.randperm(50, generator=torch.Generator().manual_seed(1)).to(device)
    with Collector[Rows](50, order.device, home=order.device) as collector:
        for index in order.split(20):
            collector.put(index, rows_of(index))
        done = collector.all()
    assert done.image.device == order.device
    assert torch.equal(done.image, rows_of(torch.arange(50)).image.to(device))


@pytest.mark.parametrize(("home", "expected"), [("cpu", []), ("meta", [2, 2, 2])])
def test_only_rows_from_elsewhere_go_to_the_host(home: str, expected: list[int]) -> None:
    counting, lots = counting_rows()
    with Collector[Rows](6, torch.device("cpu"), home=torch.device(home)) as collector:
        for index in torch.arange(6).split(2):
            collector.put(index, counting(index + 0.5, index[:, None, None].double()))
        assert torch.equal(collector.all().value, torch.arange(6) + 0.5)
    assert lots == expected
