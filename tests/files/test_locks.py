import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from recollect.errors import InputError
from recollect.files.locks import LOCK, UNFINISHED, lock_folder
from recollect.records import write_json

HOLD = """
import sys, time
from recollect.files.locks import lock_folder
with lock_folder(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


def hold(folder: Path) -> subprocess.Popen[str]:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def enter(folder: Path) -> None:
    with lock_folder(folder):
        pass


def test_a_second_process_is_told_who_holds_a_folder_and_a_dead_one_holds_none(tmp_path: Path) -> None:
    holder = hold(tmp_path)
    try:
        with pytest.raises(InputError, match=re.escape(f"{tmp_path} is in use by process {holder.pid} on ")):
            enter(tmp_path)
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
    assert (tmp_path / LOCK).exists()  # the killed process could not remove it
    enter(tmp_path)
    assert not (tmp_path / LOCK).exists()


def test_one_process_locks_a_folder_once(tmp_path: Path) -> None:
    with lock_folder(tmp_path):
        with pytest.raises(InputError, match=f"is in use by process {os.getpid()}"):
            enter(tmp_path)
        enter(tmp_path / "below")
    enter(tmp_path)


def test_a_lock_file_that_says_nothing_does_not_hide_that_it_is_held(tmp_path: Path) -> None:
    with lock_folder(tmp_path):
        (tmp_path / LOCK).write_text("")
        with pytest.raises(InputError, match="is in use by another process"):
            enter(tmp_path)


def test_unfinished_files_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    (tmp_path / "cells").mkdir()
    left = tmp_path / "cells" / f".a.json.x1{UNFINISHED}"
    left.write_text("half")
    (tmp_path / "cells" / ".mine").write_text("kept")
    enter(tmp_path)
    assert [path.name for path in (tmp_path / "cells").iterdir()] == [".mine"]


def test_a_folder_that_is_removed_or_replaced_is_noticed_at_the_next_write(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for replaced in (False, True):
        with lock_folder(out):
            write_json(out / "cells" / "a.json", 1)
            shutil.rmtree(out)
            if replaced:
                out.mkdir()
                (out / LOCK).write_text("")
            with pytest.raises(InputError, match=re.escape(f"The folder {out} was removed or replaced")):
                write_json(out / "cells" / "b.json", 1)
            assert not (out / "cells").exists()
            write_json(tmp_path / "elsewhere.json", 1)
        shutil.rmtree(out, ignore_errors=True)


def test_a_lock_leaves_nothing_behind(tmp_path: Path) -> None:
    enter(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "empty").mkdir()
    enter(tmp_path / "empty")
    assert (tmp_path / "empty").exists()


def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written to"):
        enter(tmp_path / "file" / "below")
