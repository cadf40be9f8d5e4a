"""torch.export archives (.pt2), copied part by part: what is checked is written anew, and only the copy is opened."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from recollect.devices.precision import choose_device
from recollect.errors import InputError, first_line
from recollect.files.archives import check_torch_archive
from recollect.files.limits import MODEL_PROGRAM
from recollect.models.batch_sizes import BatchSizes
from recollect.models.formats.base import ModelFormat, ModelReference
from recollect.models.refusals import Refused, unsafe_program
from recollect.models.safety.exported_checks import checked

PROGRAM = "models/model.json"
INPUTS = "data/sample_inputs/model.pt"  # pickled; a model runs without its sample
PAYLOADS = {
    "data/weights/": ("model_weights_config.json", "weight_"),
    "data/constants/": ("model_constants_config.json", "tensor_"),
}
AS_THEY_ARE = ("archive_format", "archive_version", "byteorder")
WAY_ROUND = (
    "Export it again with torch.export.save from this version of torch, from a model of plain tensors, "
    "or build it from your own code with package.module:factory."
)
UNBOUNDED = 2**16  # a largest batch above this is no limit in practice


class ExportedModel(nn.Module):
    """The network of an exported program; its mode was fixed by the export."""

    def __init__(self, program: torch.export.ExportedProgram) -> None:
        super().__init__()
        self.network = program.module(check_guards=False)
        self.batch_sizes = _batch_sizes(program)

    def forward(self, values: Tensor) -> Any:
        return self.network(values)

    def train(self, mode: bool = True) -> ExportedModel:  # noqa: ARG002
        """Do nothing: an exported network has no other mode, and its own train() raises."""
        return self


def open_exported(path: Path, device: torch.device | str) -> ExportedModel:
    """Open the model of a .pt2 archive."""
    try:
        check_torch_archive(path)
        copy = clean_copy(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with _raising_logged_errors():
                program = torch.export.load(copy)
            if torch.device(device).type != "cpu":
                from torch.export.passes import move_to_device_pass

                program = move_to_device_pass(program, str(device))
            return ExportedModel(program)
    except Refused as error:
        raise unsafe_program(path, str(error), WAY_ROUND) from None
    except InputError as error:  # beyond a limit
        raise InputError(f"{path} is refused. {error} Nothing of it was run.") from None
    except Exception as error:  # torch raises asserts, key errors and its own kinds for what it cannot read
        raise InputError(
            f"{path} cannot be opened as an exported program ({type(error).__name__}: {first_line(error)}). {WAY_ROUND}"
        ) from None


@contextmanager
def _raising_logged_errors() -> Iterator[None]:
    """Raise the error that torch logs with its traceback; the one that it raises then does not say what is wrong."""
    logger, errors = logging.getLogger("torch.export"), list[BaseException]()

    def keep_error(record: logging.LogRecord) -> bool:
        if record.exc_info and record.exc_info[1]:
            errors.append(record.exc_info[1])
        return False

    logger.addFilter(keep_error)
    try:
        yield
    except Exception as error:
        raise next(iter(errors), error) from None
    finally:
        logger.removeFilter(keep_error)


def clean_copy(path: Path) -> BytesIO:
    """Copy an archive: its checked program and its tensors, without pickles, compiled code and extra files."""
    reader = torch._C.PyTorchFileReader(str(path))
    names = set(reader.get_all_records())
    _check_layout(names)
    copy = BytesIO()
    writer = torch._C.PyTorchFileWriter(copy)
    writer.set_min_version(6)

    def write(name: str, content: bytes) -> None:
        writer.write_record(name, content, len(content))

    for folder, (listing, prefix) in PAYLOADS.items():
        config = _program(reader.get_record(folder + listing))
        for file in _payload_files(config, prefix):
            write(folder + file, reader.get_record(folder + file))
        write(folder + listing, json.dumps(checked(config)).encode())
    write(PROGRAM, json.dumps(checked(_program(reader.get_record(PROGRAM)))).encode())
    write(INPUTS, b"")
    for name in AS_THEY_ARE:
        if name in names:
            write(name, reader.get_record(name))
    writer.write_end_of_file()
    copy.seek(0)
    return copy


def _program(content: bytes) -> Any:
    MODEL_PROGRAM.check(len(content), f"It holds a program of {len(content):,} bytes.")
    return json.loads(content)


def _check_layout(names: set[str]) -> None:
    if any(name.startswith("data/aotinductor/") for name in names):
        raise Refused("it holds compiled machine code (AOTInductor)")
    needed = {PROGRAM, "archive_format", *(folder + listing for folder, (listing, _) in PAYLOADS.items())}
    if needed - names:
        raise Refused(
            f"it has no {min(needed - names)}; older versions of torch wrote the weights as a pickle, which is not read"
        )
    others = [name for name in names if name.startswith("models/") and name != PROGRAM]
    if others:
        raise Refused(f"it holds more than one program ({others[0]})")


def _payload_files(config: Any, prefix: str) -> set[str]:
    """Return the files of raw tensors that a listing names; refuse a pickled one."""
    files = set()
    for name, payload in config["config"].items():
        file = str(payload["path_name"])
        if payload["use_pickle"] is not False or not file.removeprefix(prefix).isdigit():
            raise Refused(f"{str(name)[:60]!r} is stored as a pickle")
        files.add(file)
    return files


def _batch_sizes(program: torch.export.ExportedProgram) -> BatchSizes:
    """Return how many images the program takes: one number if the export fixed it, or the bounds of its dimension."""
    name = program.graph_signature.user_inputs[0]
    first = next(node for node in program.graph.nodes if node.name == name).meta["val"].shape[0]
    if isinstance(first, int):
        return BatchSizes(first, first)
    bounds = program.range_constraints.get(first.node.expr)
    if bounds is None:
        return BatchSizes()
    return BatchSizes(max(1, int(bounds.lower)), int(bounds.upper) if bounds.upper < UNBOUNDED else None)


def is_exported(model: ModelReference) -> bool:
    """Return whether an archive holds a program of torch.export."""
    return bool(model.entries & {"archive_format", "serialized_exported_program.json"})


FORMAT = ModelFormat(
    name="exported-program",
    summary="a torch.export program",
    example="model.pt2",
    recognises=is_exported,
    open=lambda model: open_exported(model.path, choose_device(model.device)),
    suffixes=(".pt2",),
    order=30,
)
