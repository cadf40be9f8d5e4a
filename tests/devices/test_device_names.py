"""Names of devices, known without torch."""

import pytest
import torch

from recollect.devices.device_names import KINDS, check_device_name
from recollect.errors import InputError


def test_kinds_are_those_of_pytorch() -> None:
    assert [torch.device(kind).type for kind in KINDS] == list(KINDS)


@pytest.mark.parametrize("device", [None, "cpu", "cpu:0", "cuda", "cuda:7", "mps"])
def test_a_device_that_a_machine_may_have_passes(device: str | None) -> None:
    check_device_name(device)


@pytest.mark.parametrize(("device", "hint"), [("nowhere", ""), ("gpu", " A GPU is called cuda."), ("gpu:1", " A GPU")])
def test_what_no_machine_has_is_refused(device: str, hint: str) -> None:
    with pytest.raises(InputError) as refused:
        check_device_name(device)
    assert str(refused.value).startswith(f"The device {device} cannot be used here; choose cpu or cuda.{hint}")
