import json
import shutil
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


@pytest.mark.parametrize("name", ["\x1b[2Jevil", "../../secret", "/dev/zero", "a" * 300])
def test_a_list_of_hashes_that_no_audit_wrote_is_named(audits: tuple[Path, Path], tmp_path: Path, name: str) -> None:
    shutil.copytree(audits[1], tmp_path / "b")
    with (tmp_path / "b" / "SHA256SUMS").open("a") as file:
        file.write(f"{'0' * 64}  {name}\n")
    changed = here("verify", str(tmp_path / "b"))
    assert (changed.exit_code, "which no audit writes" in changed.stdout) == (3, True)
    assert "\x1b" not in changed.stdout


def test_a_folder_cannot_steer_the_terminal(audits: tuple[Path, Path], tmp_path: Path) -> None:
    odd = shutil.copytree(audits[0], tmp_path / "\x1b[31ma")
    for command in (["compare", str(odd), str(audits[1])], ["report", str(odd)], ["verify", str(odd / "no")]):
        shown = here(*command)
        assert "\\x1b[31ma" in shown.output
        assert "\x1b" not in shown.output


def test_folders_without_an_audit_are_one_sentence(tmp_path: Path) -> None:
    for command in (["verify"], ["report"], ["compare", str(tmp_path)]):
        assert "audit.json" in mistake(*command, str(tmp_path))
