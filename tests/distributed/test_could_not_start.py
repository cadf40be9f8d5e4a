"""Workers that cannot start, while no other holds a CPU (conftest.py keeps the order)."""

from typing import Any

import pytest

from recollect import InputError
from recollect.distributed import actors as crew
from recollect.distributed import crew_on
from recollect.distributed.jobs import Budget
from tests.distributed.making import Unable, one, refuse


def test_a_worker_that_cannot_start_is_told_in_one_line(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "Worker", Unable)
    told = r"A worker could not start on this Ray cluster: .*No module named 'recollect'$"
    with crew_on("ray", "cpu") as unable, pytest.raises(InputError, match=told) as mistake:
        unable([one(refuse)], Budget(), print)
    assert "\n" not in str(mistake.value)


def test_a_worker_does_not_spread_over_machines(second: Any) -> None:
    with crew_on("ray", "cpu", cpus=0.4) as four:
        assert len(four) == 4
    told = r"No machine of this Ray cluster has 2 CPUs for a worker: \{'CPU': 1.0\}"
    with pytest.raises(InputError, match=told), crew_on("ray", "cpu", cpus=2):
        pass
