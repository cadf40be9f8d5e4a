from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from recollect.engine import without_acceleration


@pytest.fixture(params=["accelerated", "plain"])
def path(request: pytest.FixtureRequest) -> Iterator[str]:
    """Recoveries take this path: with `recollect/accelerate`, where that folder is, and without."""
    if request.param == "plain":
        with without_acceleration():
            yield "plain"
    elif find_spec("recollect.accelerate") is None:
        pytest.skip("recollect/accelerate is absent")
    else:
        yield "accelerated"
