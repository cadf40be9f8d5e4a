import numpy as np
import pytest

from recollect.paper.render.tables import markdown, network_name, percent
from recollect.scoring import Score
from tests.paper.making import FIT


def test_a_table_has_a_line_of_titles_a_rule_and_a_line_for_each_row() -> None:
    assert markdown(["a", "b"], [("1", "2"), ("3", "4")]) == "| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |\n"


def test_networks_have_the_papers_names() -> None:
    assert network_name(FIT.__class__("unet", "softplus", "muon", 8, FIT.images, (1e-2,), 1, 1)) == "U-Net Softplus"


@pytest.mark.parametrize(("interval", "text"), [(False, "50"), (True, "50 (15 to 85)")])
def test_a_rate_is_in_percent(interval: bool, text: str) -> None:
    assert percent(Score(np.array([1e-9, 1e-9, 1.0, 1.0])).accurate, interval=interval) == text
