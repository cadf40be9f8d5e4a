import hashlib
from pathlib import Path

import pytest

from recollect import InputError
from recollect.auditing.manifest import MANIFEST, changed_files, read_manifest, renew_hash, write_manifest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cells").mkdir()
    for name in ("audit.json", "report.html", "cells/one.json", "cells/one.npz", "cells/old.json", "note.txt"):
        (tmp_path / name).write_text(name)
    write_manifest(tmp_path, ["one"])
    return tmp_path


def test_the_files_of_the_audit_are_listed_and_no_others(folder: Path) -> None:
    assert list(read_manifest(folder)) == ["audit.json", "report.html", "cells/one.json", "cells/one.npz"]
    assert read_manifest(folder)["audit.json"] == hashlib.sha256(b"audit.json").hexdigest()
    assert list(changed_files(folder)) == []


def test_changed_and_missing_files_are_named(folder: Path) -> None:
    (folder / "audit.json").write_text("audit.jsom")
    (folder / "cells" / "one.npz").unlink()
    assert list(changed_files(folder)) == [
        f"audit.json was changed after it was written: its hash is not the one in {MANIFEST}.",
        f"cells/one.npz is listed in {MANIFEST} and is not there.",
    ]


def test_renewing_one_hash_leaves_the_others(folder: Path) -> None:
    for name in ("audit.json", "report.html"):
        (folder / name).write_text("changed")
    renew_hash(folder, "report.html")
    assert [sentence.split()[0] for sentence in changed_files(folder)] == ["audit.json"]


def test_without_a_list_nothing_is_renewed_and_reading_is_refused(tmp_path: Path) -> None:
    renew_hash(tmp_path, "report.html")
    with pytest.raises(InputError, match="There is no file"):
        read_manifest(tmp_path)
    (tmp_path / MANIFEST).write_text("no hash at all")
    with pytest.raises(InputError, match="cannot be read as a list of hashes"):
        read_manifest(tmp_path)
