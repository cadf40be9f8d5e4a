"""Names of files that are no UTF-8: an audit of them is finished, and every record and report holds the names."""

import csv
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.auditing.making import images
from tests.cli.running import fill, run
from tests.file_names import original_name

NAMES = [b"a\xff.png", b"b\x1b[31m.png", "größe.png".encode()]


def write_pictures(folder: Path) -> None:
    folder.mkdir()
    for number, name in enumerate(NAMES):
        values = (images(len(NAMES), 1).pixels[number] * 255).byte().permute(1, 2, 0).numpy()
        with (folder / os.fsdecode(name)).open("wb") as file:
            Image.fromarray(np.ascontiguousarray(values)).save(file, "png")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_an_audit_of_files_with_odd_names_is_finished(tmp_path: Path) -> None:
    fill(tmp_path)
    write_pictures(tmp_path / os.fsdecode(b"tr\xe4ining"))
    arguments = ["audit", "making_a_model:Planted", "--train", os.fsdecode(b"folder:tr\xe4ining")]
    arguments += ["--masks", "half", "--methods", "iterate", "--out", os.fsdecode(b"out\xff")]
    ended = run(tmp_path, *arguments)
    assert ended.code == 0, ended.err
    out = tmp_path / os.fsdecode(b"out\xff")
    facts = json.loads((out / "audit.json").read_text())
    assert r"out\xff/report.html" in ended.out
    assert facts["train"]["name"].startswith(r"folder:tr\xe4ining")
    with (out / "images.csv").open(newline="", encoding="utf-8") as file:
        listed = sorted({row["image"] for row in csv.DictReader(file)})
    assert sorted(os.fsencode(original_name(name)) for name in listed) == sorted(NAMES)
    assert r"a\xff.png" in (out / "report.html").read_text(encoding="utf-8")
