import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor, nn

import recollect
from recollect import Blind, FullyConnected, Images, InputError, load
from recollect.auditing import Audit, AuditRequest, audit, run_audit
from recollect.auditing.request import STARTS
from recollect.auditing.tuning import GAMMAS, Tuning
from recollect.recovery import Recovery
from recollect.scoring import APPROXIMATE
from tests.auditing.making import images, pictures, small_audit
from tests.planted import Memorizer


def check(found: Audit, name: str) -> Any:
    return next(c for c in found.checks if c.name == name)


@pytest.fixture(scope="module")
def planted() -> Audit:
    return small_audit()


def test_what_a_memorizer_holds_is_found_and_nothing_else(planted: Audit) -> None:
    for mask in ("block", "half", "all masks", "any mask"):
        assert planted.rate("train", mask, "blind").value == 1
        assert planted.rate("control", mask, "blind", 5e-4).value == 0
    assert planted.excess() is not None
    assert planted.membership().auc == 1.0  # type: ignore[union-attr]
    assert (planted.sets, planted.masks) == (["train", "control"], ["block", "half"])
    assert planted.methods == ["blind", "zero-rule", "refined", "iterate", "known"]


def test_control_may_have_another_number_of_images_or_be_left_out(planted: Audit) -> None:
    assert len(planted.record("train", "half", "blind").ids) == 8
    assert len(planted.record("control", "half", "blind").ids) == 6
    alone = small_audit(train=3, control=None)
    assert (alone.sets, alone.excess(), alone.membership()) == (["train"], None, None)
    assert check(alone, "control").level == "warning"


def test_the_errors_are_those_of_the_methods_run_by_hand(planted: Audit) -> None:
    train = images(8, 1)
    seen = recollect.observe(train, recollect.mask("half", train.shape))
    by_hand = Blind(gamma=0.5)(Memorizer(train.pixels), seen.y)
    expected = recollect.Score.of(by_hand.estimate, train.pixels).mse.tolist()
    record = planted.record("train", "half", "blind")
    assert record.mse == expected
    assert record.rounds == by_hand.rounds.tolist()


def test_grey_images_one_image_and_masks_for_each() -> None:
    grey = images(3, 1, channels=1)
    found = small_audit(model=Memorizer(grey.pixels), given=grey, control=None, masks="random-each:0.3")
    assert found.rate("train", "any mask", "blind").value == 1
    one = small_audit(train=1, control=1, masks="half")
    assert one.rate("train", "half", "blind").total == 1


@pytest.mark.parametrize("form", ["module", "function", "lambda"])
def test_any_callable_can_be_audited(form: str) -> None:
    stored = images(4, 1)
    memorizer = Memorizer(stored.pixels)

    class Module(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return memorizer(x)

    def function(x: Tensor) -> Tensor:
        return memorizer(x)

    forms: dict[str, Any] = {"module": Module(), "function": function, "lambda": lambda x: memorizer(x)}
    found = small_audit(model=forms[form], given=stored, control=2, masks="half", methods="blind")
    assert found.rate("train", "half", "blind").value == 1


def test_a_network_in_train_mode_is_judged_in_eval_mode_and_left_as_it_was() -> None:
    stored = images(4, 1)
    net = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Unflatten(1, stored.shape)).train()
    found = small_audit(model=net, given=stored, control=None, masks="half", methods="iterate")
    assert check(found, "deterministic").level == "ok"
    assert net.training
    assert net[1].training


def test_a_model_that_samples_is_reported() -> None:
    stored = images(4, 1)

    def noisy(x: Tensor) -> Tensor:
        return Memorizer(stored.pixels)(x) + 1e-3 * torch.randn_like(x)

    found = small_audit(model=noisy, given=stored, control=None, masks="half", methods="iterate")
    assert check(found, "deterministic").level == "warning"


def test_a_model_that_becomes_nan_in_the_middle_costs_the_images_and_not_the_audit(tmp_path: Path) -> None:
    def nan_on_damage(x: Tensor) -> Tensor:
        return torch.where((x == 0).flatten(1).any(1).view(-1, 1, 1, 1), math.nan, x)

    found = small_audit(model=nan_on_damage, control=3, masks="half", out=tmp_path)
    assert set(found.record("train", "half", "iterate").stop) == {"diverged"}
    assert check(found, "stops").level == "warning"
    assert found.rate("train", "any mask", "blind").value == 0
    pd.read_csv(tmp_path / "images.csv")


def test_a_model_that_is_nan_from_the_start_is_refused() -> None:
    with pytest.raises(InputError, match="NaN or infinite"):
        small_audit(model=lambda x: x * math.nan)


# --- what is refused, before any work


def test_a_setting_that_no_method_takes_is_told() -> None:
    told: list[str] = []
    audit(lambda x: x * 0, train=images(8, 1), masks="half", methods="iterate", gamma=0.5, tell=told.append)
    assert told == ["The gamma is ignored: none of the methods (iterate) takes it."]
    audit(lambda x: x * 0, train=images(8, 1), masks="half", methods="iterate", gamma=0.5, tell=None)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"masks": "hlaf"}, "no mask 'hlaf'"),
        ({"methods": "blnd"}, "no method 'blnd'"),
        ({"gamma": "abc"}, "gamma is a number"),
        ({"start": "abc"}, "no start mask"),
        ({"noise_std": -1.0}, "zero or more, got -1"),
        ({"noise_std": math.nan}, "zero or more, got nan"),
        ({"attractors": -2}, "zero or more; got -2"),
        ({"control": images(8, 1)}, r"Every control image is also a training image \(pictures-1\)"),
        ({"control": images(8, 1)[2:4]}, "Every control image is also a training image"),
        ({"control": images(3, 2, size=4)}, "differ in size"),
        ({"model": 3}, "A model is an nn.Module"),
        ({"model": "nowhere.pt2"}, "nowhere.pt2"),
        ({"model": lambda x: (x, x)}, "output"),
        ({"model": lambda x: x[:, :, ::2]}, "returned 8x3x4x8 for images of 8x3x8x8"),
        ({"chunk": 0}, "chunk is a number of images"),
    ],
)
def test_mistakes_are_sentences(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        small_audit(out=tmp_path, **options)
    assert not list(tmp_path.glob("cells/*.json"))


# --- checks


def test_overlap_is_looked_for_in_the_images_that_tuning_left_out_too() -> None:
    train, control = images(8, 1), images(2, 2)
    mixed = Images(torch.cat([control.pixels, train.pixels[:1]]))  # image 0 is used for tuning
    found = small_audit(control=mixed, gamma=None)
    assert "0" in found.facts["settings"]["tuning_images_left_out"]
    assert "1 of the 3 unseen images" in check(found, "overlap").sentence


def test_black_pixels_duplicates_and_a_bad_fit_are_reported() -> None:
    pixels = pictures(6, 1)
    pixels[1] = pixels[0]
    pixels[2, :, :4] = 0
    found = small_audit(model=lambda x: x * 0.9, given=pixels, control=3, masks="half", methods="iterate")
    assert [check(found, n).level for n in ("black", "duplicates", "fit")] == ["warning", "note", "warning"]


# --- gamma and start


def test_a_foreign_model_is_tuned_on_images_that_are_then_left_out() -> None:
    found = small_audit(train=10, gamma=None, start=None)
    settings = found.facts["settings"]
    left_out = settings["tuning_images_left_out"]
    assert len(left_out) == 4
    for record in found.records:
        assert record.cell["set"] == "control" or not set(record.ids) & set(left_out)
    assert found.facts["train"]["images"] == 6
    assert len(settings["tried"]) == len(GAMMAS) * len(STARTS)
    assert settings["tried_on_masks"] == ["block", "half"]
    best = Tuning(left_out, settings["tried_on_masks"], settings["tried"]).best
    assert settings["methods"]["blind"]["gamma"] == best.gamma
    assert STARTS[found.record("train", "half", "blind").settings["method"]["start"]] is best.start


def test_given_settings_leave_no_image_out(planted: Audit) -> None:
    assert "tried" not in planted.facts["settings"]
    assert planted.facts["train"]["images"] == 8


def test_one_of_recollects_own_networks_takes_the_papers_settings() -> None:
    some = images(3, 1)
    net = FullyConnected(some.shape, layers=2, width=4)
    found = audit(net, train=some, masks="half", methods=["blind"])
    assert found.facts["settings"]["methods"]["blind"]["gamma"] == 0.5
    assert found.facts["train"]["images"] == 3


# --- attractors, methods of one's own, progress


def test_attractors_are_related_to_recovery_in_a_sentence(planted: Audit) -> None:
    found = small_audit(attractors=3)
    assert [set(r) for r in found.attractors or []] == [
        {"id", "fixed_point_error", "spectral_radius", "converged", "attractor", "recovered"}
    ] * 3
    assert "3 of the 3 training images examined are attractors" in check(found, "attractors").sentence
    assert "3 of 3 attractors" in str(found)
    assert planted.attractors is None


def test_a_model_without_derivatives_keeps_its_other_results() -> None:
    stored = images(4, 1)

    def through_numpy(x: Tensor) -> Tensor:
        return torch.from_numpy(Memorizer(stored.pixels)(torch.from_numpy(x.numpy())).numpy())

    found = small_audit(model=through_numpy, given=stored, control=2, masks="half", attractors=2)
    assert found.rate("train", "half", "blind").value == 1
    assert found.attractors is None
    assert check(found, "attractors").level == "warning"


class GivesUp:
    name, knows_truth = "gives-up", False

    def __call__(self, f: Any, y: Tensor, *, chunk: int | None = None, progress: Any = None) -> Recovery:
        nothing = torch.zeros(len(y), dtype=torch.int64)
        return Recovery(y, None, nothing, nothing, nothing + 5)


def test_a_method_of_ones_own_takes_the_same_path() -> None:
    found = small_audit(methods=[GivesUp(), "iterate"], masks="half")
    assert found.methods == ["gives-up", "iterate"]
    assert found.rate("train", "half", "gives-up").value == 0
    two = small_audit(methods={"low": Blind(gamma=0.1), "high": Blind(gamma=1.0)}, masks="half")
    assert two.record("train", "half", "low").mse != two.record("train", "half", "high").mse


def test_a_model_that_fails_with_many_images_is_named_and_runs_in_small_batches() -> None:
    stored = images(20, 1)

    def at_most_17(x: Tensor) -> Tensor:
        if len(x) > 17:
            raise ValueError("too many")
        return Memorizer(stored.pixels)(x)

    short: dict[str, Any] = {"masks": "half", "methods": [recollect.Iterate(limit=20)], "seed": 5}
    with pytest.raises(ValueError, match="too many") as raised:
        small_audit(20, model=at_most_17, **short)
    assert raised.value.__notes__ == [
        "The model raised this error, given 20 images", "chunk=16 gives the model at most 16 images at once",
    ]  # fmt: skip
    found = small_audit(20, model=at_most_17, chunk=17, **short)
    assert (found.rate("train", "half", "iterate").count, found.facts["settings"]["seed"]) == (20, 5)


def test_memory_that_does_not_suffice_costs_no_result(caplog: pytest.LogCaptureFixture) -> None:
    calls = []

    def runs_out(x: Tensor) -> Tensor:
        calls.append(len(x))
        if len(calls) == 61:
            raise MemoryError
        return Memorizer(images(8, 1).pixels)(x)

    found = small_audit(model=runs_out, masks="half", methods="blind")
    assert len(calls) > 61
    assert calls[61] == calls[60] // 2
    assert "The memory does not suffice" in caplog.text
    assert found.rate("train", "half", "blind").count == 8


def test_the_size_of_chunks_changes_nothing(planted: Audit) -> None:
    """Refined goes on for hundreds of steps where nothing is found; there float32 rounding decides where it ends."""
    by_three = small_audit(chunk=3)
    for found, whole in zip(by_three.records, planted.records, strict=True):
        if (whole.cell["set"], whole.cell["method"]) == ("control", "refined"):
            assert min(*found.mse, *whole.mse) > 10 * APPROXIMATE
            continue
        assert found.stop == whole.stop
        assert found.mse == pytest.approx(whole.mse, rel=1e-5, abs=1e-12)


@pytest.mark.gpu
def test_a_model_on_the_gpu_with_images_on_either_side(tmp_path: Path) -> None:
    some = images(6, 1)
    net = FullyConnected(some.shape, layers=2, width=4).cuda()
    for given in (some, some.pixels.cuda()):
        found = audit(net, train=given, control=images(4, 2), masks="half", attractors=1, out=tmp_path)
    assert "NVIDIA" in found.facts["provenance"]["device"]
    assert json.loads((tmp_path / "audit.json").read_text())["attractors"]


def test_fills_stand_beside_the_zero_filled_masks() -> None:
    """No method is told the fill: the paper's rule fails on noise, refined does not."""
    stored = load("photos?count=8&size=16")
    options: dict[str, Any] = {
        "model": Memorizer(stored.pixels),
        "given": stored,
        "control": None,
        "masks": "block,blur:1",
    }
    found = small_audit(**options, fill="zero,noise", methods="blind,refined,known")
    assert found.masks == ["block", "block+noise", "blur:1"]
    assert found.rate("train", "block+noise", "refined").value == 1
    assert found.rate("train", "block+noise", "known").value == 1
    assert found.rate("train", "block+noise", "blind").value < 0.5
    assert found.facts["settings"]["masks"]["blur:1"] == "blurred by a Gaussian of 1 pixels"


def test_the_rule_for_zeros_is_judged_where_erased_pixels_are_black() -> None:
    stored = load("photos?count=8&size=16")
    options: dict[str, Any] = {
        "model": Memorizer(stored.pixels),
        "given": stored,
        "control": None,
        "methods": "blind,known",
    }
    alone, beside = (small_audit(**options, masks=masks) for masks in ("block", "block,blur:2"))
    assert check(beside, "zero-rule").sentence == check(alone, "zero-rule").sentence


def test_a_blur_is_recovered_and_has_no_mask_to_agree_on(tmp_path: Path) -> None:
    stored = load("photos?count=8&size=16")
    options: dict[str, Any] = {
        "model": Memorizer(stored.pixels),
        "given": stored,
        "control": None,
        "masks": "blur:1,coarse:2",
    }
    found = small_audit(**options, methods="blind,refined,known", out=tmp_path)
    for name in ("blur:1", "coarse:2"):
        for method in ("blind", "refined", "known"):
            assert found.rate("train", name, method).value == 1
        assert found.record("train", name, "blind").mask_accuracy is None
    assert found.methods == ["blind", "refined", "known"]  # nothing is black, so no rule for zeros is beside blind
    assert not {"black", "zero-rule"} & {check.name for check in found.checks}
    assert (tmp_path / "report.html").exists()
    again = small_audit(**options, methods="blind,refined,known", out=tmp_path)
    assert [r.key for r in again.records] == [r.key for r in found.records]


def test_a_request_and_the_short_call_are_the_same_audit(planted: Audit) -> None:
    request = AuditRequest(
        Memorizer(images(8, 1).pixels), images(8, 1), images(6, 2), masks="block,half", gamma=0.5, start="half_kept"
    )
    found = run_audit(request)
    assert [r.mse for r in found.records] == [r.mse for r in planted.records]
    assert str(found) == str(planted)


def test_a_setting_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError, match="no setting of an audit 'mask'; choose from canaries, masks, fill"):
        small_audit(mask="half")


def test_nothing_is_searched_for_methods_that_have_no_gamma() -> None:
    for methods in ("iterate", [Blind(gamma=0.2)]):
        found = small_audit(train=4, masks="half", gamma=None, start=None, methods=methods)
        assert "tried" not in found.facts["settings"]
        assert found.facts["train"]["images"] == 4


def test_membership_is_calibrated_where_biharmonic_inpainting_was_run() -> None:
    given: dict[str, Any] = {"control": 20, "masks": "half"}
    found = small_audit(methods="iterate,biharmonic", **given)
    calibrated = found.calibrated_membership()
    assert calibrated is not None
    assert calibrated.auc > 0.9
    assert f"of equal difficulty: AUC {calibrated.auc:.3f}" in str(found.membership_sentence)
    rows = found.to_dict()["membership"]
    assert all(row["calibrated"]["auc"] >= 0 for row in rows)
    assert small_audit(methods="iterate", **given).calibrated_membership() is None
