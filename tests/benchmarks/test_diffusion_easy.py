from pathlib import Path

import numpy as np

from recollect.records import read_json
from tests.benchmarks.running import refused, run


def test_plain_images_are_restored_and_noise_is_not(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "train.npy", rng.integers(0, 256, (6, 3, 8, 8), dtype=np.uint8))
    np.save(tmp_path / "unseen.npy", np.full((6, 3, 8, 8), 128, np.uint8))
    out = tmp_path / "easy.json"
    printed = run("diffusion_easy", "--images", str(tmp_path), "--json", str(out), "--small")
    assert "half train: 0 of 4 unseen: 4 of 4" in printed
    assert read_json(out)["masks"]["half"]["unseen"]["recovered"] == 4


def test_images_that_are_not_there_are_told(tmp_path: Path) -> None:
    told = refused("diffusion_easy", "--images", str(tmp_path), "--json", str(tmp_path / "x.json"))
    assert "cannot be read" in told
