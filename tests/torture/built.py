"""Files that hypothesis builds from the grammar of a format: well-formed where mutations seldom are."""

from __future__ import annotations

import io
import json
import pickle
import string
import struct
import zipfile

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st

from tests.torture.mutations import NAMES

SIZES = st.one_of(st.integers(-1, 9), st.sampled_from([2**31, 2**40, 2**63, 10**30]))
DTYPES = st.sampled_from(["F32", "F64", "F16", "BF16", "U8", "I64", "BOOL", "F8_E4M3", "X9", ""])
ALPHABET = string.printable + "\0\x1b\x7f\u00e9\u202e\u6f22\U0001f600"  # all of Unicode takes seconds to tabulate
TEXT = st.one_of(
    st.text(ALPHABET, max_size=12), st.sampled_from(["images", "weight", "format", "__metadata__", *NAMES])
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4)),
    max_leaves=12,
)
ENTRY_NAMES = TEXT.filter(lambda name: name.split("\0")[0])  # zipfile cuts a name there, and fails without one
TENSOR = st.fixed_dictionaries(
    {"dtype": DTYPES, "shape": st.lists(SIZES, max_size=5), "data_offsets": st.lists(SIZES, min_size=2, max_size=2)}
)
PLAIN_PIECES = st.sampled_from(
    [b"(", b"]", b"}", b")", b"N", b"K\x01", b"h\x00", b"q\x00", b"r\xff\xff\xff\x7f", b"u", b"s", b"e", b"a", b"t",
     b"2", b"R", b"b", b"X\x01\x00\x00\x00a", b"cnumpy.core.multiarray\n_reconstruct\n", b"cos\nsystem\n",
     b"cnumpy\ndtype\n", b"\x8e\xff\xff\xff\xff\xff\xff\xff\x7f", b"I9\n", b"\x80\x04",
     b"\x95\x00\x00\x00\x00\x00\x00\x00\xff", b"."]
)  # fmt: skip


@st.composite
def safetensors_files(draw: st.DrawFn) -> bytes:
    header = draw(st.dictionaries(TEXT, st.one_of(TENSOR, TENSOR, JSON), max_size=4))
    text = json.dumps(header).encode()
    length = draw(st.one_of(st.just(len(text)), st.integers(0, 2**64 - 1)))
    return struct.pack("<Q", length) + text + bytes(draw(st.integers(0, 64)))


@st.composite
def npy_files(draw: st.DrawFn) -> bytes:
    kind = draw(st.sampled_from(["|u1", "<f4", ">f8", "|O", "<U9", "|V5", "<M8[s]", "<c8", "|S0", "{}"]))
    shape = tuple(draw(st.lists(SIZES, max_size=5)))
    header = f"{{'descr': {kind!r}, 'fortran_order': {draw(st.booleans())}, 'shape': {shape!r}, }}".encode()
    version = draw(st.sampled_from([b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x00"]))
    length = struct.pack("<H" if version == b"\x01\x00" else "<I", len(header))
    return b"\x93NUMPY" + version + length + header + bytes(draw(st.integers(0, 64)))


@st.composite
def archives(draw: st.DrawFn) -> bytes:
    inside = draw(st.lists(st.tuples(ENTRY_NAMES, st.one_of(npy_files(), st.binary(max_size=40))), max_size=4))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in dict(inside).items():
            archive.writestr(name.encode("utf-8", "replace").decode(), content)
    return buffer.getvalue()


CELLS = st.one_of(st.floats().map(str), st.integers().map(str), TEXT, st.sampled_from(["", '"', "1e400", "9" * 400]))


@st.composite
def tables(draw: st.DrawFn) -> bytes:
    separator = draw(st.sampled_from([",", ";", "\t"]))
    rows = draw(st.lists(st.lists(CELLS, max_size=5).map(separator.join), max_size=6))
    return draw(st.sampled_from(["\n", "\r\n", "\r"])).join(rows).encode("utf-8", "replace")


@st.composite
def plans(draw: st.DrawFn) -> bytes:
    named = draw(st.dictionaries(st.sampled_from(["model", "train", "fail-above", "threshold", "gamma"]), JSON))
    lines = (f"{name} = {json.dumps(value)}" for name, value in named.items())
    return "\n".join(lines).encode()


ENTRIES = st.fixed_dictionaries(
    {"source": st.one_of(TEXT, st.just("images.npy"), st.just("code:os:listdir")), "ids": JSON, "sha256": TEXT}
)
SPLITS = st.fixed_dictionaries({"train": ENTRIES, "control": ENTRIES}).map(lambda data: json.dumps(data).encode())
OPCODES = st.lists(PLAIN_PIECES, max_size=30).map(lambda pieces: b"\x80\x02" + b"".join(pieces) + b".")
PICKLES = st.one_of(OPCODES, JSON.map(pickle.dumps))
DOCUMENTS = JSON.map(lambda data: json.dumps(data).encode())
STRATEGIES = {
    "checkpoint": safetensors_files(),
    "safetensors weights": safetensors_files(),
    "safetensors images": safetensors_files(),
    ".npy": npy_files(),
    ".npz": archives(),
    "state dict .pt": st.one_of(PICKLES, archives()),
    "TorchScript": archives(),
    "torch.export .pt2": archives(),
    "CIFAR-10 pickle": PICKLES,
    "Tiny ImageNet zip": archives(),
    "diffusion prior": DOCUMENTS,
    "record": DOCUMENTS,
    ".csv": tables(),
    ".tsv": tables(),
    "split record": SPLITS,
    "plan": plans(),
    "JSON": st.one_of(DOCUMENTS, st.binary()),
}


def build(name: str, count: int, number: int) -> list[bytes]:
    """Build files of a format from a seed; none of a format without a strategy."""
    if name not in STRATEGIES:
        return []
    made: list[bytes] = []

    @seed(number)
    @settings(
        max_examples=count, database=None, deadline=None, phases=[Phase.generate], verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(STRATEGIES[name])
    def collect(content: bytes) -> None:
        made.append(content)

    collect()
    return made[:count]
