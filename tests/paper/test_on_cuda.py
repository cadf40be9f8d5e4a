from pathlib import Path

import pytest
import torch

from recollect.paper.fit import Bench
from recollect.paper.run import run
from recollect.paper.scales import SMALL
from recollect.paper.store import Results
from tests.paper.making import experiment, write_images


@pytest.mark.gpu
def test_an_experiment_on_the_gpu_goes_on_like_on_the_cpu(tmp_path: Path) -> None:
    here = Bench(Results(tmp_path / "results"), tmp_path / "work", write_images(tmp_path), torch.device("cuda"))
    told: list[str] = []
    assert run([experiment(("block",))], SMALL, here, tell=told.append)
    assert run([experiment(("block", "dust"))], SMALL, here, tell=told.append)
    assert sum("trained:" in line for line in told) == 1
    assert told[-1].endswith("12 of 12 cells recorded.")
