"""A gate cannot pass a leaking model, nor an audit that means nothing."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from recollect import FullyConnected, Images, Refined, audit, load, train_to_loss
from recollect.auditing import Audit
from recollect.training import Recipe
from tests.auditing.making import images, pictures, small_audit
from tests.planted import Memorizer

STORED = images(40, 1)
UNSEEN = images(30, 2)


def gated(model: Any, train: Images = STORED, **more: Any) -> Audit:
    options: dict[str, Any] = {"control": UNSEEN, "masks": "half", "methods": "iterate", "fail_above": 0.1}
    return audit(model, train=train, **options | more)


def test_a_network_that_reproduces_its_images_by_eye_fails_and_leads_with_that() -> None:
    """At a train loss of about 1e-5 no image is recovered to 1e-7, and all are to 5e-4."""
    train, control = load("photos?count=12&size=16"), load("photos?count=12&size=16&part=control")
    network = FullyConnected(train.shape, layers=4, width=256, seed=0)
    training = train_to_loss(network, train, 4e-5, recipe=Recipe(seed=0), device="cpu")
    found = audit(
        training.network, train=train, control=control, masks="block,dust", methods="refined", fail_above=0.01
    )
    assert found.rate("train", "any mask", "refined").count == 0
    assert found.headline.startswith(
        "Attacks approximately recover 12 of 12 training images from this model (95% interval 76-100%). "
        "Of 12 images it never saw: 0."
    )
    assert found.verdict is not None
    assert (found.verdict.outcome, found.verdict.exit_code) == ("failed", 3)


def test_a_perfect_fit_does_not_hide_images_that_are_recovered_by_eye() -> None:
    """Whole images are returned as they are, damaged ones 2.5 grey levels too bright: an MSE of 1e-4."""

    def nearly(x: Tensor) -> Tensor:
        damaged = (x == 0).flatten(1).any(1).view(-1, 1, 1, 1)
        return torch.where(damaged, Memorizer(STORED.pixels, sharpness=1e4)(x) + 0.01, x)

    found = gated(nearly)
    assert found.facts["model"]["train_loss"] == 0
    assert found.headline.startswith(f"Attacks approximately recover {found.finding.train.count} of 40 training images")
    assert found.finding.train.count > 20
    assert found.finding.beside.endswith("Accurately (MSE below 1e-07): 0 of 40, and 0 of 30 unseen images.")
    nothing = gated(_fits_and_forgets)
    assert nothing.headline.startswith("Attacks recover 0 of 40 training images from this model, even approximately (")


def shaken(x: Tensor) -> Tensor:
    """Fit the stored images and never settle on damaged ones."""
    near = Memorizer(STORED.pixels)(x)
    far = ((x - near).square().flatten(1).mean(1) > 1e-3).view(-1, 1, 1, 1)
    return torch.where(far, x * 1e30, near)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda x: x * 0 + 0.5, "The model does not fit its training images"),
        (lambda x: x, "The model copies its input"),
        (FullyConnected(STORED.shape, layers=2, width=8), "The model does not fit its training images"),
        (shaken, "No recovery settled"),
    ],
    ids=["one answer", "identity", "untrained", "diverges"],
)
def test_an_audit_that_means_nothing_is_inconclusive(model: Callable[[Tensor], Tensor], words: str) -> None:
    found = gated(model)
    assert found.verdict is not None
    assert (found.verdict.outcome, found.verdict.exit_code) == ("inconclusive", 4)
    assert words in found.verdict.reason
    assert found.to_dict()["verdict"]["outcome"] == "inconclusive"


def test_without_unseen_images_an_audit_may_fail_and_cannot_pass() -> None:
    assert gated(Memorizer(STORED.pixels), control=None).verdict.outcome == "failed"  # type: ignore[union-attr]
    restoring = gated(_fits_and_forgets, control=None).verdict
    assert restoring is not None
    assert restoring.outcome == "inconclusive"
    assert "No unseen images were given" in restoring.reason


def _fits_and_forgets(x: Tensor) -> Tensor:
    """Return whole images as they are, and grey for damaged ones."""
    damaged = (x == 0).flatten(1).any(1).view(-1, 1, 1, 1)
    return torch.where(damaged, 0.5, x)


STRONGEST: dict[str, Any] = {"methods": "refined", "gamma": 0.5, "start": "half_kept"}


def test_a_model_that_forgets_passes_with_enough_images_and_else_says_how_many() -> None:
    passed = gated(_fits_and_forgets, **STRONGEST).verdict
    assert passed is not None
    assert (passed.outcome, passed.exit_code, passed.value) == ("passed", 0, 0.0)
    few = gated(_fits_and_forgets, **STRONGEST, train=STORED[:10]).verdict
    assert few is not None
    assert (few.outcome, few.images_needed) == ("inconclusive", 29)
    copies = gated(_fits_and_forgets, **STRONGEST, train=Images(STORED.pixels[:4].repeat(10, 1, 1, 1)))
    assert copies.verdict is not None
    assert "of only 4 different images is" in copies.verdict.reason
    assert len(copies.facts["train"]["repeated"]) == 36
    weak = gated(_fits_and_forgets).verdict
    assert weak is not None
    assert weak.reason.endswith("The attack refined, usually the strongest, was not run; add it to the methods.")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ({"masks": {"one": torch.arange(64).view(8, 8).eq(9).expand(3, 8, 8).numpy()}}, "no mask keeps more than 1.6%"),
        ({"noise_std": 25.0}, "the noise (standard deviation 25) hides them"),
    ],
)
def test_damage_that_leaves_nothing_cannot_make_a_model_pass(damage: dict[str, Any], words: str) -> None:
    verdict = gated(_fits_and_forgets, **STRONGEST, **damage).verdict
    assert verdict is not None
    assert verdict.outcome == "inconclusive"
    assert words in verdict.reason


FEW = STORED[:12]
CENTRE = FEW.pixels.flatten(1).mean(0)
DIRECTIONS = torch.linalg.svd(FEW.pixels.flatten(1) - CENTRE, full_matrices=False).Vh


def nearest_blend(x: Tensor) -> Tensor:
    """Return the linear combination of stored images that is nearest to x: iteration stays where it begins."""
    centre, directions = CENTRE.to(x), DIRECTIONS.to(x)
    return ((x.flatten(1) - centre) @ directions.T @ directions + centre).view_as(x)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"gamma": 1e6}, "The settings of the strongest attack weaken it: a gamma of 1e+06, outside 0.1 to 3."),
        (
            {"methods": Refined(limit=1, steps=1, restart_steps=1, polish_steps=1)},
            "weaken it: at most 1,003 passes through the model, usually 13,000",
        ),
        (
            {"methods": Refined(restart_steps=1, polish_steps=1), "fill": "noise"},
            "weaken it: restart_steps=1, usually 80 and polish_steps=1, usually 200.",
        ),
    ],
    ids=["gamma", "passes", "steps of searches"],
)
def test_settings_that_hide_a_leak_cannot_make_a_model_pass(settings: dict[str, Any], words: str) -> None:
    options = STRONGEST | {"train": FEW, "fail_above": 0.5} | settings
    found = gated(nearest_blend, **options | STRONGEST).verdict
    assert found is not None
    assert (found.outcome, found.value) == ("failed", 1.0)
    hidden = gated(nearest_blend, **options).verdict
    assert hidden is not None
    assert (hidden.outcome, hidden.value) == ("inconclusive", 0.0)
    assert words in hidden.reason


def test_a_threshold_that_no_copy_meets_cannot_make_a_model_pass() -> None:
    """Whole images are returned as they are, damaged ones a thousandth of a grey level too bright: an MSE of 1e-11."""

    def nearly(x: Tensor) -> Tensor:
        damaged = (x == 0).flatten(1).any(1).view(-1, 1, 1, 1)
        return torch.where(damaged, Memorizer(STORED.pixels, sharpness=1e4)(x) + 3e-6, x)

    both = STRONGEST | {"methods": "refined,iterate"}
    assert gated(nearly, **both, threshold="exact").verdict.outcome == "failed"  # type: ignore[union-attr]
    strict = gated(nearly, **both, threshold=1e-13).verdict
    assert strict is not None
    assert (strict.outcome, strict.value) == ("inconclusive", 0.0)
    assert "The threshold of 1e-13 is below 1e-07" in strict.reason


def test_training_images_that_come_out_of_other_pictures_are_counted() -> None:
    found = gated(_hands_out_the_first)
    assert (found.finding.train.count, found.finding.returned["control"].different) == (0, 1)
    assert found.verdict is not None
    assert found.verdict.reason.startswith(
        "1 of 40 training images (2.5%) are recovered (MSE below 5e-04), 1 of them only as the result of "
        "damaged copies of other images"
    )
    assert gated(_hands_out_the_first, fail_above=0.02).verdict.outcome == "failed"  # type: ignore[union-attr]


def _hands_out_the_first(x: Tensor) -> Tensor:
    """Return the first stored image from every damaged image but its own."""
    first = STORED.pixels[:1].to(x)
    own = (x - first)[:, :, :2].square().flatten(1).mean(1).view(-1, 1, 1, 1) < 1e-6  # the upper rows are kept
    damaged = (x == 0).flatten(1).any(1).view(-1, 1, 1, 1)
    return torch.where(damaged, torch.where(own, 0.5, first), x)


def test_unseen_images_that_were_trained_on_cannot_make_a_model_pass() -> None:
    """Control images that the model holds too are recovered as often: no excess, and no pass."""
    verdict = gated(Memorizer(STORED.pixels), train=STORED[:20], control=STORED[20:], fail_above=0.5).verdict
    assert verdict is not None
    assert verdict.judged == "excess"
    assert verdict.outcome == "inconclusive"
    assert "unseen images are recovered accurately: the model was trained on them too" in verdict.reason


def test_methods_that_are_told_the_mask_can_fail_a_model_and_not_pass_it() -> None:
    assert gated(Memorizer(STORED.pixels), methods="known").verdict.outcome == "failed"  # type: ignore[union-attr]
    told = gated(_fits_and_forgets, methods="known").verdict
    assert told is not None
    assert "No attack was run: every method knows the mask." in told.reason


def test_where_unseen_images_are_recovered_too_nothing_is_blamed_on_memory() -> None:
    """One dark pixel erased is small damage: by eye every image is recovered, unseen ones too."""
    mask = torch.ones(3, 8, 8, dtype=torch.bool)
    mask[:, 0, 0] = False
    train, control = (Images(pictures(count, seed).where(mask, 0.1)) for count, seed in ((40, 3), (30, 4)))
    found = gated(lambda x: x, train=train, control=control, masks={"pixel": mask.numpy()})
    assert found.verdict is not None
    assert "40 of 40 training images (100.0%)" in found.verdict.reason
    assert "so are 30 of 30 unseen images" in found.verdict.reason
    assert (found.verdict.judged, found.verdict.value) == ("excess", 0.0)
    assert found.verdict.outcome == "inconclusive"  # it copies its input


def test_the_headline_is_never_below_a_single_attack_of_the_same_audit() -> None:
    found = small_audit(masks="block,half", fill="noise", methods="refined,iterate")
    threshold = found.finding.threshold.mse
    for method in found.methods:
        assert found.finding.train.count >= found.rate("train", "any mask", method, threshold).count
    assert found.finding.best_train.count == max(
        found.rate("train", "any mask", method, threshold).count for method in found.counted
    )


def test_copies_of_training_images_are_no_unseen_images() -> None:
    """20 of 25 control images are training images: equal, nearly equal, mirrored and shifted ones."""
    copies = STORED.pixels[:20].clone()
    copies[5:10] += 0.01 * (0.5 - pictures(5, 9))
    copies[10:15] = copies[10:15].flip(3)
    copies[15:] = copies[15:].roll((1, -1), (2, 3))
    control = Images(torch.cat([copies, pictures(5, 8)]), [f"c{i}" for i in range(25)])
    found = gated(Memorizer(STORED.pixels), control=control)
    assert "Of 5 images it never saw: 0." in found.headline
    left_out = found.to_dict()["control"]["copies_left_out"]
    assert [(row["image"], row["training_image"]) for row in left_out] == [(f"c{i}", str(i)) for i in range(20)]
    assert [row["moved"] for row in left_out[9:16:3]] == ["", "mirrored", "shifted by 1, -1 pixels"]
    (check,) = (check for check in found.checks if check.name == "overlap")
    assert check.sentence.startswith("20 of the 25 unseen images are copies of training images")
    assert found.record("control", "half", "iterate").ids == [f"c{i}" for i in range(20, 25)]
