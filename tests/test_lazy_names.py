import subprocess
import sys

import pytest

import recollect
from recollect import sources


def test_a_name_is_imported_when_it_is_first_used() -> None:
    script = "import sys, recollect; assert 'torch' not in sys.modules; recollect.Blind; assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("package", [recollect, sources])
def test_every_public_name_is_found(package: object) -> None:
    for name in package.__all__:  # type: ignore[attr-defined]
        assert getattr(package, name) is getattr(package, name)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'recollect' has no attribute 'nothing'"):
        _ = recollect.nothing
