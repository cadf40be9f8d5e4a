from pathlib import Path

import pytest

from recollect import InputError
from recollect.paper.scales import FULL, SMALL
from recollect.paper.workspace import open_workspace
from tests.benchmarks.running import benchmark

pack_images = benchmark("pack_images")
PACKED = {"tiny600", "svhn50", "cifar1000", "tiny1000", "photos600", "photos1000", "photos50"}


def test_packed_images_are_those_of_the_original_files(tmp_path: Path) -> None:
    for name, images in pack_images.sets_of(SMALL, ["photos6", "photos96"], 0).items():
        for part in images.parts:
            original = images.load(part, None)
            assert pack_images.pack(original, tmp_path / f"{name}-{part}.npz").startswith(f"{tmp_path}/{name}-{part}")
    packed, original = open_workspace(SMALL, str(tmp_path), device="cpu"), open_workspace(SMALL, device="cpu")
    for fit in (SMALL.perfect("unet", "lrelu", "muon"), SMALL.growth(SMALL.growing[0])):
        assert fit.images.sources("train", str(tmp_path))[0].startswith("array:")
        assert packed.images(fit, "train").hash == original.images(fit, "train").hash


def test_small_sets_are_packed_unless_others_are_named() -> None:
    assert set(pack_images.sets_of(FULL, None, 1000)) == PACKED
    assert pack_images.sets_of(FULL, ["tiny1000"], 0)["tiny1000"].count == 1000
    with pytest.raises(InputError, match="There is no set svhn51; choose from tiny600"):
        pack_images.sets_of(FULL, ["svhn51"], 0)
