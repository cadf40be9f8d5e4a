from pathlib import Path

import pytest

from recollect.sources.cache import cache_folder


def test_the_folder_chosen_comes_before_the_variable_and_the_variable_before_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("RECOLLECT_DATA", raising=False)
    assert cache_folder() == Path("/home/me/.cache/recollect")
    monkeypatch.setenv("XDG_CACHE_HOME", "/fast")
    assert cache_folder() == Path("/fast/recollect")
    monkeypatch.setenv("RECOLLECT_DATA", "~/data")
    assert cache_folder() == Path("/home/me/data")
    assert cache_folder("/here") == Path("/here")
