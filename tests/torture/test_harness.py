"""The harness itself: it notices what it is there to notice."""

import json
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from recollect.records import read_json, write_sealed
from recollect.training.saved_state import FILE as STATE
from tests.torture.built import STRATEGIES, build
from tests.torture.canonical import canonical, difference, leftovers
from tests.torture.children import Ended
from tests.torture.kills import Interruption, handles_signals
from tests.torture.mutations import MUTATIONS, mutate
from tests.torture.outcome import Outcome, complaint
from tests.torture.records import restart_trainings
from tests.torture.runner import SCENARIOS, SHARES, Draws
from tests.torture.summary import RECORD, page_table, summarize, written_table

# Each line is a task and what the harness must say of it; a process of its own forks them.
TASKS = """
import os, signal, sys, time
from pathlib import Path
from recollect.errors import InputError
from tests.torture.children import Limits, fork
from tests.torture.files import _opening, _problem, _written

def refuse(path): raise InputError("a sentence")
def fail(path): raise KeyError("no sentence")
def crash(path): os.kill(os.getpid(), signal.SIGSEGV)
def spin(path):
    while True: pass
def grow(path): bytearray(900 * 2**20)
def write(path): Path("evil").write_text("x")
def call(path): os.system("true")
for task in (len, refuse, fail, crash, spin, grow, write, call):
    home = Path(sys.argv[1]) / task.__name__
    seconds = 1 if task is spin else 30
    ended = fork(_opening(task, "name", home), home, Limits(2**31, seconds)).wait(60)
    print(task.__name__, "|", _problem(ended) or _written(home, home, {}) if task in (len, refuse) else _problem(ended))
"""


def test_what_opening_a_file_must_not_do_is_noticed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TASKS, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    said = dict(line.split(" | ") for line in ended.stdout.splitlines())
    for harmless in ("len", "refuse"):
        assert said[harmless].startswith("files were written")  # its own stdout and stderr, of which no list was given
    assert said["fail"].startswith("traceback: KeyError")
    assert said["crash"].startswith("ended with -11")
    assert said["spin"].startswith("ended with -24")
    assert said["grow"].startswith("took ")
    assert said["write"].startswith("watched: open")
    assert said["call"].startswith("watched: os.system")


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        (Ended(0, "done", ""), None),
        (Ended(2, "", "recollect: a sentence."), None),
        (Ended(2, "", "usage"), "exit code 2 without a sentence"),
        (Ended(1, "", "Traceback (most recent call last):\nKeyError: 'a'"), "traceback: KeyError: 'a'"),
        (Ended(-11, "", ""), "ended by signal 11"),
        (Ended(7, "", "odd"), "exit code 7: odd"),
        (Ended(0, "", "", hung=True), "hung"),
    ],
)
def test_ends_that_no_user_should_meet_are_named(ended: Ended, words: str | None) -> None:
    assert complaint(ended, (0, 1, 2)) == words


def write_results(folder: Path, mse: float, seconds: float) -> Path:
    folder.mkdir()
    (folder / "cell.json").write_text(json.dumps({"mse": [mse], "seconds": seconds}))
    np.savez(folder / "pictures.npz", images=np.full(3, mse))
    (folder / "report.html").write_text(f"mse {mse} after {seconds} s, 2026-11-18T00:{seconds:.0f}5:58+00:00")
    (folder / "loss.csv").write_text(f"seconds,loss\n{seconds},{mse}\n")
    write_sealed(folder / "sealed.json", "made-1", {"mse": mse, "seconds": seconds, "history": [[seconds, mse]]})
    save_file({"a": np.full(3, mse)}, folder / "a.safetensors", {"about": json.dumps({"mse": 1, "seconds": seconds})})
    return folder


def test_two_runs_are_equal_but_for_durations(tmp_path: Path) -> None:
    first, second, third = (
        canonical(write_results(tmp_path / name, mse, seconds))
        for name, mse, seconds in [("a", 0.1, 1.0), ("b", 0.1, 2.0), ("c", 0.2, 1.0)]
    )
    assert difference(second, first) is None
    assert {name for name in first if first[name] != third[name]} == set(first)
    assert difference(third, first) == "a.safetensors differs: a"
    assert difference({"a.safetensors": first["a.safetensors"]}, first) == "cell.json is missing"


def test_a_wrong_checksum_is_a_difference(tmp_path: Path) -> None:
    first = write_results(tmp_path / "a", 0.1, 1.0)
    expected = canonical(first)
    content = json.loads((first / "sealed.json").read_text())
    (first / "sealed.json").write_text(json.dumps({**content, "seconds": 2.0}))
    assert difference(canonical(first), expected) == "sealed.json differs"


def test_a_signal_is_excused_only_before_recollect_begins(tmp_path: Path) -> None:
    deaf, handling = (Interruption(Ended(-15, "", ""), True, could_handle) for could_handle in (False, True))
    assert deaf.problem(signal.SIGTERM, 0.1) is None
    assert handling.problem(signal.SIGTERM, 0.1) == "SIGTERM after 0.10 s: ended by signal 15"
    assert handling.problem(signal.SIGKILL, 0.1) is None
    task = "import signal, time; {} print(1, flush=True); time.sleep(60)"
    for line, handles in [
        ("", False),
        ("signal.signal(15, print);", True),
        ("signal.signal(15, signal.SIG_IGN);", True),
    ]:
        process = subprocess.Popen([sys.executable, "-c", task.format(line)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"1\n"
        assert handles_signals(process.pid) == handles
        process.kill()
        process.communicate()


def test_temporary_files_and_locks_are_noticed(tmp_path: Path) -> None:
    assert leftovers(tmp_path) == []
    (tmp_path / ".lock").touch()
    assert leftovers(tmp_path) == [".lock"]
    (tmp_path / ".lock").unlink()
    (tmp_path / ".cell.json.abc").touch()
    assert leftovers(tmp_path) == [".cell.json.abc"]


def test_a_training_that_lacks_a_network_and_its_state_starts_anew(tmp_path: Path) -> None:
    made = {"whole": {STATE, "a.safetensors", "c"}, "told": {STATE, "c"}, "lacking": {"a.safetensors", "c"}}
    for name, names in made.items():
        (tmp_path / name).mkdir()
        for file in names:
            (tmp_path / name / file).touch()
        restart_trainings(tmp_path / name, tmp_path / "whole")
    kept = {name: {path.name for path in (tmp_path / name).iterdir()} for name in made}
    assert kept == made | {"lacking": {"c"}}


def test_a_seed_repeats_mutations_and_built_files() -> None:
    content, other = bytes(range(256)) * 4, b"other"
    made = [[mutate(content, other, random.Random(seed)) for seed in range(40)] for _ in range(2)]
    assert made[0] == made[1]
    assert sum(changed != content for changed in made[0]) > 30
    for name in ("record", "CIFAR-10 pickle"):
        assert build(name, 5, 3) == build(name, 5, 3)
        assert len(build(name, 5, 3)) == 5
    assert build("no such format", 5, 3) == []
    assert set(STRATEGIES)


def test_every_scenario_gets_its_share_of_the_time() -> None:
    seconds = {"kills": 12.0, "ray": 90.0, "files": 2.0, "records": 4.0, "faults": 8.0}
    draws, drawn = Draws(1, list(SCENARIOS)), Counter[str]()
    for _ in range(3000):
        draw = draws.next([])
        assert draw is not None
        draws.spent[draw.scenario] += seconds[draw.scenario]
        drawn[draw.scenario] += 1
    total = sum(draws.spent.values())
    for name, share in SHARES.items():
        assert draws.spent[name] / total == pytest.approx(share / 100, abs=0.02)
    assert drawn["ray"] > 10


def test_a_seed_repeats_the_draws_of_a_scenario_whatever_the_others_take() -> None:
    first, second = Draws(7, list(SCENARIOS)), Draws(7, ["files"])
    first.spent |= dict.fromkeys(set(SCENARIOS) - {"files"}, 1e9)
    assert [first.next([]) for _ in range(5)] == [second.next([]) for _ in range(5)]
    assert Draws(8, ["files"]).next([]) != Draws(7, ["files"]).next([])


def test_one_cluster_runs_at_a_time() -> None:
    assert Draws(1, ["ray"]).next(["ray"]) is None
    assert Draws(1, ["ray", "files"]).next(["ray"]) == Draws(1, ["files"]).next([])


def test_an_empty_file_can_be_mutated() -> None:
    assert all(isinstance(change(b"", b"", random.Random(0)), bytes) for change in MUTATIONS)


def test_a_summary_counts_and_keeps_the_worst() -> None:
    outcomes = [
        Outcome("files", ".npy", seconds=0.5, megabytes=3, refused=True),
        Outcome("files", ".npy", "hung", seconds=5.0, megabytes=1),
        Outcome("kills", "train", kills=3),
    ]
    summary = summarize(outcomes, seed=9, minutes=1, seconds=61.0)
    assert summary["problems"] == ["files, .npy: hung"]
    assert summary["scenarios"]["files"]["subjects"][".npy"] == {
        "trials": 2, "kills": 0, "refused": 1, "failures": 1, "worst_seconds": 5.0, "worst_megabytes": 3,
    }  # fmt: skip
    table = page_table(summary)
    assert "| .npy files | 2 files, 1 refused | 1 | 5.0 s, 3 MB |" in table
    assert "| train: killed and resumed | 1 runs, 3 kills | 0 | |" in table
    assert table.endswith("These trials failed:\n\n- files, .npy: hung")
    assert page_table({**summary, "problems": []}).endswith("No trial failed.")


def test_the_page_has_the_recorded_figures() -> None:
    assert written_table() == page_table(read_json(RECORD))
