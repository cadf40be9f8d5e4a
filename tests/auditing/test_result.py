import csv
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recollect import InputError
from recollect.auditing import Audit
from recollect.auditing.store import write_csv
from recollect.records import AUDIT_FORMAT, write_sealed
from tests.auditing.making import small_audit


@pytest.fixture(scope="module")
def planted() -> Audit:
    return small_audit()


@pytest.fixture(scope="module")
def folder(planted: Audit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planted.save(tmp_path_factory.mktemp("saved") / "audit")


def facts(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "audit.json").read_text())


def row(rows: list[dict[str, Any]], **wanted: str) -> dict[str, Any]:
    (found,) = (r for r in rows if all(r[k] == v for k, v in wanted.items()))
    return found


# --- as a table


def test_a_row_for_each_image_mask_and_method(planted: Audit) -> None:
    frame = planted.to_frame()
    assert len(frame) == (8 + 6) * 2 * 5
    assert not frame.duplicated(["set", "mask", "method", "image"]).any()
    assert frame.groupby("set").accurate.mean().to_dict() == {"control": 0.0, "train": 1.0}
    assert {"mse", "psnr", "rounds", "steps", "stop", "mask_accuracy", "mask_iou", "approximate"} <= set(frame)
    known = frame[frame.method == "known"]
    assert known.mask_accuracy.isna().all()


def test_images_csv_is_the_same_table_without_recollect(planted: Audit, folder: Path) -> None:
    frame, read = planted.to_frame(), pd.read_csv(folder / "images.csv", dtype={"image": str})
    assert list(read) == list(frame)
    assert (read.mse.to_numpy() == frame.mse.to_numpy()).all()  # to the last digit
    with (folder / "images.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == len(frame)


def test_what_is_not_finite_is_left_empty_and_the_json_stays_strict(planted: Audit, tmp_path: Path) -> None:
    broken = [replace(r, mse=[math.nan, *r.mse[1:]]) for r in planted.records]
    found = replace(planted, records=broken)
    found.store.copy_to(tmp_path, broken)
    write_csv(tmp_path / "images.csv", broken)
    write_sealed(tmp_path / "audit.json", AUDIT_FORMAT, found.to_dict())
    assert "nan" not in (tmp_path / "images.csv").read_text().lower()
    assert found.rate("train", "half", "blind").value == pytest.approx(7 / 8)
    json.loads((tmp_path / "audit.json").read_text(), parse_constant=lambda c: pytest.fail(c))


# --- on disk


def test_everything_is_written(folder: Path) -> None:
    names = {p.name for p in folder.iterdir()}
    assert names == {"audit.json", "images.csv", "samples.npz", "traces.npz", "report.html", "SHA256SUMS", "cells"}
    assert not list(folder.rglob(".*"))


def test_the_json_holds_rates_excess_and_membership_per_mask_and_overall(folder: Path) -> None:
    found = facts(folder)
    for mask in ("block", "half"):
        train = row(found["summary"], set="train", mask=mask, method="blind")
        assert (train["accurate"]["count"], train["accurate"]["total"]) == (8, 8)
        assert 0 < train["accurate"]["low"] < train["accurate"]["high"] == 1
    for over in ("all masks", "any mask"):
        assert row(found["overall"], set="control", method="blind", over=over)["approximate"]["value"] == 0
    for mask in ("block", "half", "all masks", "any mask"):
        more = row(found["excess"], mask=mask, method="iterate")
        assert more["accurate"]["low"] < more["accurate"]["value"] == 1
        assert more["approximate"]["value"] == 1
    for mask in ("block", "half", "any mask"):
        told = row(found["membership"], mask=mask, method="blind")
        assert (told["auc"], told["tpr_at_1_fpr"], told["roc"][0]) == (1.0, None, [0.0, 0.0])
        assert told["auc_low"] < told["auc_high"] == 1


def test_the_json_has_the_provenance(planted: Audit, folder: Path) -> None:
    found = facts(folder)
    assert {"recollect", "torch", "numpy", "python"} <= set(found["provenance"]["versions"])
    assert found["provenance"]["started"].endswith("+00:00")
    assert len(found["model"]["hash"]) == 16
    assert (found["train"]["name"], found["control"]["name"]) == ("pictures-1", "pictures-2")
    assert len(found["train"]["hash"]) == 64
    methods = found["settings"]["methods"]
    assert methods["blind"] == {"gamma": 0.5, "steps": 40, "limit": 100, "start": "half_kept"}
    assert methods["iterate"] == {"tolerance": 1e-12, "limit": 1000}
    assert found["settings"]["masks"] == {"block": "25.0% erased", "half": "50.0% erased"}
    cell = json.loads((folder / "cells" / f"{found['cells'][0]}.json").read_text())
    assert cell["settings"]["model"] == found["model"]["hash"]
    assert cell["provenance"] == found["provenance"]


def test_the_cells_listed_are_the_cells_there(folder: Path) -> None:
    assert sorted(facts(folder)["cells"]) == sorted(p.stem for p in (folder / "cells").glob("*.json"))


def test_pictures_show_the_same_images_in_every_cell(folder: Path) -> None:
    with np.load(folder / "samples.npz") as samples:
        assert samples["index/train"].tolist() == list(range(8))
        assert samples["original/train"].shape == (8, 8, 8, 3)
        assert (samples["degraded/train/half"][:, 4:] == 0).all()
        assert np.abs(samples["estimate/train/half/blind"].astype(int) - samples["original/train"]).max() <= 1
        assert samples["mask/train/half/blind"].shape == (8, 8, 8)
    with np.load(folder / "traces.npz") as traces:
        assert traces["estimate/blind/0"].shape[1:] == (8, 8, 3)


def test_saving_an_audit_over_another_mixes_nothing(planted: Audit, tmp_path: Path) -> None:
    small_audit(train=4, masks="dust").save(tmp_path)
    planted.save(tmp_path)
    assert sorted(facts(tmp_path)["cells"]) == sorted(p.stem for p in (tmp_path / "cells").glob("*.json"))
    assert facts(tmp_path / "earlier" / "1")["train"]["images"] == 4
    assert "dust" not in (tmp_path / "images.csv").read_text()


# --- as a picture


def test_a_notebook_shows_a_picture_of_both_sets(planted: Audit) -> None:
    shown = planted.picture(count=3)
    assert shown.width > shown.height > 100


@pytest.mark.parametrize(
    ("names", "said"),
    [(("nothing",), "has no cell"), (("half", "nothing"), "has no cell"), (("half", "blind", 0), "1 or more; got 0")],
)
def test_a_picture_that_there_is_not_is_refused(planted: Audit, names: tuple[Any, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        planted.picture(*names)


def test_an_audit_without_pictures_says_so() -> None:
    with pytest.raises(InputError, match="kept no pictures"):
        small_audit(pictures=False, methods="iterate").picture()
