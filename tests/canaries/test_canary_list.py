"""A folder of canaries has its list, or is refused."""

from pathlib import Path

import pytest

from recollect.canaries.canary_list import LIST, list_of
from recollect.errors import InputError


def test_the_list_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / LIST).touch()
    assert list_of(str(tmp_path)) == tmp_path / LIST


def test_a_folder_without_a_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"holds no canaries: there is no file {tmp_path / LIST}"):
        list_of(tmp_path)
