from dataclasses import replace

import pytest

from recollect.auditing.headline import attribution, find, headline, membership_sentence
from recollect.auditing.statistics import Statistics
from recollect.auditing.thresholds import APPROXIMATELY, EXACT
from recollect.records import Record


def record(errors: list[float], set_name: str = "train", mask: str = "half", method: str = "blind") -> Record:
    count = len(errors)
    cell = {"set": set_name, "mask": mask, "method": method}
    return Record(cell, {}, list(map(str, range(count))), errors, [1] * count, [40] * count, ["converged"] * count)


def statistics(*records: Record, main: str = "blind") -> Statistics:
    return Statistics(list(records), main)


PLANTED = statistics(
    record([1e-9] * 8, mask="block"),
    record([1e-9] * 7 + [1.0]),
    record([1.0] * 6, "control", "block"),
    record([1.0] * 6, "control"),
)


EXACTLY = find(PLANTED, EXACT)


def test_the_headline_is_short_with_the_interval_and_the_control() -> None:
    assert headline(EXACTLY) == (
        "Attacks recover 8 of 8 training images from this model (95% interval 68-100%). Of 6 images it never saw: 0."
    )
    assert EXACTLY.beside == "Counted: images recovered by blind under any of 2 masks, MSE below 1e-07."


def test_the_headline_of_a_model_that_fits_less_is_approximate_and_says_so() -> None:
    sentence = headline(find(PLANTED, APPROXIMATELY))
    assert sentence.startswith("Attacks approximately recover 8 of 8 training images from this model (95%")


def test_the_headline_without_control_and_of_one_mask() -> None:
    finding = find(statistics(record([0.0])), EXACT)
    assert headline(finding) == (
        "Attacks recover 1 of 1 training image from this model (95% interval 21-100%). "
        "No unseen images were given to compare with."
    )
    assert finding.beside.endswith("by blind under one mask, MSE below 1e-07.")


def test_the_headline_says_what_a_method_knows_and_whether_it_used_the_model() -> None:
    known = headline(EXACTLY, subject="a method that knows which pixels were erased")
    assert known.startswith(
        "A method that knows which pixels were erased recovers 8 of 8 training images from this model (95%"
    )
    without = headline(EXACTLY, sees_model=False, subject="a smooth surface")
    assert without.startswith(
        "A smooth surface restores 8 of 8 training images without this model (95% interval 68-100%). Of 6"
    )


def test_an_image_counts_if_any_attack_under_any_mask_recovers_it_in_both_sets() -> None:
    cells = [
        record([1e-9, 1.0, 1.0, 1.0], mask="half", method="refined"),
        record([1.0, 1.0, 1.0, 1e-9], mask="block", method="refined"),
        record([1.0, 1e-9, 1.0, 1e-9], mask="half", method="iterate"),
        record([1.0, 1.0, 1.0, 1.0], mask="block", method="iterate"),
        record([1e-9, 1e-9, 1e-9, 1e-9], mask="half", method="known"),
        record([1e-9, 1e-9, 1e-9, 1e-9], mask="block", method="known"),
    ]
    unseen = [replace(cell, cell={**cell.cell, "set": "control"}) for cell in cells]
    both = Statistics([*cells, *unseen], "refined", counted=["refined", "iterate"])
    finding = find(both, EXACT)
    assert (finding.train.count, finding.control) == (3, finding.train)
    assert finding.beside == (
        "Counted: images recovered by any of 2 attacks (refined, iterate) under any of 2 masks, MSE below 1e-07. "
        "Each of refined and iterate recovers 2 of 4."
    )
    weaker = [replace(cells[2], mse=[1.0] * 4) if cell is cells[2] else cell for cell in cells]
    assert find(Statistics(weaker, "refined", counted=both.counted), EXACT).beside.endswith(
        "The best single attack is refined: 2 of 4."
    )
    facts = finding.facts()
    assert (facts["train"]["count"], facts["control"]["count"], facts["best"]["train"]["count"]) == (3, 3, 2)
    assert facts["threshold"] == {"name": "exact", "mse": 1e-7}


@pytest.mark.parametrize(
    ("errors", "interval"),
    [
        ([0.0] * 999 + [1.0], "99.4-99.9%"),
        ([1.0] * 999 + [0.0], "0.018-0.56%"),
        ([1.0] * 250, "0-2%"),
        ([0.0] * 250, "98-100%"),
    ],
)
def test_an_interval_is_never_rounded_to_nothing_or_to_all(errors: list[float], interval: str) -> None:
    assert f"(95% interval {interval})" in headline(find(statistics(record(errors)), EXACT))


def test_images_that_came_out_in_other_ways_are_counted_on_top() -> None:
    """Of four training images one is recovered, one is what another led to, two are generated, one of them roughly."""
    train = record([1e-9, 1.0, 1.0, 1.0])
    train = replace(train, nearest=["0", None, "1", None], nearest_mse=[1e-9, None, 1e-9, None])
    handed = replace(statistics(train), generated={"0": 0.0, "2": 1e-9, "3": 1e-4})
    assert headline(find(handed, EXACT)) == (
        "Attacks recover 1 of 4 training images from this model (95% interval 5-70%). "
        "No unseen images were given to compare with. "
        "1 more training image resulted from damaged copies of other images. "
        "1 more training image appeared among samples of the model."
    )
    roughly = find(handed, APPROXIMATELY)
    assert "2 more training images appeared among samples of the model." in headline(roughly)
    assert roughly.facts()["handed_out"]["rate"]["count"] == 4


# --- attribution

PRIOR = {"methods": ["ddnm"], "beside": ["biharmonic"]}
BOTH = statistics(
    record([1e-9, 1e-9, 1e-4, 1.0]),
    record([1e-9, 1.0, 1.0, 1.0], method="ddnm"),
    record([1.0] * 4, method="biharmonic"),
)


def test_what_is_restored_without_the_model_is_not_attributed_to_it() -> None:
    sentence = attribution(BOTH, PRIOR, ["ddnm", "biharmonic"], 0.0)
    assert sentence == (
        "Attribution: attacks recover 2 of 4 training images, 1 of them accurately, that no generic method "
        "restores. A generic prior (ddnm) and simple inpainting (biharmonic), which know the masks, "
        "restore 1 approximately."
    )
    alone = attribution(BOTH, {"methods": ["ddnm"], "beside": []}, ["ddnm"], 0.0)
    assert "A generic prior (ddnm) that knows the masks restores 1 approximately." in str(alone)


def test_nothing_is_attributed_without_a_prior_with_noise_or_where_no_model_is_used() -> None:
    assert attribution(BOTH, None, [], 0.0) is None
    assert attribution(statistics(*BOTH.records, main="ddnm"), PRIOR, ["ddnm", "biharmonic"], 0.0) is None
    assert str(attribution(BOTH, PRIOR, ["ddnm", "biharmonic"], 0.1)).startswith("No attribution: generic")


def test_membership_in_words() -> None:
    sentence = str(membership_sentence(PLANTED))
    assert sentence.startswith("Membership, by the error of blind: AUC 1.000 (95% interval 0.722 ")
    assert sentence.endswith("to 1.000; 0.5 is guessing).")
    assert membership_sentence(BOTH) is None
