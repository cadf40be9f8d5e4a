import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from recollect import InputError
from recollect.diffusion import can_open_priors
from recollect.diffusion.network import make_network, make_scheduler
from recollect.distributed.jobs import Budget, Job, Tell, in_this_process
from recollect.methods import DDNM
from recollect.paper import cells as plan
from recollect.paper import fit as fitting
from recollect.paper import measure as measuring
from recollect.paper.cells import Cell
from recollect.paper.experiment import Experiment
from recollect.paper.run import gather, run
from recollect.paper.scales import SMALL
from recollect.records import read_record, read_records
from tests.paper.making import FIT, bench, experiment, write_images

ROOT = Path(__file__).parents[2]


def lines_of(folder: Path, *masks: str, **options: object) -> list[str]:
    told: list[str] = []
    run([experiment(masks or ("block", "dust"))], SMALL, bench(folder), tell=told.append, **options)  # type: ignore[arg-type]
    return [line for words in told for line in words.splitlines()]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "results" / "cells").iterdir()}


def test_masks_measured_side_by_side_give_what_each_gives_alone(tmp_path: Path, monkeypatch) -> None:
    together, alone = tmp_path / "together", tmp_path / "alone"
    for folder in (together, alone):
        folder.mkdir()
    lines_of(together)
    monkeypatch.setattr(measuring, "SIDE_BY_SIDE", 0)
    lines_of(alone)
    assert set(contents(together)) == set(contents(alone))
    for name in contents(alone):
        a, b = (read_record(folder / "results" / "cells" / name) for folder in (together, alone))
        assert a.stop == b.stop
        assert a.steps == pytest.approx(b.steps, abs=3)  # rounding differs with the batch
        assert a.mse == pytest.approx(b.mse, rel=1e-2)
        assert a.seconds > 0


def test_a_share_of_the_images_is_attacked_where_that_is_asked_for(tmp_path: Path) -> None:
    some = replace(FIT, images=replace(FIT.images, attacked=2))
    assert run([experiment(("block",), some)], SMALL, bench(tmp_path))
    records = read_records(tmp_path / "results" / "cells")
    assert {len(record.mse) for record in records} == {2}
    assert {record.provenance["images"]["count"] for record in records} == {2}


def test_the_time_of_a_batch_is_shared_by_the_work_of_each_mask() -> None:
    by_steps = measuring.shares(torch.tensor([9, 9, 29, 29]), 2)
    assert by_steps == pytest.approx([0.25, 0.75])
    assert measuring.shares(torch.zeros(6, dtype=torch.int64), 2) == pytest.approx([1 / 3] * 3)  # DDNM counts none


def test_one_training_serves_all_and_nothing_is_done_twice(tmp_path: Path) -> None:
    told = lines_of(tmp_path)
    assert sum("trained:" in line for line in told) == 1
    assert sum("accurate" in line for line in told) == len(contents(tmp_path)) == 12
    assert told[1].startswith("fc3-lrelu-adam-made4 1e-03")  # the lowest loss first
    assert told[-1].endswith("12 of 12 cells recorded.")
    before = contents(tmp_path)
    again = lines_of(tmp_path)
    assert len(again) == 1
    assert contents(tmp_path) == before


@pytest.mark.skipif(not can_open_priors(), reason="needs diffusers")
def test_the_generic_method_needs_no_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan.generic_settings("cifar10-32")  # by the class itself, before it is made quicker
    monkeypatch.setattr(plan, "DDNM", partial(DDNM, steps=2))
    lines_of(tmp_path, "block")
    shutil.rmtree(tmp_path / "work")
    generic = generically("cifar10-32")
    told: list[str] = []
    for folder in (tmp_path, tmp_path / "untrained", tmp_path / "untrained"):
        folder.mkdir(exist_ok=True)
        assert run([generic], SMALL, bench(folder), tell=told.append)
    assert not any("trained" in line for line in told)
    assert [line.split(":")[0] for line in told if "accurate" in line] == ["made4 train block ddnm"] * 2
    assert not (tmp_path / "work").exists()
    record = read_record(next((tmp_path / "results" / "cells").glob("*ddnm*")))
    assert not {"train_loss", "model"} & set(record.provenance)
    assert record.provenance["prior"]["name"] == "cifar10-32"
    assert "CIFAR-10" in record.provenance["prior"]["trained_on"]
    assert record.provenance["prior"]["known_to_it"] == {"train": {"exact": 0, "near": 0, "total": 4}}


@pytest.mark.skipif(not can_open_priors(), reason="needs diffusers")
def test_a_prior_among_the_data_sets_is_used_where_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan.generic_settings("own")
    monkeypatch.setattr(plan, "DDNM", partial(DDNM, steps=2))
    told: list[str] = []
    assert run([generically("own")], SMALL, bench(tmp_path), tell=told.append)
    assert told[0] == f"ddnm is left out: for made4 it needs a prior in {tmp_path / 'own'} (docs/priors.md)."
    assert told[-1].endswith("0 of 2 cells recorded, 2 missing.")
    make_network(3, 8, (16, 16)).save_pretrained(tmp_path / "own")
    make_scheduler("cosine").save_pretrained(tmp_path / "own")
    assert run([generically("own")], SMALL, bench(tmp_path), tell=told.append)
    record = read_record(next((tmp_path / "results" / "cells").glob("*ddnm*")))
    assert record.settings["method"]["prior"] == record.provenance["prior"]["name"] == "own"
    assert record.provenance["prior"]["trained_on"] == "unknown"
    assert len(record.provenance["prior"]["weights"]) == 16


def generically(prior: str) -> Experiment:
    fit = replace(FIT, images=replace(FIT.images, prior=prior))
    return replace(experiment(), cells=lambda _: [Cell(fit, loss, "train", "block", "ddnm") for loss in fit.milestones])


def test_another_mask_computes_only_what_is_new(tmp_path: Path) -> None:
    lines_of(tmp_path, "block")
    before = contents(tmp_path)
    told = lines_of(tmp_path, "block", "half")
    assert not any("trained:" in line for line in told)
    assert [" half " in line for line in told[:-1]] == [True] * 6
    assert before.items() <= contents(tmp_path).items()
    assert len(contents(tmp_path)) == 12


def test_where_the_checkpoints_are_gone_it_trains_again_for_what_is_missing_alone(tmp_path: Path) -> None:
    lines_of(tmp_path, "block")
    for path in (tmp_path / "work").rglob("*.safetensors"):
        path.unlink()
    assert len(lines_of(tmp_path, "block")) == 1
    told = lines_of(tmp_path, "block", "half")
    assert sum("trained:" in line for line in told) == 1
    assert len(told) == 1 + 6 + 1


def test_a_second_training_takes_the_place_of_the_first_only_if_it_reaches_more(tmp_path: Path) -> None:
    here = bench(tmp_path)
    first = replace(FIT, milestones=(1e-2, 1e-30), limit_seconds=1.0)
    assert run([experiment(("block",), first)], SMALL, here)
    kept = here.results.training(first)
    further = replace(first, milestones=FIT.milestones)
    short = replace(first, limit_seconds=1e-3)
    for mask, fit, stays in (("half", short, True), ("dust", first, True), ("frame", further, False)):
        shutil.rmtree(tmp_path / "work")
        told: list[str] = []
        run([experiment((mask,), fit)], SMALL, here, tell=told.append)
        assert "trained:" in told[0]
        assert ("The record of an earlier training stays" in told[0]) is stays
        assert (here.results.training(first) == kept) is stays


def test_a_training_that_stops_short_gives_what_it_reached(tmp_path: Path) -> None:
    fit = replace(FIT, milestones=(1e-2, 1e-30), limit_seconds=2.0)
    told: list[str] = []
    here = bench(tmp_path)
    assert run([experiment(("block",), fit)], SMALL, here, tell=told.append)
    assert "short of 1e-30" in told[0]
    assert {line.split()[1] for line in told[1:-1]} == {"1e-02", "best"}
    last = Cell(fit, 1e-30, "control", "block", "known")
    found = here.results.best_of(last)
    assert found is not None
    assert found.cell["loss"] == "best"
    assert found.provenance["train_loss"] < 1e-2
    assert not here.results.missing(last)
    again: list[str] = []
    assert run([experiment(("block",), fit)], SMALL, here, tell=again.append)
    assert len(again) == 1


def test_time_that_is_over_ends_between_two_cells_and_the_next_call_goes_on(tmp_path: Path) -> None:
    here = bench(tmp_path)
    assert not run([experiment()], SMALL, here, budget=Budget(0.0))
    assert not (tmp_path / "results").exists()
    ended = Budget(1e-3)
    told: list[str] = []
    assert not run([experiment()], SMALL, here, budget=ended, tell=told.append)
    assert run([experiment()], SMALL, here)
    assert len(contents(tmp_path)) == 12


def test_the_time_of_a_call_is_no_limit_that_a_rate_falls_for(tmp_path: Path) -> None:
    fit = replace(FIT, kind="unet", width=(8, 16), optimizer="muon", milestones=(1e-12,))
    here = bench(tmp_path)
    images, inputs = here.images(fit, "train"), (tmp_path / "work", 0.5, here.device)
    first, second = (fitting.train(fit, images, *inputs) for _ in range(2))
    for facts in (first, second):
        assert not facts["finished"]
        assert facts["history"][-1][-1] > 0.99 * facts["recipe"]["rate"]
    assert second["seconds"] > first["seconds"]


def test_only_what_is_asked_for(tmp_path: Path) -> None:
    work = gather([experiment()], SMALL, ["1e-03*dust"])
    assert {(c.loss, c.mask) for cells in work.values() for c in cells} == {(1e-3, "dust")}
    assert len(gather([experiment()], SMALL, ["fc3-lrelu-adam"])[FIT]) == 12
    with pytest.raises(InputError, match="Nothing fits --only unet"):
        gather([experiment()], SMALL, ["unet"])
    with pytest.raises(InputError, match="Nothing fits --only unet"):
        gather([experiment()], SMALL, ["1e-03*dust", "unet"])


def test_a_damaged_record_is_named_and_not_computed_over(tmp_path: Path) -> None:
    lines_of(tmp_path)
    path = sorted((tmp_path / "results" / "cells").iterdir())[0]
    for damage in (b"", path.read_bytes()[:40], b"no gzip"):
        path.write_bytes(damage)
        with pytest.raises(InputError, match=f"{path.name}.*; without it the cell is measured again"):
            lines_of(tmp_path)
        assert path.read_bytes() == damage


def test_the_record_of_another_cell_is_not_taken_for_this_one(tmp_path: Path) -> None:
    lines_of(tmp_path)
    one, other = sorted((tmp_path / "results" / "cells").iterdir())[:2]
    one.write_bytes(other.read_bytes())
    with pytest.raises(InputError, match=f"{one.name} is the record of another cell"):
        lines_of(tmp_path)


PROGRAM = """
    import sys
    {before}
    from pathlib import Path
    from recollect.paper.run import run
    from recollect.paper.scales import SMALL
    from tests.paper.making import bench, experiment
    def tell(line):
        print(line, flush=True)
    run([experiment(("block", "half", "scatter", "dust"))], SMALL, bench(Path(sys.argv[1])), tell=tell)
"""


def program(folder: Path, before: str = "") -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(PROGRAM).format(before=before), str(folder)]


def test_a_run_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    cells = tmp_path / "results" / "cells"
    running = subprocess.Popen(program(tmp_path), cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    for line in running.stdout:
        if "accurate" in line and len(list(cells.glob("*.gz"))) >= 3:
            break
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    running.stdout.close()
    before = {p.name: p.read_bytes() for p in cells.glob("*.gz")}
    assert 3 <= len(before) < 24
    time.sleep(0.01)
    done = subprocess.run(program(tmp_path), cwd=ROOT, capture_output=True, text=True, check=True)
    told = done.stdout.splitlines()
    assert not any("trained:" in line for line in told)
    assert len(told) - 1 == 24 - len(before)
    assert before.items() <= contents(tmp_path).items()


def test_it_runs_where_only_torch_numpy_and_pillow_are_installed(tmp_path: Path) -> None:
    missing = ["skimage", "pandas", "matplotlib", "typer", "rich", "jinja2", "pooch", "scipy", "ray"]
    before = f"sys.modules.update(dict.fromkeys({missing}))"
    done = subprocess.run(program(tmp_path, before), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith("24 of 24 cells recorded.")


def test_images_that_are_not_there_are_told(tmp_path: Path) -> None:
    here = replace(bench(tmp_path), data=write_images(tmp_path))
    (tmp_path / "made4-train.npz").unlink()
    with pytest.raises(InputError, match="There is no SVHN file"):
        run([experiment()], SMALL, here)


def test_after_a_failed_cell_the_facts_are_found_all_the_same(tmp_path: Path) -> None:
    def fails(jobs: Iterable[Job], budget: Budget, tell: Tell) -> bool:
        in_this_process(jobs, budget, tell)
        return False

    finding = replace(experiment(), facts=lambda _bench, _scale: {"found": 1})
    place = bench(tmp_path)
    assert not run([finding], SMALL, place, runner=fails)
    assert (place.results.facts(finding.id) or {})["found"] == 1
