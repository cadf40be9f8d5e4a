from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import TensorDataset

from recollect import Blind, FullyConnected, Images, InputError, KnownMask, UNet
from recollect.auditing import request as plan
from recollect.auditing.tuning import GAMMAS, STARTS
from recollect.degradation import SIX, Blur, all_erased, half_kept
from recollect.methods import ZeroRule
from tests.auditing.making import images, pictures


def grid(f: Any, gamma: Any = None, start: Any = None, noise: float = 0.0, methods: Any = plan.METHODS) -> plan.Grid:
    return plan.read_grid(f, plan.read_methods(methods), gamma, start, noise)


def network(kind: str, **more: Any) -> torch.nn.Module:
    return UNet(widths=(4, 4)) if kind == "unet" else FullyConnected((3, 8, 8), width=4, **more)


# --- sets


def test_train_may_be_anything_that_holds_images(tmp_path: Path) -> None:
    pixels = pictures(3, 1)
    eight_bit = (pixels * 255).round().to(torch.uint8)
    as_pil = [Image.fromarray(p.permute(1, 2, 0).numpy()) for p in eight_bit]
    np.save(tmp_path / "a.npy", eight_bit.numpy())
    forms: list[Any] = [pixels, pixels.numpy(), list(pixels), [p.numpy() for p in pixels], TensorDataset(pixels)]
    forms.append(TensorDataset(pixels, torch.arange(3)))
    for form in forms:
        read = plan.read_sets(form, None)["train"]
        assert torch.equal(read.pixels, pixels)
        assert read.name == "train"
    for form in (as_pil, tmp_path / "a.npy", str(tmp_path / "a.npy")):
        assert torch.equal(plan.read_sets(form, None)["train"].pixels, eight_bit.float() / 255)


def test_a_path_is_a_place_and_never_the_name_of_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    Image.new("L", (4, 4), 9).save(tmp_path / "photos" / "a.png")
    assert plan.read_sets(Path("photos"), None)["train"].shape == (1, 4, 4)


def test_images_keep_their_own_name() -> None:
    assert plan.read_sets(images(2, 1), images(2, 2))["control"].name == "pictures-2"


def test_control_images_must_be_alike() -> None:
    with pytest.raises(InputError, match="3x8x8 and 1x8x8"):
        plan.read_sets(images(2, 1), images(2, 2, channels=1))
    with pytest.raises(InputError, match="empty"):
        plan.read_sets([], None)


# --- masks


def test_masks_by_name_list_dict_and_array() -> None:
    assert list(plan.read_masks("all")) == list(SIX)
    assert list(plan.read_masks("half, random:0.3")) == ["half", "random:0.3"]
    assert list(plan.read_masks("all,random:0.3")) == [*SIX, "random:0.3"]
    array = np.ones((8, 8), bool)
    assert list(plan.read_masks(["dust", array])) == ["dust", "mask-2"]
    assert list(plan.read_masks(array)) == ["mask-1"]
    assert list(plan.read_masks({"mine": array})) == ["mine"]
    for nothing in ([], {}):
        with pytest.raises(InputError, match="At least one mask"):
            plan.read_masks(nothing)


def test_masks_that_do_not_fit_are_refused_before_any_work() -> None:
    sets = {"train": images(3, 1), "control": images(2, 2)}
    with pytest.raises(InputError, match="no mask 'hlaf'"):
        plan.read_places(sets, {"hlaf": "hlaf"}, 42)
    each = np.eye(8, dtype=bool)[None, None].repeat(
        3, 0
    )  # one for each training image, and there are only two control images
    with pytest.raises(InputError, match="'mine' does not fit the control images: 3 degradations"):
        plan.read_places(sets, {"mine": each}, 42)


def test_random_each_draws_for_each_image() -> None:
    places = plan.read_places({"train": images(3, 1), "control": images(5, 2)}, {"r": "random-each:0.5"}, 42)
    assert [len(p.truth) for p in places] == [3, 5]


def test_images_left_out_take_their_own_masks_with_them() -> None:
    train, control = images(4, 1), images(4, 2)
    masks = {"each": "random-each:0.5", "half": "half"}
    places = plan.read_places({"train": train, "control": control}, masks, 42)
    left = plan.leave_out(places, ["0", "2"])
    assert [p.images.ids for p in left] == [("1", "3")] * 2 + [("0", "1", "2", "3")] * 2  # control ids are its own
    assert torch.equal(left[0].truth.keep, places[0].truth.keep[[1, 3]])
    assert [len(p.truth) for p in left] == [2, 1, 4, 1]


# --- gamma and start


@pytest.mark.parametrize(
    ("f", "noise", "gamma", "start"),
    [
        (network("unet"), 0.0, 1.0, all_erased),
        (network("fc"), 0.0, 0.5, half_kept),
        (network("fc"), 0.02, 0.1, half_kept),
        (network("fc", activation="prelu"), 0.0, 0.1, half_kept),
        (network("fc", layers=20), 0.0, 0.1, half_kept),
    ],
    ids=["unet", "fc-10", "fc-10 with noise", "fc-10 prelu", "fc-20"],
)
def test_the_papers_networks_have_the_papers_settings(f: Any, noise: float, gamma: float, start: Any) -> None:
    assert grid(f, noise=noise).settled == Blind(gamma=gamma, start=start)


def test_only_what_is_not_given_is_searched() -> None:
    foreign, own = torch.nn.Identity(), network("unet")
    assert grid(foreign) == plan.Grid(GAMMAS, STARTS)
    assert grid(foreign, gamma=0.3) == plan.Grid((0.3,), STARTS)
    assert grid(foreign, start="all_erased") == plan.Grid(GAMMAS, (all_erased,))
    assert grid(foreign, gamma=0.3, start="auto") == plan.Grid((0.3,), STARTS)
    assert grid(foreign, gamma=1, start="half_kept").settled == Blind(gamma=1.0, start=half_kept)
    assert grid(own, gamma="auto") == plan.Grid(GAMMAS, (all_erased,))
    assert grid(own, start="auto") == plan.Grid((1.0,), STARTS)
    assert grid(own, gamma="auto", start="auto") == plan.Grid(GAMMAS, STARTS)
    assert grid(own, start="half_kept").settled == Blind(gamma=1.0, start=half_kept)


def test_nothing_is_searched_for_methods_that_have_no_gamma() -> None:
    assert grid(torch.nn.Identity(), methods="iterate").settled is not None
    assert grid(torch.nn.Identity(), methods=[Blind(gamma=0.2)]).settled is not None


@pytest.mark.parametrize("gamma", ["autp", True, 0, -1.0, float("nan"), float("inf")])
def test_a_gamma_that_is_none_is_refused(gamma: Any) -> None:
    with pytest.raises(InputError, match="gamma is a"):
        grid(torch.nn.Identity(), gamma=gamma)


def test_a_start_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="no start mask 'zeros'; choose half_kept, all_erased or auto"):
        grid(torch.nn.Identity(), start="zeros")


# --- methods


def test_baselines_stand_beside_the_methods_that_need_them() -> None:
    assert list(plan.read_methods(["known", "blind", "iterate"])) == ["known", "blind", "zero-rule", "iterate"]
    assert list(plan.read_methods("zero-rule, blind")) == ["zero-rule", "blind"]
    assert list(plan.read_methods("iterate")) == ["iterate"]
    assert list(plan.read_methods({"mine": "blind"})) == ["mine", "zero-rule"]
    assert list(plan.read_methods("blind,known", black=False)) == ["blind", "known"]
    assert list(plan.read_methods("blind,zero-rule", black=False)) == ["blind", "zero-rule"]
    assert list(plan.read_methods("blind,ddnm")) == ["blind", "zero-rule", "ddnm", "biharmonic"]
    assert list(plan.read_methods("biharmonic,ddnm")) == ["biharmonic", "ddnm"]
    own = ZeroRule(gamma=0.1)
    assert plan.read_methods({"biharmonic": own, "ddnm": "ddnm"}) == {"biharmonic": own, "ddnm": "ddnm"}


def test_named_methods_get_the_settings_and_noise_is_not_pasted() -> None:
    named = plan.read_methods("blind,known")
    settled = plan.settle_methods(named, Blind(gamma=0.3), noise_std=0.0)
    assert (settled["blind"].gamma, settled["known"].gamma, settled["zero-rule"].gamma) == (0.3, 0.3, 0.3)
    assert settled["known"].paste
    noisy = plan.settle_methods(named, Blind(gamma=0.3), noise_std=0.1)
    assert not noisy["known"].paste
    assert noisy["zero-rule"] == ZeroRule(gamma=0.3, paste=False)


def test_methods_of_ones_own() -> None:
    mine = Blind(gamma=0.7, limit=3)
    assert plan.settle_methods(plan.read_methods([mine]), Blind(), 0.0) == {"blind": mine}
    both = plan.read_methods({"low": Blind(gamma=0.1), "high": Blind(gamma=1.0)})
    assert list(both) == ["low", "high"]


@dataclass(frozen=True)
class Nameless:
    knows_truth = False

    def __call__(self, *_: Any) -> None: ...


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        ("blnd", "no method 'blnd'; choose from blind, refined, iterate, known, known-400, zero-rule"),
        ("", "At least one method"),
        ([], "At least one method"),
        ("blind,blind", "two methods called 'blind'"),
        ([Blind(), Blind(gamma=0.1)], "two methods called 'blind'"),
        ([3], "got a int"),
        ([Nameless()], "with a name and knows_truth; got a Nameless"),
    ],
)
def test_methods_that_are_none_are_refused(methods: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        plan.read_methods(methods)


def test_images_of_another_device_come_to_the_cpu() -> None:
    assert Images.of(pictures(2, 1)).pixels.device.type == "cpu"


def test_fills_are_named_with_the_mask_and_have_nothing_to_do_with_a_blur() -> None:
    places = plan.read_places({"train": images(3, 1)}, {"half": "half", "blur:1": "blur:1"}, 42, ["zero", "noise"])
    assert [p.mask for p in places] == ["half", "half+noise", "blur:1"]
    assert plan.method_for(Blind(), places[0].truth) == Blind()
    assert isinstance(plan.method_for(Blind(), places[2].truth).start(images(3, 1).pixels), Blur)
    assert plan.method_for(KnownMask(), places[2].truth) == KnownMask()


@pytest.mark.parametrize("fills", [["noise"], ["zero", "images"]])
def test_a_fill_is_refused_where_no_mask_erases(fills: list[str]) -> None:
    with pytest.raises(InputError, match="what erased pixels hold, and no pixel is erased by blur:1, coarse:2"):
        plan.read_places({"train": images(3, 1)}, {"blur:1": "blur:1", "coarse:2": "coarse:2"}, 42, fills)


@pytest.mark.parametrize("fill", ["black", "zero,black", "", []])
def test_a_fill_that_is_none_is_refused(fill: Any) -> None:
    with pytest.raises(InputError, match=r"no fill .*; choose from zero, constant, noise, images"):
        plan.read_fills(fill)
