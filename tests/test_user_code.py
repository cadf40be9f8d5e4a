from pathlib import Path

import pytest

from recollect import InputError, load, open_model
from recollect.user_code import advice_for_script, call, can_be_found, find_code, names_code


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "code_of_a_user.py").write_text("VALUE = 3\n\ndef make():\n    return 4\n\ndef fail():\n    1 / 0\n")
    monkeypatch.chdir(tmp_path)
    return "code_of_a_user"


def test_code_is_named_by_module_and_name() -> None:
    assert names_code("my_code:dataset")
    assert not names_code("C:\\images")


def test_code_in_the_working_folder_is_found(module: str) -> None:
    assert can_be_found(f"{module}:make")
    assert find_code(f"{module}:VALUE") == 3
    assert call(find_code(f"{module}:make"), f"{module}:make", "a number") == 4


def test_what_is_missing_or_fails_is_said_in_a_sentence(module: str) -> None:
    with pytest.raises(InputError, match="nothing"):
        find_code(f"{module}:nothing")
    with pytest.raises(InputError, match="division by zero"):
        call(find_code(f"{module}:fail"), f"{module}:fail", "a number")


@pytest.mark.parametrize("named", ["code_of_a_user.py:make", "./code_of_a_user.py:make", "code_of_a_user.py"])
def test_a_script_is_no_module_and_its_name_is_told(module: str, named: str) -> None:
    assert f"write {module}:{'make' if ':' in named else 'NAME'} in place of {named}." in advice_for_script(named)
    for opening in (open_model, load):
        with pytest.raises(InputError, match=r"Code is named as package\.module:name, so write code_of_a_user:"):
            opening(named)
