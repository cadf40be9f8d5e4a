"""TorchScript files that act on the machine when torch opens them: none does when Recollect opens it."""

import pickle
import stat
import struct
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import pytest
import torch

from recollect import InputError
from recollect.files.limits import MODEL_CODE, MODEL_GROWTH
from recollect.models import open_model
from recollect.models.formats.torchscript import check_compiled
from recollect.models.refusals import Refused
from recollect.models.safety.torchscript_archive import clean_copy
from tests.models.making import images, script, tiny
from tests.models.safety.attacks import (
    ACTS,
    SOURCE,
    WRITES,
    before_first_statement,
    honest_entries,
    with_line,
    write,
)

Change = Callable[[dict[str, bytes]], None]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The entries of an honest file."""
    return honest_entries(tmp_path_factory.mktemp("honest"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder in which a written file is seen, with a secret to read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_bytes(bytes(range(64)))
    return tmp_path


def opened_by_torch(path: Path) -> None:
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        torch.jit.load(path)(images())


def refused(path: Path, folder: Path, match: str | None = None) -> None:
    """Refused in one line without control characters, and the folder holds what it held."""
    before = {file: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    with pytest.raises(InputError, match=match) as error:
        open_model(path, device="cpu")
    assert str(error.value).isprintable()
    assert {file: file.read_bytes() for file in folder.iterdir() if file.is_file()} == before


@pytest.mark.parametrize("name", WRITES)
def test_code_that_writes_a_file(folder: Path, archive: dict[str, bytes], name: str) -> None:
    path = write(with_line(archive, WRITES[name]), folder / "evil.pt")
    refused(path, folder, "Nothing of it was run")
    secret = (folder / "secret").read_bytes()
    opened_by_torch(path)
    assert (folder / "mark").exists() or (folder / "secret").read_bytes() != secret  # the attack is real


@pytest.mark.parametrize("name", ACTS)
def test_code_that_acts_otherwise(folder: Path, archive: dict[str, bytes], name: str) -> None:
    refused(write(with_line(archive, ACTS[name]), folder / "evil.pt"), folder, "Nothing of it was run")


def test_a_printing_model_does_not_reach_the_terminal(
    folder: Path, archive: dict[str, bytes], capfd: pytest.CaptureFixture[str]
) -> None:
    path = write(with_line(archive, ACTS["print"]), folder / "evil.pt")
    refused(path, folder)
    assert capfd.readouterr().out == ""
    opened_by_torch(path)
    assert "\033[2J" in capfd.readouterr().out  # the attack is real


def replaced(old: bytes, new: bytes, entry: str = SOURCE) -> Change:
    def change(entries: dict[str, bytes]) -> None:
        assert old in entries[entry]
        entries[entry] = entries[entry].replace(old, new)

    return change


def added(entry: str, content: bytes) -> Change:
    return lambda entries: entries.update({entry: content})


def appended(content: bytes) -> Change:
    return lambda entries: entries.update({SOURCE: entries[SOURCE] + content})


def with_object(declared: bytes, value: bytes) -> Change:
    """Give the model a field of some type, and a value; torch reads fields of an object without checking its class."""

    def change(entries: dict[str, bytes]) -> None:
        field = b"  inner : " + declared + b"\n"
        entries[SOURCE] = CLASSES + entries[SOURCE].replace(FORWARD, field + FORWARD)
        first = b"X\x08\x00\x00\x00training"
        entries["archive/data.pkl"] = entries["archive/data.pkl"].replace(
            first, b"X\x05\x00\x00\x00inner" + value + first
        )

    return change


FORWARD = b"  def forward"
CLASSES = b"class Small(Module):\n  a : int\nclass Large(Module):\n  a : int\n  b : int\n"
DOUBLED = b'  y = "' + b"a" * 16 + b'"\n' + b"  y = torch.add(y, y)\n" * 20
MANY_TEXTS = b"".join(b"def f%d() -> str:\n%s  return y\n" % (number, DOUBLED) for number in range(9))
SMALL = b"c__torch__\nSmall\n)\x81}(X\x01\x00\x00\x00aK\x01ub"
TAGGED = b"ctorch.jit._pickle\nrestore_type_tag\n](" + SMALL + b"eX\x15\x00\x00\x00List[__torch__.Large]\x86R"
EVIL = b'def evil(x: Tensor) -> Tensor:\n  torch.save(x, "mark")\n  return x\n'
SETSTATE = b"  def __setstate__(self: __torch__.Scaled, s: Dict[str, Tensor]) -> NoneType:\n    return None\n"
GETSTATE = SETSTATE.replace(b"__setstate__", b"__getstate__")
HOOK = (
    b'  def hook(self: __torch__.Scaled, y: Tuple[Tensor]) -> NoneType:\n    torch.save(y, "mark")\n    return None\n'
)
DEEP = b"    y = " + b"(" * 5000 + b"x" + b")" * 5000 + b"\n    weight = self.weight"
CHAIN = b"    y = x" + b"[0]" * 20_000 + b"\n    weight = self.weight"
MINUS = b"    y = " + b"-" * 100_000 + b"1\n    weight = self.weight"
FIRST = b"    weight = self.weight"
ARCHIVES: dict[str, Change] = {
    "runs on loading": replaced(FORWARD, SETSTATE + FORWARD),
    "runs on saving": replaced(FORWARD, GETSTATE + FORWARD),
    "a hook": replaced(FORWARD, b'  __forward_pre_hooks__ = ["hook", ]\n' + HOOK + FORWARD),
    "a hook that is missing": replaced(FORWARD, b'  __forward_hooks__ = ["absent", ]\n' + FORWARD),
    "a constant": replaced(FORWARD, b'  c : Final[str] = torch.save([1], "mark")\n' + FORWARD),
    "a default argument": replaced(b"x: Tensor)", b'x: Tensor, y: str=torch.save([1], "mark"))'),
    "a type": replaced(b"x: Tensor)", b"x: __torch__.torch.classes.profiler._RecordFunction)"),
    "a field of a C++ class": replaced(FORWARD, b"  c : __torch__.torch.classes.rnn.CellParamsBase\n" + FORWARD),
    "a field that lends a name": replaced(FORWARD, b"  save : Tensor\n" + FORWARD),
    "a method that lends a name": replaced(
        FORWARD, b"  def save(self: __torch__.Scaled) -> int:\n    return 1\n" + FORWARD
    ),
    "texts that double in many functions": lambda entries: entries.update({SOURCE: entries[SOURCE] + MANY_TEXTS}),
    "an object of another class": with_object(b"__torch__.Large", SMALL),
    "an object in the place of anything": with_object(b"Any", SMALL),
    "an object in a list": with_object(b"List[__torch__.Large]", TAGGED),
    "an object in a tuple": with_object(b"Tuple[__torch__.Large]", SMALL + b"\x85"),
    "an object among constants": added("archive/constants.pkl", b"\x80\x02c__torch__\nScaled\n)\x81}b\x85."),
    "a class defined twice": appended(b"class Scaled(Module):\n  weight : int\n"),
    "a field declared twice": replaced(FORWARD, b"  weight : int\n" + FORWARD),
    "no forward": replaced(b"def forward", b"def backwards"),
    "a base class": replaced(b"class Scaled(Module)", b"class Scaled(torch.save)"),
    "a metaclass": replaced(b"class Scaled(Module)", b"class Scaled(Module, metaclass=Module)"),
    "a second function": appended(EVIL),
    "a statement of the module": appended(b'torch.save([1], "mark")\n'),
    "a C++ class defined anew": added("archive/code/__torch__/torch/classes/profiler.py", EVIL),
    "another module": added("archive/code/__torch__/other.py", EVIL),
    "code of another case": added("archive/CODE/__torch__/other.py", EVIL),
    "a second source of another case": added("archive/code/__TORCH__.py", EVIL),
    "code outside its folder": added("archive/code/../__torch__.py", EVIL),
    "code beside torch's": added("archive/code/other.py", EVIL),
    "the format of before torch 1.4": added("archive/model.json", b"{}"),
    "not UTF-8": replaced(FIRST, b'    y = "\xff\xfe"\n' + FIRST),
    "letters that fold to ASCII": replaced(FIRST, '    torch.\u017fave(x, "mark")\n'.encode() + FIRST),
    "UTF-7 by a cookie": lambda entries: entries.update({SOURCE: b"# coding: utf-7\n" + entries[SOURCE] + b"+AAo-"}),
    "a byte order mark": lambda entries: entries.update({SOURCE: b"\xef\xbb\xbf" + entries[SOURCE]}),
    "a null byte": replaced(FIRST, b'    y = 1\x00\n    torch.save(x, "mark")\n' + FIRST),
    "a form feed": replaced(FIRST, b"\x0c" + FIRST),
    "a carriage return": replaced(FIRST, b'    y = 1 # \r    torch.save(x, "mark")\n' + FIRST),
    "deep brackets": replaced(FIRST, DEEP),
    "a long chain": replaced(FIRST, CHAIN),
    "many signs": replaced(FIRST, MINUS),
    "too much code": appended(b"#" * MODEL_CODE.default),
    "a pickle of Python": added("archive/data.pkl", pickle.dumps(print, 2)),
    "a C++ object": replaced(b"c__torch__\nScaled\n", b"c__torch__.torch.classes.quantized\nX\n", "archive/data.pkl"),
    "a reference to another process": replaced(
        b"c__torch__\nScaled\n", b"ctorch.distributed.rpc\nrref\n", "archive/data.pkl"
    ),
    "a quantized tensor": replaced(b"_rebuild_tensor_v2", b"_rebuild_qtensor", "archive/data.pkl"),
    "a number that calls": replaced(b"c__torch__\nScaled\n", b"K\x00", "archive/data.pkl"),
    "more numbers than bytes": replaced(b"K\x04", b"K\xff", "archive/data.pkl"),
    "a view beyond its numbers": replaced(b"(K\x04t", b"(K\xfft", "archive/data.pkl"),
    "an offset beyond its numbers": replaced(b"K\x00(K", b"K\x02(K", "archive/data.pkl"),
    "a far memo": replaced(b"q\x00", b"r" + struct.pack("<I", 2**32 - 1), "archive/data.pkl"),
    "deep values": added("archive/constants.pkl", b"\x80\x02)" + b"\x85" * 1_000_000 + b"."),
    "a list that holds itself": added("archive/constants.pkl", b"\x80\x02]q\x00h\x00a\x85."),
    "a list that is filled twice": added("archive/constants.pkl", b"\x80\x02](K\x01e(K\x02e\x85."),
    "an escape in a value": replaced(b"training", b"tra\x1bning", "archive/data.pkl"),
    "constants of another kind": added("archive/constants.pkl", pickle.dumps([b"a"], 4)),
    "no values": lambda entries: entries.__delitem__("archive/data.pkl"),
    "another protocol": replaced(b"\x80\x02", b"\x80\x1b", "archive/data.pkl"),
    "a strange version": added("archive/version", b"../../x"),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_archives_that_hide_something(folder: Path, archive: dict[str, bytes], name: str) -> None:
    entries = dict(archive)
    ARCHIVES[name](entries)
    refused(write(entries, folder / "evil.pt"), folder, "Nothing of it was run")


@pytest.mark.parametrize("name", ["a hook", "a second function"])
def test_operators_that_torch_found_are_checked_again(folder: Path, archive: dict[str, bytes], name: str) -> None:
    """The second check holds where the first one would have missed something."""
    entries = dict(archive)
    ARCHIVES[name](entries)
    entries[SOURCE] = entries[SOURCE].replace(
        FIRST, b"    z = __torch__.evil(x)\n" + FIRST if name != "a hook" else FIRST
    )
    unit = torch._C.CompilationUnit()
    load: Callable[..., object] = torch._C.import_ir_module_from_buffer
    load(unit, write(entries, folder / "evil.pt").read_bytes(), torch.device("cpu"), {}, False)
    with pytest.raises(Refused, match="aten::save"):
        check_compiled(unit)
    assert not (folder / "mark").exists()


def test_an_object_of_the_declared_class_opens(folder: Path, archive: dict[str, bytes]) -> None:
    for declared in (b"__torch__.Small", b"Optional[__torch__.Small]"):
        entries = dict(archive)
        with_object(declared, SMALL)(entries)
        model = open_model(write(entries, folder / "m.pt"), device="cpu")
        assert torch.equal(model(images()), images() * 0.5)


def test_messages_and_sums_of_constants_are_short(folder: Path, archive: dict[str, bytes]) -> None:
    """A long chain of sums is no text that grows."""
    lines = "y = self.weight\n" + "\n".join(["y = torch.add(y, self.weight)"] * 500)
    path = write(with_line(archive, lines + "\nx = torch.add(x, torch.mean(y))"), folder / "m.pt")
    assert torch.allclose(open_model(path, device="cpu")(images()), (images() + 501 * 0.5) * 0.5)


def test_a_tensor_larger_than_its_bytes_is_a_real_attack(folder: Path, archive: dict[str, bytes]) -> None:
    entries = dict(archive)
    ARCHIVES["more numbers than bytes"](entries)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.jit.load(write(entries, folder / "evil.pt"))
    assert model.weight.numel() == 255  # four numbers were saved; the others are memory of this process


def test_entries_that_a_model_does_not_need_are_not_opened(folder: Path, archive: dict[str, bytes]) -> None:
    entries = dict(archive)
    entries["archive/bytecode.pkl"] = pickle.dumps(print)
    entries["archive/extra/notes.py"] = EVIL
    entries["archive/../../mark"] = b"traversal"
    entries["/mark"] = b"absolute"
    entries["other/code/__torch__.py"] = EVIL
    entries["archive/code/__torch__.py.debug_pkl"] = pickle.dumps(print)
    entries["archive/traced_inputs.pkl"] = pickle.dumps(print)
    path = write(entries, folder / "m.pt")
    assert torch.equal(open_model(path, device="cpu")(images()), images() * 0.5)
    assert {file.name for file in folder.iterdir()} == {"m.pt", "secret"}


def test_two_entries_of_one_name(folder: Path, archive: dict[str, bytes]) -> None:
    evil = before_first_statement(archive[SOURCE], WRITES["plain"])
    for name in (SOURCE, SOURCE.replace("archive", "ARCHIVE")):
        path = write(archive, folder / "evil.pt")
        with zipfile.ZipFile(path, "a") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # zipfile warns of what the test is about
            file.writestr(name, evil)
        refused(path, folder, "two entries")


def test_a_symbolic_link_is_not_followed(folder: Path, archive: dict[str, bytes]) -> None:
    entries = dict(archive)
    target = entries.pop("archive/data/0")
    path = write(entries, folder / "evil.pt")
    link = zipfile.ZipInfo("archive/data/0")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(link, b"secret")
    assert len(target) > len(b"secret")
    refused(path, folder, "more numbers than the file holds")


def test_archives_that_unfold_to_gigabytes(folder: Path, archive: dict[str, bytes]) -> None:
    path = write(archive, folder / "evil.pt")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file, file.open("archive/data/1", "w") as entry:
        for _ in range(MODEL_GROWTH.default // 2**24 + 1):
            entry.write(bytes(2**24))
    assert path.stat().st_size < 2**20
    refused(path, folder, "The limit is")


def test_packed_archives_open(folder: Path, archive: dict[str, bytes]) -> None:
    path = write(archive, folder / "m.pt", zipfile.ZIP_DEFLATED)
    assert torch.equal(open_model(path, device="cpu")(images()), images() * 0.5)
    refused(write(archive, folder / "evil.pt", zipfile.ZIP_BZIP2), folder, "packed in a way")


def test_a_cut_file_is_refused(folder: Path) -> None:
    whole = script(tiny(), folder / "m.pt").read_bytes()
    for length in range(0, len(whole), len(whole) // 20):
        (folder / "cut.pt").write_bytes(whole[:length])
        with pytest.raises(InputError):
            open_model(folder / "cut.pt", device="cpu")


def test_a_file_with_changed_bytes_computes_or_is_refused(folder: Path) -> None:
    whole = script(tiny(), folder / "m.pt").read_bytes()
    generator = torch.Generator().manual_seed(0)
    for at in torch.randint(len(whole), (60,), generator=generator).tolist():
        changed = bytearray(whole)
        changed[at] ^= 1 + at % 255
        (folder / "changed.pt").write_bytes(bytes(changed))
        with suppress(InputError):
            open_model(folder / "changed.pt", device="cpu")
    assert {file.name for file in folder.iterdir()} == {"m.pt", "changed.pt", "secret"}


def test_what_torch_writes_is_what_was_read(folder: Path, archive: dict[str, bytes]) -> None:
    """Comments and type comments, which torch's parser may read, do not reach it."""
    entries = dict(archive)
    entries[SOURCE] = entries[SOURCE].replace(FIRST, b"    # type: () -> int\n" + FIRST + b" # type: int", 1)
    path = write(entries, folder / "m.pt")
    assert torch.equal(open_model(path, device="cpu")(images()), images() * 0.5)
    with zipfile.ZipFile(BytesIO(clean_copy(path))) as file:
        assert b"type:" not in file.read(SOURCE)
