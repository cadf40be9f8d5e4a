"""Small real models of each kind, and files that would run code if anything in them were run."""

import json
import pickle
import warnings
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

SIZE = (3, 8, 8)


class Tiny(nn.Module):
    """Two convolutions: a model of any number of images of any size."""

    def __init__(self, channels: int = 3) -> None:
        super().__init__()
        self.inside = nn.Conv2d(channels, 4, 3, padding=1)
        self.outside = nn.Conv2d(4, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.outside(torch.nn.functional.gelu(self.inside(x), approximate="tanh"))


class Several(Tiny):
    """As VAEs do: the image among other things, in a tuple and a dict."""

    def forward(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:  # type: ignore[override]
        hidden = self.inside(x)
        return hidden, {"image": self.outside(hidden)}


def tiny(channels: int = 3) -> Tiny:
    torch.manual_seed(3)
    return Tiny(channels).eval()


def images(count: int = 5, shape: tuple[int, ...] = SIZE) -> Tensor:
    return torch.rand(count, *shape, generator=torch.Generator().manual_seed(5))


def agree(opened: nn.Module, model: nn.Module, count: int = 5) -> bool:
    """Return whether two models give the same images."""
    with torch.no_grad():
        return torch.allclose(opened(images(count)), model(images(count)), atol=1e-6)


def script(model: nn.Module, path: Path, example: Tensor | None = None) -> Path:
    """Scripted, or traced with an example."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls TorchScript deprecated
        made = torch.jit.script(model) if example is None else torch.jit.trace(model, example)
        torch.jit.save(made, path)
    return path


def export(model: nn.Module, path: Path, count: int = 2, batch: Any = None) -> Path:
    """A .pt2 of a fixed number of images, or of a dimension."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shapes = None if batch is None else ({0: batch},)
        torch.export.save(torch.export.export(model, (images(count),), dynamic_shapes=shapes), path)
    return path


def onnx_convolution(path: Path, batch: int | str = "n", outputs: int = 1) -> tuple[Path, nn.Module]:
    """One convolution as an ONNX graph, and the same as a module."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    torch.manual_seed(9)
    same = nn.Conv2d(3, 3, 3, padding=1)
    weights = [numpy_helper.from_array(t.detach().numpy(), n) for n, t in same.named_parameters()]
    nodes = [helper.make_node("Conv", ["x", "weight", "bias"], ["y"], pads=[1, 1, 1, 1])]
    results = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, *SIZE])]
    if outputs == 2:
        nodes.append(helper.make_node("Neg", ["y"], ["z"]))
        results.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [batch, *SIZE]))
    entry = helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, *SIZE])
    graph = helper.make_graph(nodes, "g", [entry], results, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path, same


def touch(path: str) -> None:
    Path(path).touch()


class Touch:
    """Unpickling this creates a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return touch, (str(self.path),)


def proven(path: Path) -> Touch:
    """A Touch that was seen to work, so that its silence in a test means something."""
    evil = Touch(path)
    pickle.loads(pickle.dumps(evil))
    assert path.exists()
    path.unlink()
    return evil


def rewrite(path: Path, changes: dict[str, Any]) -> Path:
    """An archive of torch's with records replaced or added; a function is given the JSON that is there."""
    reader = torch._C.PyTorchFileReader(str(path))
    skip = (".data/", "byteorder", "version")
    records = {n: reader.get_record(n) for n in reader.get_all_records() if not n.startswith(skip)}
    for name, change in changes.items():
        if callable(change):
            content = json.loads(records[name])
            change(content)
            records[name] = json.dumps(content).encode()
        else:
            records[name] = change
    writer = torch._C.PyTorchFileWriter(str(path))
    writer.set_min_version(6)
    for name, data in records.items():
        writer.write_record(name, data, len(data))
    writer.write_end_of_file()
    return path


def saved(content: Any) -> bytes:
    buffer = BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()
