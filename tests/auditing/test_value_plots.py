import numpy as np
import torch

from recollect.auditing.pictures import as_colour, mean_over_channels
from recollect.auditing.value_plots import HEIGHT, MARGIN, WIDTH, draw_bands, draw_values


def test_signals_are_lines_and_rows_bars_of_one_size() -> None:
    for values in (torch.rand(3, 2, 40), torch.rand(3, 1, 1), torch.rand(3, 7), torch.rand(3, 300)):
        pictures = as_colour(values)
        assert (pictures.shape, pictures.dtype) == ((3, HEIGHT, WIDTH, 3), np.uint8)
        assert all(len(np.unique(picture)) > 1 for picture in pictures)


def dark(picture: np.ndarray) -> np.ndarray:
    return picture.sum(2) < 600


def test_a_line_is_where_its_values_are() -> None:
    signal = torch.cat([torch.zeros(50), torch.ones(50)]).view(1, 1, 100)
    picture = dark(draw_values(signal)[0])
    assert picture[-MARGIN - 2 :, 10].any()
    assert not picture[: HEIGHT // 2, 10].any()
    assert picture[: MARGIN + 2, -10].any()
    assert not picture[HEIGHT // 2 :, -10].any()


def test_a_bar_is_as_high_as_its_value() -> None:
    heights = dark(draw_values(torch.tensor([[0.0, 0.5, 1.0, float("nan")]]))[0]).sum(0)
    quarters = [int(heights[at]) for at in (10, 42, 74, 106)]
    assert quarters[2] > 1.8 * quarters[1] > 20
    assert quarters[0] == quarters[3] <= MARGIN + 1


def test_bands_are_a_stripe_a_channel() -> None:
    values = torch.zeros(1, 2, 4)
    values[0, 1, 3] = 1.0
    bands = mean_over_channels(values)
    assert bands.shape == (1, HEIGHT, WIDTH)
    assert bands[0, HEIGHT // 2 :, 3 * WIDTH // 4 :].min() == 1
    assert bands.sum() == HEIGHT * WIDTH / 8
    assert torch.equal(draw_bands(torch.ones(1, 9)), torch.ones(1, HEIGHT, WIDTH))
