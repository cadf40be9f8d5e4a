import os
import subprocess
import sys
from pathlib import Path

import pytest

from recollect import InputError, open_model
from recollect.hub import fetch, is_hub_name


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
for name in ("some/model", "some/vae"):
    try:
        open_model(name)
    except InputError as refused:
        print(refused)
"""


def test_a_name_opens_as_its_folder_in_the_cache_of_the_hub(tmp_path: Path) -> None:
    """Without a network the hub's client finds what it keeps, and nothing else; it reads its settings on import."""
    pytest.importorskip("diffusers")
    folder = tmp_path / "models--some--model"
    (folder / "snapshots" / "abc").mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("abc")
    (folder / "snapshots" / "abc" / "config.json").write_text('{"_class_name": "UNet2DModel"}')
    done = subprocess.run(
        [sys.executable, "-c", NAMES], capture_output=True, text=True, check=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(tmp_path)},
    )  # fmt: skip
    kept, absent = done.stdout.splitlines()
    assert "snapshots/abc holds a UNet2DModel; autoencoders of diffusers that open are" in kept
    assert absent.startswith("There is no file or folder some/vae, and no model of that name could be fetched")
