"""Merge the records of a run on another machine into those of this repository.

    python benchmarks/merge_results.py RUN/full results/paper/full

RUN is the folder that `recollect paper run --results RUN` wrote there. A record replaces the one of the same cell.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from recollect.paper.record_file import RecordFile
from recollect.paper.store import RECORDS, Store


def main(source: str, target: str) -> None:
    """Write each file whole: a merge that is killed can be started again."""
    Store(source).pack()
    for path in sorted((Path(source) / RECORDS).glob("*.jsonl")):
        new, there = RecordFile.read(path), Path(target) / RECORDS / path.name
        merged = RecordFile.read(there).with_records(new.records.values())
        RecordFile(new.training or merged.training, merged.records).write(there)
        print(f"{path.name}: {len(new.records)} records")
    for path in sorted((Path(source) / "facts").glob("*.json")):
        (Path(target) / "facts").mkdir(parents=True, exist_ok=True)
        shutil.copy(path, Path(target) / "facts" / path.name)
        print(path.name)


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) == 3 else sys.exit(__doc__)
