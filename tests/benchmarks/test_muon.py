import re

import pytest

from tests.benchmarks.running import run


@pytest.mark.slow
def test_both_train_and_need_about_as_many_steps() -> None:
    options = ["--images", "photos?count=3&size=8", "--layers", "3", "--width", "32", "--loss", "1e-4"]
    rows = re.findall(r"^(\w+): loss (\S+) after (\d+) steps of \S+ ms$", run("muon", *options), re.M)
    assert [name for name, _, _ in rows] == ["recollect", "torch"]
    assert all(float(loss) <= 1e-4 for _, loss, _ in rows)
    ours, theirs = (int(steps) for _, _, steps in rows)
    assert 0.5 < ours / theirs < 2
