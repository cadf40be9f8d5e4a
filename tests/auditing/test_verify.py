import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recollect import InputError
from recollect.auditing.manifest import read_manifest, renew_hash, write_manifest
from recollect.auditing.verify import verify_audit
from recollect.records import AUDIT_FORMAT, read_record, read_sealed, write_record, write_sealed
from tests.auditing.making import small_audit


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audits") / "audit"
    small_audit(out=folder, masks="half", methods="iterate,known", fail_above=0.01)
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    return shutil.copytree(saved, tmp_path / "audit")


def test_an_audit_as_it_was_written_is_verified_by_us_and_by_sha256sum(folder: Path) -> None:
    verification = verify_audit(folder)
    assert str(verification).startswith("Verified: 13 files")
    assert verification.cells == 4
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, check=True, capture_output=True)


@pytest.mark.parametrize("number", range(14))
def test_a_changed_byte_is_caught_in_every_file(folder: Path, number: int) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name in _listed(folder))
    path = files[number]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    assert not verify_audit(folder).passed


def _listed(folder: Path) -> set[str]:
    return {Path(name).name for name in read_manifest(folder)} | {"SHA256SUMS"}


def reseal(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change audit.json as a forger would who renews the checksum and the hashes."""
    facts = read_sealed(folder / "audit.json", AUDIT_FORMAT, "an audit")
    change(facts)
    write_sealed(folder / "audit.json", AUDIT_FORMAT, facts)
    write_manifest(folder, facts["cells"])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda f: f["summary"][0]["accurate"].update(count=0), "The summary in audit.json"),
        (lambda f: f["finding"]["train"].update(count=0), "The finding in audit.json"),
        (lambda f: f["membership"][0].update(auc=0.5), "The membership in audit.json"),
        (lambda f: f.update(headline=f["headline"].replace("8 of 8", "0 of 8")), "The headline does not say"),
        (lambda f: f["verdict"].update(sentence="Passed: nothing is recovered."), "The verdict in audit.json"),
        (lambda f: f["verdict"].update(outcome="passed"), "The records do not allow the verdict passed."),
        (lambda f: f["verdict"].update(bound=0.0), "The value and the bound of the verdict"),
    ],
)
def test_a_forged_number_does_not_follow_from_the_records(
    folder: Path, change: Callable[[dict[str, Any]], None], problem: str
) -> None:
    reseal(folder, change)
    assert problem in str(verify_audit(folder))


def test_records_that_were_changed_give_other_rates(folder: Path) -> None:
    cells = json.loads((folder / "audit.json").read_text())["cells"]
    record = read_record(folder / "cells" / f"{cells[0]}.json")
    record.mse[0] = 1.0
    write_record(folder / "cells", record)
    write_manifest(folder, cells)
    problems = verify_audit(folder).problems
    assert "images.csv does not hold the errors of the records." in problems
    assert any(problem.startswith("The summary") for problem in problems)


def test_files_that_are_missing(folder: Path, tmp_path: Path) -> None:
    (folder / "report.html").unlink()
    assert "report.html is listed in SHA256SUMS and is not there." in verify_audit(folder).problems
    (folder / "SHA256SUMS").unlink()
    assert "There is no file" in str(verify_audit(folder))
    with pytest.raises(InputError, match="There is no audit in"):
        verify_audit(tmp_path / "nowhere")


def test_a_report_made_again_has_its_hash_renewed(folder: Path) -> None:
    (folder / "report.html").write_text("another page")
    assert not verify_audit(folder).passed
    renew_hash(folder, "report.html")
    assert verify_audit(folder).passed


def test_last_bits_of_another_processor_are_no_change(folder: Path) -> None:
    """Logarithms differ in their last bits from processor to processor; an audit is verified on any."""

    def other_bits(facts: dict[str, Any]) -> None:
        for row in facts["summary"]:
            row["mean_psnr"] *= 1 + 1e-14

    reseal(folder, other_bits)
    table = folder / "images.csv"
    header, *rows = (line.split(",") for line in table.read_text().splitlines())
    for row in rows:
        row[header.index("psnr")] = repr(float(row[header.index("psnr")]) * (1 + 1e-14))
    table.write_text("\n".join(",".join(row) for row in [header, *rows]) + "\n")
    renew_hash(folder, table.name)
    assert verify_audit(folder).passed
