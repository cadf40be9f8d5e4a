from collections.abc import Iterator

import pytest

from recollect.engine import without_acceleration


@pytest.fixture(scope="module", params=["accelerated", "plain"])
def both_paths(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run a test as it is, and once more on the plain path: the loop of Algorithm 1 in PyTorch's own kernels."""
    if request.param == "accelerated":
        pytest.importorskip("recollect.accelerate")
        yield
        return
    with without_acceleration():
        yield
