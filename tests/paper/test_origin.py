from pathlib import Path

import pytest

from recollect.paper import origin
from recollect.paper.run import run
from recollect.paper.scales import SMALL
from tests.paper.making import make_experiment, make_workspace


@pytest.fixture(autouse=True)
def _asked_anew() -> None:
    origin.commit.cache_clear()


def test_a_commit_can_be_named_where_there_is_no_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(origin.COMMIT, "abc123")
    assert origin.origin("cpu", seed=7)["commit"] == "abc123"
    origin.commit.cache_clear()


def test_a_day_and_what_the_caller_adds_are_kept() -> None:
    facts = origin.origin("cpu", seed=7)
    assert facts["seed"] == 7
    assert len(facts["date"].split("-")) == 3


def test_outside_of_a_repository_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(origin.COMMIT, raising=False)
    assert origin.commit(tmp_path) is None
    origin.commit.cache_clear()


def test_a_run_names_the_commit_that_it_begins_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = make_workspace(tmp_path)
    for began, mask in (("first", "block"), ("second", "half")):
        monkeypatch.setenv(origin.COMMIT, began)
        assert run(
            [make_experiment((mask,))], SMALL, workspace, log=lambda _: monkeypatch.setenv(origin.COMMIT, "later")
        )
    commits = {record.cell["mask"]: record.provenance["commit"] for record in workspace.store.records()}
    assert commits == {"block": "first", "half": "second"}
    assert workspace.store.trainings()[0]["provenance"]["commit"] == "first"
    origin.commit.cache_clear()
