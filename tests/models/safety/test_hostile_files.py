"""No file runs code when it is opened: each of these files would create another, and none does."""

import json
import pickle
import re
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from recollect import InputError
from recollect.models import open_model
from recollect.models.refusals import Refused
from recollect.models.safety.exported_checks import check_expression, check_operator
from tests.models.making import export, images, proven, rewrite, saved, script, tiny, touch

PROGRAM, WEIGHTS = "models/model.json", "data/weights/model_weights_config.json"
CONSTANTS = "data/constants/model_constants_config.json"


def refused(path: Path, mark: Path, match: str | None = None) -> None:
    """Refused as a model and as weights, and the mark was never made."""
    with pytest.raises(InputError, match=match):
        open_model(path)
    with pytest.raises(InputError):
        open_model("tests.models.making:tiny", weights=path)
    assert not mark.exists()


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".ckpt", ".pkl", ".ts", ".bin", ".pt2", ".onnx", ".safetensors"])
@pytest.mark.parametrize("how", ["pickle", "torch", "legacy"])
def test_a_malicious_pickle_under_any_name(tmp_path: Path, suffix: str, how: str) -> None:
    mark, path = tmp_path / "mark", tmp_path / f"evil{suffix}"
    content = {"weight": torch.ones(2), "more": proven(mark)}
    if how == "pickle":
        path.write_bytes(pickle.dumps(content))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=how == "torch")
    refused(path, mark)


def test_the_way_round_is_spelled_out_and_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save(tiny(), "whole.pth")  # the model itself, as many people save it
    with pytest.raises(InputError, match=r"tests\.models\.making\.Tiny") as error:
        open_model("whole.pth")
    lines = [line.strip() for line in str(error.value).split("\n\n")[1].splitlines()]
    exec("\n".join(lines), {})  # the lines that the user is told to run
    opened = open_model("tests.models.making:Tiny", weights="whole.safetensors")
    assert torch.equal(opened(images()), tiny()(images()))


def test_a_widened_list_of_torch_does_not_widen_ours(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    torch.save({"weight": proven(mark)}, tmp_path / "evil.pth")
    with torch.serialization.safe_globals([touch]):
        refused(tmp_path / "evil.pth", mark, "needs pickle")
        torch.load(tmp_path / "evil.pth", weights_only=True)
    assert mark.exists()  # torch's own check lets it through then


def test_the_second_door_holds_without_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = tmp_path / "mark"
    torch.save({"weight": proven(mark)}, tmp_path / "evil.pth")
    monkeypatch.setattr("recollect.models.formats.weights._ADMITTED", re.compile(".*"))
    refused(tmp_path / "evil.pth", mark, "reader for weights alone refused it")


def test_pickles_in_other_archives(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    evil = proven(mark)
    np.savez(tmp_path / "evil.npz", weight=np.array([evil], dtype=object))
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr("a/data.pkl", pickle.dumps(evil))
        archive.writestr("a/version", "3")
    with zipfile.ZipFile(tmp_path / "script.pt", "w") as archive:
        for name in ("data.pkl", "constants.pkl", "code/__torch__.py"):
            archive.writestr(f"a/{name}", pickle.dumps(evil))
        archive.writestr("a/version", "3")
    for name in ("evil.npz", "evil.zip", "script.pt"):
        refused(tmp_path / name, mark)


class RunsOnLoading(nn.Module):
    @torch.jit.export
    def __getstate__(self) -> tuple[bool]:
        return (self.training,)

    @torch.jit.export
    def __setstate__(self, state: tuple[bool]) -> None:
        print("run on loading")  # noqa: T201
        self.training = state[0]

    def forward(self, x: Tensor) -> Tensor:
        return x


class WritesWhenRun(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        torch.save(x, "mark")
        return x


class MapsAFile(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.from_file("mark", True, 1)


@pytest.mark.parametrize("model", [WritesWhenRun, MapsAFile])
def test_torchscript_that_reaches_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: type[nn.Module]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = script(model(), tmp_path / "evil.pt")
    refused(path, tmp_path / "mark", "Nothing of it was run")


def test_torchscript_that_runs_on_loading(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = script(RunsOnLoading(), tmp_path / "evil.pt")
    refused(path, tmp_path / "mark", "runs when the file is loaded")
    assert "run on loading" not in capfd.readouterr().out
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.load(path)
    assert "run on loading" in capfd.readouterr().out  # what torch's own loader does


def first_node(change: Callable[[dict[str, Any]], None]) -> Callable[[Any], None]:
    return lambda program: change(program["graph_module"]["graph"]["nodes"][0])


def shaped(text: str) -> Callable[[Any], None]:
    def change(program: Any) -> None:
        values = program["graph_module"]["graph"]["tensor_values"]
        values["x"]["sizes"][0] = {"as_expr": {"expr_str": text, "hint": None}}

    return change


def structured(text: str) -> Callable[[Any], None]:
    return lambda program: program["graph_module"]["module_call_graph"][0]["signature"].update(out_spec=text)


def pickled(path_name: str) -> Callable[[Any], None]:
    def change(config: Any) -> None:
        payload = {"path_name": path_name, "is_param": True, "use_pickle": True, "tensor_meta": None}
        config["config"]["inside.weight"] = payload

    return change


def attacks(mark: Path) -> dict[str, dict[str, Any]]:
    evil = proven(mark)
    code = f"__import__('pathlib').Path({str(mark)!r}).touch()"
    weight, opaque = "data/weights/weight_0", "data/constants/opaque_obj_0"
    signature = {"type": "builtins.dict", "context": '{"__enum__": true, "fqn": "antigravity:x"}', "children_spec": []}
    return {
        "weights": {WEIGHTS: pickled("weight_0"), weight: saved(evil)},
        "constants": {CONSTANTS: pickled("opaque_obj_0"), opaque: pickle.dumps(evil)},
        "shape": {PROGRAM: shaped(code)},
        "operator": {PROGRAM: first_node(lambda n: n.update(target="torch.os.system"))},
        "file operator": {PROGRAM: first_node(lambda n: n.update(target="torch.ops.aten.from_file.default"))},
        "argument name": {PROGRAM: first_node(lambda n: n["inputs"][0].update(name=f"x={code}, y"))},
        "node name": {PROGRAM: first_node(lambda n: n.update(name=f"x\n{code}"))},
        "structure": {PROGRAM: structured(json.dumps([1, signature]))},
        "compiled code": {"data/aotinductor/model/evil.so": b"\x7fELF"},
        "second program": {"models/other.json": b"{}"},
    }


NAMES = ["weights", "constants", "shape", "operator", "file operator", "argument name", "node name", "structure"]
NAMES += ["compiled code", "second program"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return export(tiny(), tmp_path_factory.mktemp("program") / "m.pt2").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_exported_programs_that_would_run_code(tmp_path: Path, program: bytes, name: str) -> None:
    mark, path = tmp_path / "mark", tmp_path / "evil.pt2"
    path.write_bytes(program)
    refused(rewrite(path, attacks(mark)[name]), mark, "is refused")


@pytest.mark.parametrize("name", ["weights", "shape"])
def test_the_attacks_are_real(tmp_path: Path, program: bytes, name: str) -> None:
    """What torch's own loader does with the same files."""
    mark, path = tmp_path / "mark", tmp_path / "evil.pt2"
    path.write_bytes(program)
    rewrite(path, attacks(mark)[name])
    with suppress(Exception):  # it fails after it has run the code
        torch.export.load(path)
    assert mark.exists()


def test_what_is_not_needed_is_dropped_and_the_rest_still_runs(tmp_path: Path, program: bytes) -> None:
    mark, path = tmp_path / "mark", tmp_path / "m.pt2"
    path.write_bytes(program)
    code = f"__import__('pathlib').Path({str(mark)!r}).touch()"
    rewrite(
        path,
        {
            "data/sample_inputs/model.pt": saved(((images(2), proven(mark)), {})),
            "extra/notes.txt": b"hello",
            PROGRAM: lambda p: p.update(guards_code=[code]),
        },
    )
    assert torch.allclose(open_model(path)(images()), tiny()(images()), atol=1e-6)
    assert not mark.exists()


def test_expressions_and_operators() -> None:
    for fine in ("2*s0 + 1", "Symbol('s77', positive=True, integer=True)", "Max(1, FloorDiv(s0, 2))", "-s0 >= 3"):
        check_expression(fine)
    for foul in (
        "s0.real",
        "open('x')",
        "Symbol('__import__')",
        "[1][0]",
        "s0 if s1 else 2",
        "lambda: 1",
        "x\ny",
        "'a'",
    ):
        with pytest.raises(Refused):
            check_expression(foul)
    for fine in ("torch.ops.aten.conv2d.default", "torch.ops.aten.gelu.default", "_operator.getitem"):
        check_operator(fine)
    foul_operators = ("torch.load", "torch.ops.aten.save.default", "_operator.methodcaller", "torch.ops.load_library")
    for foul in (*foul_operators, "torch.ops.aten.conv2d.__class__", "math.fsum", "print"):
        with pytest.raises(Refused):
            check_operator(foul)
