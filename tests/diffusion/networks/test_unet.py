import pytest

from recollect import InputError
from recollect.diffusion.networks import UNet


def test_it_has_the_size_that_is_stated() -> None:
    assert 19e6 < sum(p.numel() for p in UNet((3, 32, 32)).parameters()) < 20e6


def test_pixels_attend_to_each_other_where_images_are_small_and_below_full_size() -> None:
    def attends(side: int) -> list[bool]:
        network = UNet((3, side, side), (16,) * 3)
        return [hasattr(block.attention, "heads") for block in network.down_second]

    assert attends(16) == attends(32) == [False, True, True]
    assert attends(64) == [False, False, True]


@pytest.mark.parametrize("widths", [(), (16, 20)])
def test_widths_that_do_not_work_are_refused(widths: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="multiples of 16"):
        UNet((3, 8, 8), widths)


def test_sizes_that_do_not_work_are_refused() -> None:
    with pytest.raises(InputError, match="9x8; with 2 widths their sides must be divisible by 2"):
        UNet((3, 8, 9), (16, 16))
