from pathlib import Path

from tests.paper.making import check_pictures, make_workspace


def test_pictures_are_computed_once_and_drawn(tmp_path: Path) -> None:
    check_pictures("recovery-path", make_workspace(tmp_path))
