from pathlib import Path

import numpy as np
import torch
from PIL import Image

from recollect.diffusion.samples import write_sheet


def test_images_lie_side_by_side_in_rows(tmp_path: Path) -> None:
    images = torch.rand(10, 3, 4, 5)
    write_sheet(tmp_path / "sheet.png", images, columns=8, scale=1)
    with Image.open(tmp_path / "sheet.png") as opened:
        page = np.asarray(opened)
    assert page.shape == (2 * 5, 8 * 6, 3)
    expected = (images * 255).round().byte().numpy().transpose(0, 2, 3, 1)
    assert np.array_equal(page[:4, 6:11], expected[1])
    assert np.array_equal(page[5:9, :5], expected[8])
    assert (page[5:, 12:] == 255).all()


def test_grey_images_make_a_grey_page(tmp_path: Path) -> None:
    write_sheet(tmp_path / "sheet.png", torch.zeros(1, 1, 4, 4))
    with Image.open(tmp_path / "sheet.png") as opened:
        assert opened.mode == "L"
