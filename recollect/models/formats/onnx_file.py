"""ONNX files, run by onnxruntime. A graph of operators and numbers: opening one runs nothing of the file."""

from __future__ import annotations

from collections.abc import Iterator
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from recollect.devices.precision import choose_device
from recollect.errors import InputError, first_line
from recollect.models.batch_sizes import BatchSizes
from recollect.models.formats.base import ModelFormat

KINDS = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}


class OnnxModel(nn.Module):
    """An ONNX session as a module without weights of its own and without derivatives."""

    def __init__(self, session: Any, path: Path) -> None:
        super().__init__()
        (self.input,) = _single_input(session, path)
        self.session = session
        self.outputs = [output.name for output in session.get_outputs()]
        shape = self.input.shape
        self.batch_sizes = BatchSizes()
        if shape and isinstance(shape[0], int):
            self.batch_sizes = BatchSizes(shape[0], shape[0])

    def forward(self, values: Tensor) -> Tensor | dict[str, Tensor]:
        if torch.is_grad_enabled() and values.requires_grad:
            raise InputError("An ONNX model has no derivatives, so its attractors cannot be measured; leave them out.")
        given = values.detach().cpu().numpy().astype(KINDS[self.input.type], copy=False)
        returned = self.session.run(self.outputs, {self.input.name: np.ascontiguousarray(given)})
        tensors = [_tensor(array).to(values.device) for array in returned]
        tensors = [t.to(values.dtype) if t.is_floating_point() else t for t in tensors]
        return tensors[0] if len(tensors) == 1 else dict(zip(self.outputs, tensors, strict=True))


def open_onnx(path: Path, device: torch.device | str | None) -> OnnxModel:
    """Open an ONNX file on the CPU or a CUDA device; by default on CUDA if this onnxruntime can use it."""
    try:
        import onnxruntime
    except ImportError:
        raise InputError(f"Opening {path} needs onnxruntime: run pip install 'recollect[onnx]'.") from None
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4  # errors are raised as exceptions, and the log would print what a file says
    settings.intra_op_num_threads = torch.get_num_threads()
    try:
        session = onnxruntime.InferenceSession(str(path), settings, providers=_providers(onnxruntime, device))
    except InputError:
        raise
    except Exception as error:  # onnxruntime has a dozen kinds, none of them public
        raise InputError(f"{path} cannot be opened as ONNX: {first_line(error)}") from None
    return OnnxModel(session, path)


def _providers(onnxruntime: Any, device: torch.device | str | None) -> list[Any]:
    has_cuda = "CUDAExecutionProvider" in onnxruntime.get_available_providers()
    device = choose_device(device if device is not None or has_cuda else "cpu")
    if device.type == "cpu":
        return ["CPUExecutionProvider"]
    if device.type != "cuda" or not has_cuda:
        raise InputError(
            f"This onnxruntime cannot run on {device}; leave device out, or for CUDA run pip install onnxruntime-gpu."
        )
    return [("CUDAExecutionProvider", {"device_id": device.index or 0, "use_tf32": 0})]


def _single_input(session: Any, path: Path) -> tuple[Any]:
    inputs = session.get_inputs()
    if len(inputs) != 1:
        names = ", ".join(given.name for given in inputs)
        raise InputError(f"{path} wants {len(inputs)} inputs ({names}); an autoencoder wants images alone.")
    if inputs[0].type not in KINDS:
        raise InputError(f"{path} wants {inputs[0].type}; expected an input of floating point images.")
    return (inputs[0],)


def _tensor(array: Any) -> Tensor:
    return torch.from_numpy(np.array(array))  # a copy: onnxruntime may use its own memory again


def files_beside(path: Path) -> Iterator[Path]:
    """Find the weights that an ONNX model may keep in m.onnx.data or m.onnx_data."""
    return path.parent.glob(f"{escape(path.name)}[._]*")


FORMAT = ModelFormat(
    name="onnx",
    summary="ONNX, after pip install 'recollect[onnx]'",
    example="model.onnx",
    recognises=lambda _model: False,  # its content has no mark of its own: the suffix decides
    open=lambda model: open_onnx(model.path, model.device),
    suffixes=(".onnx",),
    files_beside=files_beside,
    order=50,
)
