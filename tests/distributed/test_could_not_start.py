"""Workers that cannot start, while no other holds a CPU (conftest.py keeps the order)."""

from typing import Any

import pytest

from recollect import InputError
from recollect.distributed import open_pool, worker_pool
from recollect.distributed.jobs import Budget
from tests.distributed.making import Unable, one, refuse


def test_a_worker_that_cannot_start_is_told_in_one_line(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "Worker", Unable)
    sentence = r"A worker could not start on this Ray cluster: .*No module named 'recollect'$"
    with open_pool("ray", "cpu") as unable, pytest.raises(InputError, match=sentence) as mistake:
        unable([one(refuse)], Budget(), print)
    assert "\n" not in str(mistake.value)


def test_a_worker_does_not_spread_over_machines(second: Any) -> None:
    with open_pool("ray", "cpu", cpus=0.4) as four:
        assert len(four) == 4
    sentence = r"No machine of this Ray cluster has 2 CPUs for a worker: \{'CPU': 1.0\}"
    with pytest.raises(InputError, match=sentence), open_pool("ray", "cpu", cpus=2):
        pass
