import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect import duplicates
from recollect.duplicates import NEAR, Duplicates, find_duplicates
from recollect.errors import InputError
from recollect.images import Images
from recollect.sources import load
from tests.sources.conftest import eight_bit


def smooth(count: int, rng: torch.Generator, side: int = 12) -> torch.Tensor:
    """Images of a few large spots, as different as real ones."""
    return torch.nn.functional.interpolate(torch.rand(count, 3, 3, 3, generator=rng), (side, side), mode="nearest")


def slow(some: torch.Tensor, others: torch.Tensor, near: float, earlier: bool) -> dict[str, tuple[str, float]]:
    """All pairs, one by one."""
    found = {}
    for i, one in enumerate(some):
        errors = [(float((one - other).double().square().mean()), j) for j, other in enumerate(others)]
        allowed = [e for e in errors if e[0] <= near and (not earlier or e[1] < i)]
        if allowed:
            found[str(i)] = (str(min(allowed)[1]), min(allowed)[0])
    return found


def test_planted_duplicates_are_found(rng: torch.Generator) -> None:
    train, control = smooth(50, rng), smooth(50, rng)
    control[7] = train[30]
    control[9] = (train[31] + 0.02).clamp(0, 1)
    control[11] = (train[32] + 0.1).clamp(0, 1)  # MSE near 0.01: another picture for our purposes
    train[40] = train[3]
    found = find_duplicates(Images(train), Images(control))
    assert [(p.first, p.second, p.exact) for p in found.across] == [("7", "30", True), ("9", "31", False)]
    assert [(p.first, p.second, p.exact) for p in found.inside] == [("40", "3", True)]
    assert found.across[1].mse == pytest.approx(4e-4, rel=0.2)
    assert str(found) == (
        "Of 50 control images, 1 have an exact and 1 a near duplicate in train; of 50 train images, 1 have an exact "
        "and 0 a near duplicate earlier in train (near: MSE <= 0.002)."
    )


@given(
    seed=st.integers(0, 999),
    side=st.sampled_from([1, 3, 8, 11, 16]),
    noise=st.sampled_from([0.0, 0.01, 0.05, 0.3]),
    near=st.sampled_from([0.0, 1e-4, NEAR, 0.05]),
)
def test_the_same_as_comparing_all_pairs(seed: int, side: int, noise: float, near: float) -> None:
    rng = torch.Generator().manual_seed(seed)
    centres = torch.rand(4, 1, side, side, generator=rng)
    draw = torch.randint(0, 4, (40,), generator=rng)
    pixels = (centres[draw] + noise * torch.randn(40, 1, side, side, generator=rng)).clamp(0, 1)
    train, control = pixels[:25], pixels[25:]
    found = find_duplicates(Images(train), Images(control), near=near)
    for pairs, expected in (
        (found.across, slow(control, train, near, False)),
        (found.inside, slow(train, train, near, True)),
    ):
        got = {pair.first: (pair.mse, pair.second) for pair in pairs if not pair.moved}
        assert set(got) == set(expected)
        assert not {pair.first for pair in pairs if pair.moved} & set(
            expected
        )  # looked for only where there is no twin
        for name, (_, mse) in expected.items():
            assert got[name][0] == pytest.approx(mse, rel=1e-4, abs=1e-12)


def moved(image: torch.Tensor, mirrored: bool, dy: int, dx: int) -> torch.Tensor:
    shifted = image.roll((dy, dx), (1, 2))
    return shifted.flip(2) if mirrored else shifted


@settings(max_examples=25)
@given(
    seed=st.integers(0, 999),
    mirrored=st.booleans(),
    dy=st.integers(-4, 4),
    dx=st.integers(-4, 4),
    side=st.sampled_from([8, 13, 32]),
)
def test_mirrored_and_shifted_copies_are_found(seed: int, mirrored: bool, dy: int, dx: int, side: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    train, control = (torch.rand(12, 3, side, side, generator=rng) for _ in range(2))
    most = min(4, side // 8)
    dy, dx = (max(-most, min(most, shift)) for shift in (dy, dx))
    control[3] = moved(train[7], mirrored, dy, dx)
    (pair,) = find_duplicates(Images(train), Images(control)).across
    assert (pair.first, pair.second, pair.mse) == ("3", "7", 0.0)
    shift = f"shifted by {dy}, {dx} pixels" if dy or dx else ""
    assert pair.moved == " and ".join(filter(None, ["mirrored" if mirrored else "", shift]))
    assert pair.exact == (not pair.moved)


def find_in_small_blocks(train: torch.Tensor, control: torch.Tensor) -> Duplicates:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("_AT_ONCE", 7), ("_CONTROL", 5), ("_PAIRS", 2)):
            patch.setattr(duplicates, name, value)
        return find_duplicates(Images(train), Images(control))


def test_a_moved_copy_is_found_among_many_blocks(rng: torch.Generator) -> None:
    train, control = smooth(60, rng, 16), smooth(30, rng, 16)
    for position, (source, *how) in {2: (40, True, 0, 0), 17: (5, False, 2, -1), 29: (59, True, -1, 2)}.items():
        control[position] = moved(train[source], *how)  # type: ignore[arg-type]
    whole = find_duplicates(Images(train), Images(control))
    assert [(pair.first, pair.second) for pair in whole.across] == [("2", "40"), ("17", "5"), ("29", "59")]
    assert find_in_small_blocks(train, control) == whole
    assert "and 3 a mirrored or shifted one in train" in str(whole)


def test_a_shift_beyond_the_margin_is_another_image(rng: torch.Generator) -> None:
    train = torch.rand(5, 1, 16, 16, generator=rng)
    assert not find_duplicates(Images(train), Images(train[:1].roll(3, 3)))


def test_blocks_are_joined_right(rng: torch.Generator) -> None:
    pixels = smooth(60, rng)
    pixels[[17, 41, 59]] = pixels[[2, 40, 33]]
    control = pixels[[1, 5, 30]]
    whole = find_duplicates(Images(pixels), Images(control))
    assert find_in_small_blocks(pixels, control) == whole
    assert [p.first for p in whole.inside] == ["17", "41", "59"]
    assert len(whole.across) == 3


def test_bytes_and_floats_are_compared_alike(rng: torch.Generator) -> None:
    values = torch.randint(0, 256, (20, 3, 9, 9), generator=rng, dtype=torch.uint8)
    found = find_duplicates(Images.from_uint8(values), Images(values[:4].float() / 255))
    assert [(p.second, p.exact) for p in found.across] == [(str(i), True) for i in range(4)]


def test_a_set_of_one_picture_repeated_ends_quickly() -> None:
    found = find_duplicates(Images(torch.full((5000, 1, 8, 8), 0.5)))
    assert len(found.inside) == 4999
    assert all(pair.exact for pair in found.inside)


def test_no_duplicates_is_false_and_the_record_is_json(rng: torch.Generator) -> None:
    pixels = smooth(10, rng)
    clean = find_duplicates(Images(pixels))
    assert not clean
    found = find_duplicates(Images(pixels), Images(pixels[:1], ["copy"]))
    assert found
    assert json.loads(json.dumps(found.record()))["across"] == [["copy", "0", 0.0, ""]]


def test_what_makes_no_sense_is_refused() -> None:
    train = Images(torch.rand(2, 1, 4, 4))
    with pytest.raises(InputError, match=r"differ in size \(images of 1x4x4 and images of 1x4x5\)"):
        find_duplicates(train, Images(torch.rand(2, 1, 4, 5)))
    with pytest.raises(InputError, match="negative"):
        find_duplicates(train, near=-1)


def test_the_threshold_is_what_one_estimate_can_be_of_two_images() -> None:
    """Halfway between two images at exactly NEAR, the error to both is the paper's approximate threshold."""
    a, b = torch.zeros(100, dtype=torch.float64), torch.full((100,), NEAR**0.5, dtype=torch.float64)
    middle = (a + b) / 2
    assert float((middle - a).square().mean()) == pytest.approx(5e-4)
    assert float((middle - b).square().mean()) == pytest.approx(5e-4)


def test_a_copy_among_real_images(shared: Callable[[str], Path]) -> None:
    train = load(f"tiny-imagenet:{shared('tiny-imagenet-200.zip')}?per-class=2")
    stained = torch.from_numpy(eight_bit(train)[[3, 250]])
    stained[1, :, :8, :8] = 128  # a corner painted over
    found = find_duplicates(train, Images.from_uint8(stained, ["same", "stained"]), near=0.01)
    assert [(p.first, p.second) for p in found.across] == [("same", train.ids[3]), ("stained", train.ids[250])]
    assert [p.exact for p in found.across] == [True, False]


def test_a_copy_is_found_among_many_with_the_same_averages(rng: torch.Generator) -> None:
    """Textures that no coarse grid tells apart: each pixel has a neighbour that makes up for it."""
    half = torch.randint(0, 2, (100, 1, 16, 8), generator=rng) * 0.4
    textures = torch.stack([0.3 + half, 0.7 - half], -1).flatten(3)
    found = find_duplicates(Images(textures), Images(textures[[7, 77]]))
    assert [(pair.second, pair.exact) for pair in found.across] == [("7", True), ("77", True)]
    assert not found.inside


def test_signals_shifted_in_time_and_rows_that_nearly_repeat_are_found() -> None:
    generator = torch.Generator().manual_seed(0)
    signals = torch.rand(30, 2, 64, generator=generator)
    control = torch.rand(5, 2, 64, generator=generator)
    control[1], control[3] = signals[7].roll(3, 1), signals[9]
    across = find_duplicates(Images(signals), Images(control)).across
    assert [(pair.first, pair.second, bool(pair.moved)) for pair in across] == [("1", "7", True), ("3", "9", False)]
    rows = torch.rand(2000, 12, generator=generator)
    rows[1500] = (rows[20] + 0.01).clamp(max=1)
    others = torch.rand(50, 12, generator=generator)
    others[4], others[5] = rows[3], rows[8].flip(0)
    found = find_duplicates(Images(rows), Images(others))
    assert [(pair.first, pair.second) for pair in found.across] == [("4", "3")]
    assert ("1500", "20") in [(pair.first, pair.second) for pair in found.inside]
