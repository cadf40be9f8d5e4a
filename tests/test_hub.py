import os
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

from recollect import InputError, open_model
from recollect.hub import FILES, fetch, is_hub_name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("google/ddpm-cifar10-32", True),
        ("a/b.c", True),
        ("model", False),
        ("./a/b", False),
        ("a/b/c", False),
        ("~/model", False),
        ("../model", False),
        ("a/../b", False),
        ("package.module:factory", False),
    ],
)
def test_the_form_of_a_name(text: str, expected: bool) -> None:
    assert is_hub_name(text) == expected


def test_a_folder_or_a_file_is_not_looked_up() -> None:
    with pytest.raises(InputError, match="There is no folder some/folder with a model in it"):
        fetch(Path("some/folder"))
    with pytest.raises(InputError, match=r"runs/model\.pt does not exist"):
        open_model("runs/model.pt")


NAMES = """
from recollect import InputError, open_model
for name in ("some/model", "some/pickle", "some/vae"):
    try:
        open_model(name)
    except InputError as refused:
        print(refused)
"""


def kept_by_the_hub(folder: Path, revision: str) -> Path:
    """Lay out the cache of one repository; returns where its config.json goes."""
    (folder / "snapshots" / revision).mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(revision)
    return folder / "snapshots" / revision / "config.json"


def test_what_is_fetched_holds_no_pickle() -> None:
    assert not any(fnmatch(name, pattern) for pattern in FILES for name in ("a.bin", "unet/a.bin", "a.pt", "a.ckpt"))


def test_a_name_opens_as_its_folder_in_the_cache_of_the_hub(tmp_path: Path) -> None:
    """Without a network the hub's client finds what it keeps, and nothing else; it reads its settings on import."""
    pytest.importorskip("diffusers")
    kept_by_the_hub(tmp_path / "models--some--model", "abc").write_text('{"_class_name": "UNet2DModel"}')
    config = kept_by_the_hub(tmp_path / "models--some--pickle", "def")
    config.write_text('{"_class_name": "AutoencoderKL"}')
    (config.parent / "diffusion_pytorch_model.bin").touch()
    done = subprocess.run(
        [sys.executable, "-c", NAMES], capture_output=True, text=True, check=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(tmp_path)},
    )  # fmt: skip
    kept, pickled, absent = done.stdout.splitlines()
    assert "snapshots/abc cannot be used: it has no noise schedule" in kept
    assert "snapshots/def holds no weights as safetensors, only a pickle (diffusion_pytorch_model.bin)" in pickled
    assert absent.startswith("There is no file or folder some/vae, and no model of that name could be fetched")
