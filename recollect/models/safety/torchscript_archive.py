"""A clean copy of a TorchScript archive: checked values, sources written anew, and no other entry."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path

from recollect.files.archives import BrokenZip, check_growth, open_zip, read_entry, unpacked_size
from recollect.files.limits import MODEL_CODE, MODEL_LISTING
from recollect.models.refusals import Refused
from recollect.models.safety.torchscript_grammar import Definitions, collect_definitions, parse_source, rewrite_source
from recollect.models.safety.torchscript_values import check_values

PICKLES = ("constants", "data")
SOURCE = re.compile(r"code/(__torch__(?:/[A-Za-z_]\w*)*)\.py", re.ASCII)
TENSOR = re.compile(r"(constants|data)/\d+", re.ASCII)
FACTS = {"version": re.compile(rb"\d{1,3}\n?"), ".data/version": re.compile(rb"\d{1,3}\n?")}
FACTS |= {"byteorder": re.compile(rb"little|big")}
CUSTOM_CLASSES = "__torch__.torch.classes"  # torch searches for C++ classes under this name first
KINDS_OF_PACKING = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def clean_copy(path: Path) -> bytes:
    """Copy what a TorchScript model needs to a new archive, or refuse."""
    try:
        with open_zip(path, MODEL_LISTING) as archive:
            entries = _needed_entries(archive)
            _check_sizes(entries, path)
            contents = {name: read_entry(archive, entry) for name, entry in entries.items()}
    except BrokenZip as error:
        raise Refused(f"it is a broken zip archive ({error})") from None
    return _write(_checked(contents))


def _needed_entries(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Find the entries that torch reads, by their names inside the archive's folder."""
    folder = archive.infolist()[0].filename.partition("/")[0] + "/" if archive.infolist() else ""
    entries: dict[str, zipfile.ZipInfo] = {}
    seen = set()
    for entry in archive.infolist():
        name = entry.filename.removeprefix(folder)
        if entry.filename.lower() in seen:  # torch finds entries whatever their case
            raise Refused(f"it holds two entries named {name[:60]!r}")
        seen.add(entry.filename.lower())
        if entry.filename.startswith(folder) and _is_needed(name):
            if entry.compress_type not in KINDS_OF_PACKING or entry.flag_bits & 1:
                raise Refused(f"its entry {name!r} is packed in a way that torch does not write")
            entries[name] = entry
    return entries


def _is_needed(name: str) -> bool:
    lowered = name.lower()
    if lowered == "model.json":
        raise Refused("it is in the TorchScript format of before torch 1.4; save it with a newer torch")
    if lowered.startswith("code/") and not lowered.endswith((".debug_pkl", "/")):
        source = SOURCE.fullmatch(name)
        if source is None or _module(source).startswith(CUSTOM_CLASSES):
            raise Refused(f"it holds code in {name[:80]!r}, where torch does not write any")
        return True
    return name in FACTS or name in (f"{pickle}.pkl" for pickle in PICKLES) or bool(TENSOR.fullmatch(name))


def _module(source: re.Match[str]) -> str:
    return source[1].replace("/", ".")


def _check_sizes(entries: Mapping[str, zipfile.ZipInfo], path: Path) -> None:
    check_growth(entries.values(), path)
    source = unpacked_size(entry for name, entry in entries.items() if name.startswith("code/"))
    MODEL_CODE.check(source, f"It holds {source:,} bytes of TorchScript code.")


def _checked(contents: dict[str, bytes]) -> dict[str, bytes]:
    """Check every entry, and rewrite the sources."""
    _check_facts(contents)
    modules = {name: _module(source) for name in contents if (source := SOURCE.fullmatch(name))}
    trees = {module: parse_source(contents[name], name) for name, module in modules.items()}
    definitions = collect_definitions(trees)
    for pickle in PICKLES:
        _check_pickle(pickle, contents, definitions)
    rewritten = {name: rewrite_source(trees[module], definitions, name) for name, module in modules.items()}
    return contents | rewritten


def _check_facts(contents: Mapping[str, bytes]) -> None:
    for name, fact in FACTS.items():
        if name in contents and not fact.fullmatch(contents[name]):
            raise Refused(f"its entry {name!r} is not what torch writes")


def _check_pickle(pickle: str, contents: Mapping[str, bytes], definitions: Definitions) -> None:
    if f"{pickle}.pkl" not in contents:
        raise Refused(f"it has no {pickle}.pkl")
    prefix = f"{pickle}/"
    sizes = {name.removeprefix(prefix): len(data) for name, data in contents.items() if name.startswith(prefix)}
    check_values(contents[f"{pickle}.pkl"], sizes, definitions)


def _write(contents: Mapping[str, bytes]) -> bytes:
    copy = io.BytesIO()
    with zipfile.ZipFile(copy, "w", zipfile.ZIP_STORED) as archive:
        for name, content in contents.items():
            archive.writestr(f"archive/{name}", content)
    return copy.getvalue()
