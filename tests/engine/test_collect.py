from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from recollect.engine.collect import Leaving
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
def test_rows_arrive_at_their_places_on_the_host(device: str, lots: int) -> None:
    order = torch.randperm(50, generator=torch.Generator().manual_seed(lots)).to(device)
    with Leaving[Rows](50, order.device) as leaving:
        for index in order.tensor_split(lots):
            leaving.put(index, rows_of(index))
        done = leaving.all()
    every = rows_of(torch.arange(50))
    assert done.value.device.type == "cpu"
    assert torch.equal(done.value, every.value)
    assert torch.equal(done.image, every.image)


class Started:
    """In place of a thread and a stream: what is sent, when."""

    def __init__(self) -> None:
        self.sent: list[int] = []

    def submit(self, _: object, index: Tensor, rows: Rows) -> None:
        assert torch.equal(rows.value, index + 0.5)
        self.sent.append(len(index))


@pytest.mark.parametrize(("chunk", "sent"), [(1, [1] * 6), (4, [4, 2]), (1000, [6])])
def test_lots_are_no_larger_than_the_working_set(chunk: int, sent: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: None)
    leaving, started = Leaving[Rows](6, torch.device("cpu"), chunk), Started()
    leaving._aside, leaving._stream = started, SimpleNamespace(wait_stream=lambda _: None)  # type: ignore[assignment]
    for index in torch.arange(6).split(1):
        leaving.put(index, rows_of(index))
    with pytest.raises(AssertionError):  # nobody took them
        leaving.all()
    assert started.sent == sent


@pytest.mark.gpu
def test_the_device_goes_on_while_rows_leave() -> None:
    """What a lot held is its own: later work on the device does not reach into it."""
    device = torch.device("cuda")
    with Leaving[Rows](4000, device) as leaving:
        for start in range(0, 4000, 500):
            index = torch.arange(start, start + 500, device=device)
            rows = Rows(index + 0.5, index[:, None, None].expand(-1, 64, 64).double())
            leaving.put(index, rows)
            del rows
            for _ in range(20):  # memory that was given away too early would be written to
                torch.full((500, 64, 64), -1.0, dtype=torch.float64, device=device)
        done = leaving.all()
    assert torch.equal(done.image[:, 0, 0], torch.arange(4000).double())
    assert torch.equal(done.image[:, -1, -1], torch.arange(4000).double())


@pytest.mark.parametrize("device", DEVICES)
def test_a_failure_on_the_way_is_heard(device: str) -> None:
    index = torch.arange(3, device=device)

    def put_where_no_place_is() -> None:
        with Leaving[Rows](3, index.device) as leaving:
            leaving.put(index + 10, rows_of(index))
            leaving.all()

    with pytest.raises(IndexError):
        put_where_no_place_is()


@pytest.mark.parametrize("device", DEVICES)
def test_rows_that_are_at_home_stay_there(device: str) -> None:
    order = torch.randperm(50, generator=torch.Generator().manual_seed(1)).to(device)
    with Leaving[Rows](50, order.device, home=order.device) as leaving:
        for index in order.split(20):
            leaving.put(index, rows_of(index))
        done = leaving.all()
    assert done.image.device == order.device
    assert torch.equal(done.image, rows_of(torch.arange(50)).image.to(device))


@pytest.mark.parametrize(("home", "trips"), [("cpu", 0), ("meta", 3)])
def test_only_rows_from_elsewhere_go_to_the_host(home: str, trips: int, monkeypatch: pytest.MonkeyPatch) -> None:
    went: list[int] = []
    on_host = Rows.on_host
    monkeypatch.setattr(Rows, "on_host", lambda rows: (went.append(len(rows)), on_host(rows))[1])
    with Leaving[Rows](6, torch.device("cpu"), home=torch.device(home)) as leaving:
        for index in torch.arange(6).split(2):
            leaving.put(index, rows_of(index))
        assert torch.equal(leaving.all().value, rows_of(torch.arange(6)).value)
    assert len(went) == trips
