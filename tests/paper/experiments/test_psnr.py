from dataclasses import replace
from pathlib import Path

import numpy as np

from recollect.paper.experiments import (
    psnr,
)
from recollect.paper.scales import SMALL
from tests.paper.making import ERRORS, add_records, records_alone

TWO_MASKS = replace(SMALL, masks=("block", "dust"))


def test_what_lies_below_an_axis_is_drawn_at_its_edge(tmp_path: Path) -> None:
    far_off = {"iterate": [1e20] * 4}
    add_records(records_alone(tmp_path).store, psnr.EXPERIMENT.cells(TWO_MASKS), ERRORS | far_off)
    axes = psnr.figures(TWO_MASKS, records_alone(tmp_path).store)["psnr-adam"].axes
    drawn = [np.asarray(line.get_ydata()) for panel in axes for line in panel.lines if line.get_label() == "iterate"]
    assert drawn
    assert all((line == 0).all() for line in drawn)
