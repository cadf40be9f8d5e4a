"""Merge the records of a run on another machine into those of this repository.

    python benchmarks/merge_results.py RUN/full results/paper/full
    python benchmarks/merge_results.py FOLDER results/paper/full --work runs/paper/full

RUN is the folder that `recollect paper run --results RUN` wrote there. FOLDER holds the archives of
`short_jobs.py`. A record replaces the one of the same cell, but none of this version is replaced by one of an earlier
version. A training that was also measured here, with other weights, is left as it is. --work is where pictures go.
"""

from __future__ import annotations

import argparse
import shutil
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from recollect.paper.record_file import RecordFile, cell_name
from recollect.paper.store import RECORDS, Store, is_current
from recollect.record_lines import record_line
from recollect.records import Record, atomically, read_json

ARCHIVE = "records-{}.tgz"
PICTURES = "pictures"
NOT_MERGED = 1  # exit code


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    with unpacked(options.source) as source:
        done = merge(source, options.target)
        for path in sorted((source / PICTURES).glob("*.npz")) if options.work else ():
            print(_copy(path, options.work / PICTURES))
    if not done:
        raise SystemExit(NOT_MERGED)


def merge(source: Path, target: Path, log: Callable[[str], object] = print) -> bool:
    """Merge folders of records, each file as a whole; return whether all files could be merged."""
    Store(source).pack()
    done = True
    for path in sorted((source / RECORDS).glob("*.jsonl")):
        new, there = RecordFile.read(path), target / RECORDS / path.name
        joined = join(new, list(_set_aside(source, path.name)), RecordFile.read(there))
        if joined is None:
            log(f"{path.name}: left as it is, for it was measured here with other weights")
            done = False
        else:
            joined.write(there)
            log(f"{path.name}: {len(new.records)} records")
    for path in sorted((source / "facts").glob("*.json")):
        if is_current(_provenance(path)) or not is_current(_provenance(target / "facts" / path.name)):
            log(_copy(path, target / "facts"))
    return done


def join(new: RecordFile, set_aside: Iterable[Record], here: RecordFile) -> RecordFile | None:
    """Join the records of a run with those here; None if they are of two trainings.

    What the run had set aside is no conflict: it knew of these records, and measured again.
    """
    gone = {record_line(record) for record in set_aside}
    kept = RecordFile(here.training, {key: r for key, r in here.records.items() if record_line(r) not in gone})
    current = {name for name, record in kept.by_name.items() if is_current(record.provenance)}
    better = [r for r in new.records.values() if is_current(r.provenance) or cell_name(r.cell) not in current]
    training = _newer(new, here)
    joined = _of_one_version(RecordFile(training, kept.with_records(better).records))
    return None if _is_mixed(joined.records.values()) else joined


def _of_one_version(file: RecordFile) -> RecordFile:
    """Leave out what an earlier version measured, if the training is of this one."""
    if not _is_done(file.training):
        return file
    return file.without([key for key, record in file.records.items() if not is_current(record.provenance)])


def _newer(new: RecordFile, here: RecordFile) -> Mapping[str, Any] | None:
    """Return the run's record of the training, unless that did not end or is of an earlier version."""
    return new.training if _is_done(new.training) else here.training or new.training


def _is_done(training: Mapping[str, Any] | None) -> bool:
    """Return whether a training ended, and with this version."""
    return training is not None and training["finished"] and is_current(training.get("provenance", {}))


def _is_mixed(records: Iterable[Record]) -> bool:
    """Return whether records of this version and of one train loss name different weights."""
    weights: dict[object, object] = {}
    for record in records:
        model = record.provenance.get("model")
        if model and is_current(record.provenance) and weights.setdefault(record.cell.get("loss"), model) != model:
            return True
    return False


def _set_aside(source: Path, name: str) -> Iterator[Record]:
    for path in sorted((source / "earlier").glob(f"*/{RECORDS}/{name}")):
        yield from RecordFile.read(path).records.values()


def pack(files: Mapping[Path, Path], out: Path, largest: int) -> list[Path]:
    """Write files, by their names there, into archives of at most `largest` bytes; replace older ones."""
    out.mkdir(parents=True, exist_ok=True)
    before, written = {*out.glob(ARCHIVE.format("*"))}, []
    for number, names in enumerate(_parts(files, largest), 1):
        path = out / ARCHIVE.format(number)
        with atomically(path) as unfinished, tarfile.open(unfinished, "w:gz", compresslevel=6) as archive:
            for name in names:
                archive.add(files[name], name)
        written.append(path)
    for path in before - {*written}:
        path.unlink()
    return written


def _parts(files: Mapping[Path, Path], largest: int) -> Iterator[list[Path]]:
    """Divide files among archives by their sizes, which packing does not increase."""
    part: list[Path] = []
    size = 0
    for name in sorted(files):
        bytes_of_file = files[name].stat().st_size
        if part and size + bytes_of_file > largest:
            yield part
            part, size = [], 0
        part.append(name)
        size += bytes_of_file
    if part:
        yield part


@contextmanager
def unpacked(source: Path) -> Iterator[Path]:
    """Give a folder of records; archives in it are unpacked into a temporary one."""
    archives = sorted(source.glob(ARCHIVE.format("*")))
    if not archives:
        yield source
        return
    with TemporaryDirectory() as folder:
        for path in archives:
            with tarfile.open(path) as archive:
                archive.extractall(folder, filter="data")
        yield Path(folder)


def _provenance(path: Path) -> dict[str, Any]:
    """Read where facts come from; those that are not there are of no version."""
    content = read_json(path) if path.exists() else {"provenance": {"versions": {"recollect": ""}}}
    return dict(content.get("provenance", {}))


def _copy(path: Path, folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, folder / path.name)
    return path.name


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="folder of a scale that was run elsewhere, or of its archives")
    parser.add_argument("target", type=Path, help="folder of the same scale here")
    parser.add_argument("--work", type=Path, help="folder of this scale's pictures here, such as runs/paper/full")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
