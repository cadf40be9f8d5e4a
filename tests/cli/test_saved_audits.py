import json
from pathlib import Path

import pytest

from tests.auditing.making import small_audit
from tests.cli.running import here, mistake


@pytest.fixture(scope="module")
def audits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("audits")
    for name, methods in (("a", "iterate"), ("b", "iterate,known")):
        small_audit(out=folder / name, masks="half", methods=methods)
    return folder / "a", folder / "b"


def test_the_report_is_made_again_and_the_audit_stays_verified(audits: tuple[Path, Path]) -> None:
    first, _ = audits
    (first / "report.html").unlink()
    changed = here("verify", str(first))
    assert (changed.exit_code, "report.html is listed" in changed.stdout) == (3, True)
    assert here("report", str(first)).stdout == f"The report: {first / 'report.html'}\n"
    verified = here("verify", str(first))
    assert verified.exit_code == 0, verified.output
    assert verified.stdout.startswith("Verified: ")


def test_two_audits_side_by_side(audits: tuple[Path, Path]) -> None:
    first, second = map(str, audits)
    shown = here("compare", first, second).stdout
    assert "any attack" in shown
    assert "8 of 8" in shown
    rows = json.loads(here("compare", first, second, "--json", "--threshold", "exact").stdout)
    assert {row["p_value"] for row in rows} == {1.0}


def test_folders_without_an_audit_are_one_sentence(tmp_path: Path) -> None:
    for command in (["verify"], ["report"], ["compare", str(tmp_path)]):
        assert "audit.json" in mistake(*command, str(tmp_path))
