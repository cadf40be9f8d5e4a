"""What devices are called, known without torch: the command line refuses a mistake before that import."""

from __future__ import annotations

from recollect.errors import InputError

KINDS = ("cpu", "cuda", "mps", "xpu")  # of PyTorch's devices, those that hold images and networks


def check_device_name(device: str | None) -> None:
    """Refuse a text that names no device on any machine."""
    if device is not None and device.partition(":")[0] not in KINDS:
        raise no_such_device(device, "cpu or cuda")


def no_such_device(device: object, choices: str) -> InputError:
    """Return the error that names what may be chosen."""
    hint = " A GPU is called cuda." if str(device).partition(":")[0] == "gpu" else ""
    return InputError(f"The device {device} cannot be used here; choose {choices}.{hint}")
