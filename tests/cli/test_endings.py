"""However a command ends, it says so in one sentence, and what it had finished is resumed."""

import csv
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.cli.running import QUICK, TWO_ATTACKS, fill, run
from tests.file_names import original_name

SENTENCE = "recollect: interrupted; finished work is kept, and the same command resumes it."

FAULTY = """
import os
import torch

class Faulty(torch.nn.Module):
    def forward(self, x):
        cells = os.listdir("audit/cells") if os.path.isdir("audit/cells") else []
        if len([name for name in cells if name.endswith(".json")]) == 3 and not os.path.exists("mended"):
            fault()
        print("\\x1b[31mfrom Python")
        os.write(1, b"from below Python\\n")
        return x * 0.5

def fault():
    if os.environ["FAULT"] == "memory":
        return torch.empty(2**60, dtype=torch.uint8)
    if os.environ["FAULT"] == "python":
        raise MemoryError
    raise RuntimeError("the \\x1b[31mpump failed\\nat line 3")
"""
FAULTY_AUDIT = ["audit", "faulty:Faulty", *TWO_ATTACKS[2:]]


def finished(folder: Path) -> set[str]:
    return {path.name for path in (folder / "audit" / "cells").glob("*.json")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "faulty.py").write_text(FAULTY)
    return fill(tmp_path)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("model", r"the model was given 6 images and raised RuntimeError: the \x1b[31mpump failed."),
        ("memory", "the memory does not suffice"),
        ("python", "the memory does not suffice"),
    ],
)
def test_a_model_that_fails_midway_is_named_and_what_was_finished_is_resumed(
    folder: Path, fault: str, words: str
) -> None:
    code, out, err = run(folder, *FAULTY_AUDIT, FAULT=fault)
    last = err.strip().splitlines()[-1]
    assert (code, out) == (1, "")
    assert last.startswith("recollect: ")
    assert words in last
    assert "the same command resumes it" in last
    assert "Traceback" not in err
    assert ("the model is given 1 from here on" in err) == (fault != "model")
    before = finished(folder)
    assert len(before) == 3
    (folder / "mended").touch()
    code, out, err = run(folder, *FAULTY_AUDIT, "--json", FAULT=fault)
    assert code == 0, err
    assert json.loads(out)["format"]  # nothing that the model prints is among it
    assert "from Python" in err
    assert "from below Python" in err
    assert before < finished(folder)


@pytest.mark.parametrize("command", [["--debug", *FAULTY_AUDIT], [*FAULTY_AUDIT, "--debug"]])
def test_the_whole_error_is_shown_if_asked_for(folder: Path, command: list[str]) -> None:
    code, _, err = run(folder, *command, FAULT="model")
    assert code == 1
    assert "Traceback" in err
    assert "in fault" in err
    assert "at line 3" in err
    assert "\x1b[31mpump" not in err
    assert "images and raised RuntimeError" in err.strip().splitlines()[-1]


def test_sigterm_in_the_middle_is_treated_like_ctrl_c(folder: Path) -> None:
    code, out, err = run(folder, *TWO_ATTACKS, SIGNAL_IN_THE_MIDDLE=str(int(signal.SIGTERM)))
    assert (code, out, err.strip().splitlines()[-1]) == (143, "", SENTENCE)
    assert "Traceback" not in err
    before = finished(folder)
    assert len(before) == 3
    assert run(folder, *TWO_ATTACKS)[0] == 0
    assert before < finished(folder)


# Begins as `python -m recollect` does. Each time one of these modules is to be imported, copies of the process are sent
# a signal and go on; after the last one their exit codes and what they said are printed.
SIGNALS_WHILE_IMPORTING = """
import json, os, runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
ended, results = [], os.dup(1)  # commands print elsewhere while a model runs

class Moments:
    @staticmethod
    def find_spec(name, path, target=None):
        if name not in MODULES:
            return None
        for number in (signal.SIGINT, signal.SIGTERM):
            read, write = os.pipe()
            pid = os.fork()
            if not pid:
                os.dup2(write, 2)
                MODULES.clear()
                os.kill(os.getpid(), number)
                return None
            os.close(write)
            said = os.fdopen(read).read()
            ended.append([name, int(number), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said])
        MODULES.remove(name)
        if not MODULES:
            os.write(results, json.dumps(ended).encode())
            os._exit(0)

MODULES = set(sys.argv.pop(1).split(","))
sys.meta_path.insert(0, Moments)
sys.argv[0] = "recollect"
runpy.run_module("recollect", run_name="__main__", alter_sys=True)
"""
IMPORTED = (
    "typer", "rich.console", "numpy", "torch", "torch._C", "torch.nn.modules", "recollect.cli.app", "recollect.images",
    "recollect.methods.blind", "recollect.models.opening", "recollect.auditing",
)  # fmt: skip


def test_a_signal_while_it_is_imported_gives_a_sentence(folder: Path) -> None:
    command = [sys.executable, "-c", SIGNALS_WHILE_IMPORTING, ",".join(IMPORTED), *QUICK]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    ended = json.loads(done.stdout)
    numbers = (signal.SIGINT, signal.SIGTERM)
    expected = [(name, number, 128 + number, f"\n{SENTENCE}\n") for name in IMPORTED for number in numbers]
    assert sorted(map(tuple, ended)) == sorted(expected)


def limited(megabytes: int, *arguments: str, folder: Path) -> tuple[int, str]:
    """Run the command with so much address space."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes * 2**20, megabytes * 2**20))

    done = subprocess.run(
        [sys.executable, "-m", "recollect", *arguments], cwd=folder, capture_output=True, text=True, check=False,
        preexec_fn=limit, env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    return done.returncode, done.stderr


def test_a_limit_of_memory_at_the_start_and_later(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, err = limited(300, *QUICK, folder=folder)  # too little to import torch
    assert (code, err.count("\n")) == (1, 1), err
    assert err.startswith("recollect: it cannot be loaded")
    large = np.lib.format.open_memmap(folder / "train.npy", mode="w+", dtype=np.uint8, shape=(900, 3, 1024, 1024))
    large.flush()  # a hole of 2.8 GB, which takes no room on the disk
    monkeypatch.setenv("RECOLLECT_MAX_IN_MEMORY_BYTES", str(2**40))  # else it stays on disk
    code, err = limited(4000, "data", "show", "train.npy", folder=folder)
    assert (code, err.count("\n")) == (1, 1), err
    assert err.startswith("recollect: the memory does not suffice")


def test_names_of_files_cannot_steer_the_terminal_or_a_spreadsheet(tmp_path: Path) -> None:
    fill(tmp_path)
    names = ["\x1b[31mred.png", "=1+1.png", "-2.png", "@x.png", "'a.png", "plain.png", "tab\t.png"]
    values = np.load(tmp_path / "train.npy")
    (tmp_path / "set").mkdir()
    for name, image in zip(names, np.concatenate([values, values[:1] * 0.5]), strict=True):
        Image.fromarray((image * 255).astype(np.uint8).transpose(1, 2, 0)).save(tmp_path / "set" / name)
    shown = run(tmp_path, "data", "show", "folder:set")
    assert shown[0] == 0
    assert r"\x1b[31mred.png" in shown[1]
    code, out, err = run(tmp_path, *TWO_ATTACKS, "--train", "folder:set")
    assert code == 0, err
    report = (tmp_path / "audit" / "report.html").read_text()
    assert not [text for text in (shown[1], out, err, report) if "\x1b" in text]
    with (tmp_path / "audit" / "images.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["set"] == "train"]
    cells = {row["image"] for row in rows}
    assert not [cell for cell in cells if cell[0] in "=+-@\t\r"]
    assert {original_name(cell[1:] if cell.startswith("'") else cell) for cell in cells} == set(names)


def test_a_warning_is_one_visible_sentence(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    Image.new("L", (4, 4), 9).save(tmp_path / "set" / "a.png")
    (tmp_path / "set" / "\x1b[2Jb.png").write_bytes(b"")
    code, _, err = run(tmp_path, "data", "show", "folder:set?bad=skip")
    assert code == 0
    assert err.startswith("Left out 1 of 2 files")
    assert r"\x1b[2Jb.png" in err
    assert "\x1b" not in err
