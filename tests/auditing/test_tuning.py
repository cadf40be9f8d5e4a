from typing import Any

import pytest
import torch

from recollect import FullyConnected, InputError, UNet
from recollect.auditing import tuning
from recollect.auditing.request import STARTS
from recollect.auditing.tuning import GAMMAS, SearchSpace, Setting, search_space
from recollect.degradation import Filled, all_erased, half_kept
from recollect.methods import Refined
from tests.auditing.making import images
from tests.planted import Memorizer


@pytest.mark.parametrize(("count", "spent"), [(8, 4), (12, 4), (18, 6), (24, 8), (40, 8), (100, 10), (1000, 32)])
def test_a_tenth_of_the_set_is_spent_within_bounds(count: int, spent: int) -> None:
    some = tuning.set_apart(images(count, 1, size=1))
    assert len(set(some.ids)) == spent
    assert (some.ids[0], some.ids[-1]) == ("0", str(count - 1))  # from all over the set, not its first class


def test_too_few_images_to_spend_any_is_an_error_with_a_way_out() -> None:
    with pytest.raises(InputError, match=r"takes 4 .*: at least 8 are needed in all, and there are 7"):
        tuning.set_apart(images(7, 1))


def test_every_setting_is_tried_and_the_best_is_taken() -> None:
    stored = images(4, 1)
    candidates = [Refined(gamma=g, start=s, limit=5) for g in (1e-6, 0.5) for s in (half_kept, all_erased)]
    damaged = tuning.damaged_copies(stored, ["half"], ["zero", "noise"], noise_std=0.0, seed=42)
    model = Memorizer(stored.pixels)
    rows = [{**tuning.try_method(model, stored, refined, damaged), "masks": 1} for refined in candidates]
    assert [(r["gamma"], r["start"]) for r in rows] == [
        (1e-6, "half_kept"), (1e-6, "all_erased"), (0.5, "half_kept"), (0.5, "all_erased")
    ]  # fmt: skip
    chosen = tuning.Tuning([], [], rows).best
    best = max(rows, key=lambda row: (row["accurate"], row["approximate"], -row["fixed_point_error"]))
    assert chosen.start == STARTS[best["start"]]
    assert 1e-6 <= chosen.gamma <= 0.5


def test_accurate_recovery_counts_before_approximate_and_that_before_a_fixed_point() -> None:
    def row(gamma: float, *merits: float) -> dict[str, object]:
        return {"gamma": gamma, "start": "all_erased", "masks": 2} | dict(
            zip(("accurate", "approximate", "fixed_point_error"), merits, strict=True)
        )

    rows = [row(1, 0.1, 0.9, 1e-9), row(2, 0.6, 0.7, 1e-9), row(3, 0.6, 0.9, 1e-6)]
    assert tuning.Tuning([], [], rows).best == Setting(gamma=3, start=all_erased)
    nothing = [row(1, 0.0, 0.0, 1e-5), row(2, 0.0, 0.0, 1e-6), row(3, 0.0, 0.0, 1e-4)]
    assert tuning.Tuning([], [], nothing).best == Setting(gamma=2, start=all_erased)


def test_gammas_that_recover_nearly_as_much_are_averaged_and_others_are_not() -> None:
    def row(gamma: float, rate: float, start: str = "half_kept", masks: int = 4) -> dict[str, object]:
        rates = {"accurate": rate, "approximate": rate, "fixed_point_error": 1e-6 * gamma}
        return {"gamma": gamma, "start": start, "masks": masks, **rates}

    alike = [row(0.1, 0.8), row(0.4, 0.8)]
    others = [row(2.0, 0.2), row(3.0, 0.8, start="all_erased"), row(1.0, 0.9, masks=2)]
    assert tuning.Tuning([], [], [*alike, *others]).best == Setting(0.2, half_kept)
    somewhat = [row(0.1, 0.8), row(0.4, 0.79)]
    assert 0.1 < tuning.Tuning([], [], [*somewhat, *others]).best.gamma < 0.2
    assert tuning.Tuning([], [], [row(0.123, 0.8), *others]).best.gamma == pytest.approx(0.12, abs=0.01)


def test_noise_levels_are_compared_by_error_and_an_annealed_model_is_otherwise_at_the_best_one() -> None:
    def row(level: float | str, error: float, moved: float) -> dict[str, object]:
        merits = {"accurate": 0.0, "approximate": 0.5, "error": error, "fixed_point_error": moved}
        return {"noise_level": level, "gamma": 0.5, "start": "half_kept", "masks": 2, **merits}

    rows = [row(0.05, 1e-2, 1e-9), row(0.4, 1e-3, 1e-5)]
    assert tuning.Tuning([], [], rows).best == Setting(0.5, half_kept, 0.4)
    rows.append(row("annealed", 1e-4, 1e-5))
    assert tuning.Tuning([], [], rows).best == Setting(0.5, half_kept, "annealed", 0.4)


def test_images_are_damaged_as_in_the_audit() -> None:
    stored = images(4, 1)
    options: Any = {"noise_std": 0.0, "seed": 1}
    zero, noise = tuning.damaged_copies(stored, ["half"], ["zero", "noise"], **options)
    assert not isinstance(zero.truth, Filled)
    assert isinstance(noise.truth, Filled)
    (noisy,) = tuning.damaged_copies(stored, ["half"], ["zero"], noise_std=0.3, seed=1)
    assert (noisy.y - zero.y).std() == pytest.approx(0.3, rel=0.2)
    assert len(tuning.damaged_copies(stored, ["blur:1.5", "half"], ["zero", "noise"], **options)) == 3


def test_it_is_tried_on_masks_of_the_audit() -> None:
    named = {"block": "block", "half": "half", "dust": "dust"}
    assert tuning.masks_to_tune_on(named) == (["block", "dust"], ["half"])
    others = {"x": "half", "r": "random:0.3", "dust": "dust", "array": object()}
    assert tuning.masks_to_tune_on(others) == (["half", "random:0.3"], ["dust"])
    assert tuning.masks_to_tune_on({"array": object()}) == (["block", "dust"], [])
    assert tuning.masks_to_tune_on({"all": "block", "half": "half"}, ("block", "half")) == (["block", "half"], [])


def test_the_best_settings_are_tried_on_all_masks_and_the_choice_is_among_these() -> None:
    easy = {0.1: 0.9, 0.3: 0.8, 0.5: 0.7, 1.0: 0.2}
    hard = {0.1: 0.0, 0.3: 0.1, 0.5: 0.6, 1.0: 1.0}
    asked = []

    def try_on(setting: Setting, masks: list[str]) -> tuning.Row:
        asked.append((setting.gamma, *masks))
        rate = easy[setting.gamma] if masks == ["easy"] else hard[setting.gamma]
        return {"gamma": setting.gamma, "start": "half_kept", "accurate": rate, "approximate": rate,
                "error": 1e-2, "fixed_point_error": 1e-4 if masks == ["easy"] else 1e-7}  # fmt: skip

    rows = tuning.search([Setting(gamma) for gamma in easy], try_on, ["easy"], ["hard", "harder"])
    assert asked[4:] == [(0.1, "hard", "harder"), (0.3, "hard", "harder"), (0.5, "hard", "harder")]
    assert [row["masks"] for row in rows] == [3, 3, 3, 1]
    assert rows[2]["accurate"] == pytest.approx((0.7 + 2 * 0.6) / 3)
    assert rows[2]["fixed_point_error"] == pytest.approx(1e-6)
    assert tuning.Tuning([], [], rows).best == Setting(0.5)  # 1.0 was no finalist


# --- what is searched


def network(kind: str, **more: Any) -> torch.nn.Module:
    return UNet(widths=(4, 4)) if kind == "unet" else FullyConnected((3, 8, 8), width=4, **more)


def space(f: Any, gamma: Any = None, start: Any = None, noise_std: float = 0.0) -> SearchSpace:
    return search_space(f, gamma, start, noise_std)


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
    assert space(f, noise_std=noise).only == Setting(gamma, start)


def test_only_what_is_not_given_is_searched() -> None:
    foreign, own, every = torch.nn.Identity(), network("unet"), tuple(STARTS.values())
    assert space(foreign) == SearchSpace(GAMMAS, every)
    assert space(foreign, gamma=0.3) == SearchSpace((0.3,), every)
    assert space(foreign, start="all_erased") == SearchSpace(GAMMAS, (all_erased,))
    assert space(foreign, gamma=0.3, start="auto") == SearchSpace((0.3,), every)
    assert space(foreign, gamma=1, start="half_kept").only == Setting(1.0, half_kept)
    assert space(own, gamma="auto") == SearchSpace(GAMMAS, (all_erased,))
    assert space(own, start="auto") == SearchSpace((1.0,), every)
    assert space(own, gamma="auto", start="auto") == SearchSpace(GAMMAS, every)
    assert space(own, start="half_kept").only == Setting(1.0, half_kept)
    assert len(space(foreign).settings) == len(GAMMAS) * len(STARTS)
    assert space(foreign).only is None
