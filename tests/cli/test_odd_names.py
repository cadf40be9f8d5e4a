"""Names of files that are no UTF-8: an audit of them is finished, and every record and report holds the names."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from recollect.names import original_name
from tests.auditing.making import images
from tests.cli.running import fill

NAMES = [b"a\xff.png", b"b\x1b[31m.png", "größe.png".encode()]
ROOT = Path(__file__).parents[2]


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
    command: list[str | bytes] = [
        sys.executable,
        "-m",
        "recollect",
        "audit",
        "making_a_model:Planted",
        "--train",
        b"folder:tr\xe4ining",
    ]
    command += ["--masks", "half", "--methods", "iterate", "--out", b"out\xff"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr.decode(errors="replace")
    out = tmp_path / os.fsdecode(b"out\xff")
    facts = json.loads((out / "audit.json").read_text())
    assert rb"out\xff/report.html" in ended.stdout
    assert facts["train"]["name"].startswith(r"folder:tr\xe4ining")
    with (out / "images.csv").open(newline="", encoding="utf-8") as file:
        listed = sorted({row["image"] for row in csv.DictReader(file)})
    assert sorted(os.fsencode(original_name(name)) for name in listed) == sorted(NAMES)
    assert r"a\xff.png" in (out / "report.html").read_text(encoding="utf-8")
