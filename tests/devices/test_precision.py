from collections.abc import Callable, Iterator
from functools import partial

import pytest
import torch
from torch import nn

from recollect import InputError
from recollect.devices.precision import (
    apply_checked,
    check_device,
    evaluation_mode,
    float32_precision,
    float32_switches,
)


def now() -> list[str]:
    return [switch.fp32_precision for switch in float32_switches()]  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = now()
    yield
    torch.backends.fp32_precision = "none"  # type: ignore[attr-defined]
    for switch, was in zip(float32_switches(), before, strict=True):
        switch.fp32_precision = was  # type: ignore[attr-defined]


@pytest.mark.parametrize("precision", ["ieee", "tf32"])
def test_all_switches_turn_and_turn_back(precision: str) -> None:
    before = now()
    with float32_precision(precision):  # type: ignore[arg-type]
        assert now() == [precision] * 5
    assert now() == before


def test_settings_are_restored_after_an_error() -> None:
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    before = now()
    with pytest.raises(ZeroDivisionError), float32_precision("ieee"):
        raise ZeroDivisionError
    assert now() == before


def test_settings_nest() -> None:
    with float32_precision("tf32"):
        with float32_precision("ieee"):
            assert now() == ["ieee"] * 5
        assert now() == ["tf32"] * 5


def test_the_older_setting_is_restored_too() -> None:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        with float32_precision("ieee"):
            assert torch.backends.cuda.matmul.fp32_precision == "ieee"
        assert torch.get_float32_matmul_precision() == "high"
        assert torch.backends.cuda.matmul.allow_tf32
    finally:
        torch.set_float32_matmul_precision(before)


def test_a_switch_that_followed_the_global_setting_follows_it_again() -> None:
    matmul = torch.backends.cuda.matmul
    matmul.fp32_precision = "none"
    torch.backends.fp32_precision = "tf32"  # type: ignore[attr-defined]
    with float32_precision("ieee"):
        assert matmul.fp32_precision == "ieee"
    assert matmul.fp32_precision == "tf32"
    torch.backends.fp32_precision = "ieee"  # type: ignore[attr-defined]
    assert matmul.fp32_precision == "ieee"


def test_autocast_is_off_inside() -> None:
    with torch.autocast("cpu"):
        with float32_precision("ieee"):
            assert not torch.is_autocast_enabled("cpu")
            assert not torch.is_autocast_enabled("cuda")
        assert torch.is_autocast_enabled("cpu")


def test_modes_are_restored_module_by_module() -> None:
    f = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout()), nn.Dropout().eval())
    before = [m.training for m in f.modules()]
    with evaluation_mode(f):
        assert not any(m.training for m in f.modules())
    assert [m.training for m in f.modules()] == before
    with pytest.raises(ZeroDivisionError), evaluation_mode(f):
        raise ZeroDivisionError
    assert [m.training for m in f.modules()] == before == [True, True, True, True, False]


def test_plain_functions_run_in_full_precision_too() -> None:
    with evaluation_mode(torch.tanh):
        assert now() == ["ieee"] * 5


def test_outputs_are_checked() -> None:
    x = torch.zeros(2, 1, 3, 3)
    assert torch.equal(apply_checked(torch.cos, x), torch.ones_like(x))
    with pytest.raises(InputError, match=r"returned a list, not a tensor; wrap it so that it returns the image"):
        apply_checked(lambda x: [x], x)  # type: ignore[arg-type,return-value]
    with pytest.raises(InputError, match=r"given 2x1x3x3 float32 on cpu and returned 2x1x3x3 float64 on cpu"):
        apply_checked(torch.Tensor.double, x)
    with pytest.raises(InputError, match=r"returned 2x1x3x3 float32 on meta; .* on the same device"):
        apply_checked(lambda x: x.to("meta"), x)


@pytest.mark.parametrize("of", [lambda n: n.forward, lambda n: partial(n), lambda n: partial(partial(n.forward), 1)])
def test_the_module_of_a_method_runs_in_eval_mode(of: Callable[[nn.Module], object]) -> None:
    network = nn.Sequential(nn.Dropout(0.5))
    with evaluation_mode(of(network)):
        assert not network[0].training
    assert network.training
    assert network[0].training


@pytest.mark.parametrize("device", ["mps", "gpu", "tpu", "cuda:99", "cuda:x", "cpu:7"])
def test_a_device_that_does_not_exist_is_answered_in_a_sentence(device: str) -> None:
    gpus = "".join(f" or cuda:{number}" for number in range(torch.cuda.device_count()))
    hint = " A GPU is called cuda." if device == "gpu" else ""
    with pytest.raises(InputError) as refused:
        check_device(device)
    assert str(refused.value) == f"The device {device} cannot be used here; choose cpu{gpus}.{hint}"
    for existing in ("cpu", "cpu:0", torch.device("cpu")):
        check_device(existing)
    check_device(None)
