"""That it measures an audit of a file, and that the page shows what the saved run holds."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from recollect import InputError
from recollect.paper.origin import commit
from tests.benchmarks import running
from tests.benchmarks.running import ROOT, benchmark

run, refused = (partial(function, "large_sets") for function in (running.run, running.refused))


def test_the_images_that_the_network_stores_are_recovered(tmp_path: Path) -> None:
    module = benchmark("large_sets")
    module.make_images(tmp_path / "unseen.npy", 8, seed=1)
    module.make_images(module.path_of(tmp_path, 24), 24, seed=0)
    shown = run("--measure", "24", "--folder", str(tmp_path), "--stored", "6", "--device", "cpu")
    row = json.loads(shown.splitlines()[-1])
    assert (row["recovered"], row["recovered_unseen"]) == (6, 0)
    assert row["peak_bytes"] >= row["bytes_before"] > 0


def test_a_record_names_the_commit(tmp_path: Path) -> None:
    module, out = benchmark("large_sets"), tmp_path / "large-sets.json"
    run("--sizes", "24", "--stored", "6", "--folder", str(tmp_path), "--device", "cpu", "--out", str(out))
    assert json.loads(out.read_text())["commit"] == commit()
    with pytest.raises(InputError, match="set RECOLLECT_COMMIT=HASH"):
        module.check_commit({"commit": None})


def test_images_are_drawn_once(tmp_path: Path) -> None:
    make, path = benchmark("large_sets").make_images, tmp_path / "a.npy"
    make(path, 3, seed=0)
    first = np.load(path)
    make(path, 3, seed=5)
    assert np.array_equal(np.load(path), first)
    assert len(np.unique(first)) > 200


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_the_page_shows_the_recorded_numbers(device: str) -> None:
    page = (ROOT / "docs/research/large-sets.md").read_text()
    for line in run("--tables", str(ROOT / f"results/large-sets-{device}.json")).splitlines():
        assert line in page


def test_the_sentences_of_the_page_are_what_the_records_say() -> None:
    page = " ".join((ROOT / "docs/research/large-sets.md").read_text().split())
    cpu, gpu = (json.loads((ROOT / f"results/large-sets-{device}.json").read_text()) for device in ("cpu", "gpu"))
    assert {row["recovered"] for row in cpu["rows"] + gpu["rows"]} == {cpu["stored"]} == {256}
    assert cpu["threads"] == 1
    row = gpu["rows"][-1]
    assert f"A million images take {row['seconds']:.0f} seconds, {row['attack_seconds']:.0f} of them" in page


def test_mistakes_are_told_in_a_sentence() -> None:
    assert "was not written by this benchmark" in refused("--tables", str(ROOT / "results/layer-kernels.json"))
