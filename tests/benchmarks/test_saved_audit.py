"""That it runs and says what it found; times are no test's business."""

from pathlib import Path

from recollect.records import read_json
from tests.auditing.making import small_audit
from tests.benchmarks.running import run


def test_every_command_runs_on_an_audit_of_more_images(tmp_path: Path) -> None:
    audit, out = tmp_path / "audit", tmp_path / "out.json"
    small_audit(out=audit, masks="half", methods="iterate")
    printed = run("saved_audit", str(audit), "--images", "30", "--masks", "2", "--out", str(out))
    results = read_json(out)
    assert [row["exit_code"] for row in results["commands"].values()] == [0, 0, 0, 0]
    assert "30 + 30 images, 4 cells" in printed
