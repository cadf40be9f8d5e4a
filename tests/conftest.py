"""Shared by all tests: one thread, repeatable property tests, a read-only repository, no GPU test without a GPU."""

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings
from hypothesis.configuration import set_hypothesis_home_dir

from tests.browsing import browser
from tests.read_only_repository import ROOT, read_only_repository

__all__ = ["browser"]  # a fixture for the tests of all folders

SHARED = ROOT.parent / "shared" / "data"

# Some virtual machines announce AMX and cannot run it: bfloat16 would end the process. Read when oneDNN is first used.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
torch.set_num_threads(1)
gc.set_threshold(50_000)  # tests make few cycles, and a collection walks all that torch has imported

set_hypothesis_home_dir(ROOT / ".hypothesis")
settings.register_profile("here", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("here"), derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "here")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


def pytest_collection_finish() -> None:
    """Leave what was imported so far out of garbage collections: a tenth of the suite's CPU time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def outside_the_repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Run in an empty folder: a command's default folders are relative, and results/paper is one of them."""
    with pytest.MonkeyPatch.context() as patch, chdir(tmp_path_factory.mktemp("outside")), read_only_repository():
        patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)  # for the processes that tests start
        yield


@pytest.fixture
def values() -> Callable[..., np.ndarray]:
    """Random 8-bit values of a shape."""
    rng = np.random.default_rng(3)
    return lambda *shape: rng.integers(0, 256, shape, dtype=np.uint8)


@pytest.fixture
def rng() -> torch.Generator:
    return torch.Generator().manual_seed(7)


@pytest.fixture
def shared() -> Callable[[str], Path]:
    """A path in the folder of real data, or a skip that says what is missing."""

    def find(name: str) -> Path:
        if not (SHARED / name).exists():
            pytest.skip(f"real data is not here: ../shared/data/{name}")
        return SHARED / name

    return find
