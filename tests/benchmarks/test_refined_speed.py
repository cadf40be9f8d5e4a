"""That it runs and says what it found; times are no test's business."""

from pathlib import Path

from recollect.records import read_json
from tests.benchmarks.running import run


def test_a_table_of_both_methods(tmp_path: Path) -> None:
    out = tmp_path / "speed.json"
    printed = run("refined_speed", "--cases", "quick", "--repeats", "1", "--out", str(out))
    rows = read_json(out)["cases"]["quick"]
    assert list(rows) == ["blind", "blind, plain", "refined", "refined, plain"]
    assert rows["refined"]["image_steps"] > rows["blind"]["image_steps"]
    assert printed.count("| quick |") == 4
