import pytest

from recollect.auditing.checks import Check
from recollect.auditing.headline import attribution, headline, printout
from recollect.auditing.statistics import Statistics
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


def test_the_headline_is_one_sentence_with_intervals_and_the_control() -> None:
    sentence = headline(PLANTED)
    assert sentence.startswith("100% of the 8 training images can be recovered almost exactly from this model")
    assert "(95% interval 68% to 100%)" in sentence
    assert "damaged in at least one of 2 ways" in sentence
    assert sentence.endswith("of 6 images that it never saw, 0% (0% to 39%) and 0% (0% to 39%).")
    assert sentence.count(". ") == 0


def test_the_headline_without_control_and_of_one_mask() -> None:
    sentence = headline(statistics(record([0.0])))
    assert "damaged in one way; no control images were given" in sentence


def test_the_headline_says_what_a_method_knows_and_whether_it_used_the_model() -> None:
    known = headline(PLANTED, knowledge="a method that knows which pixels were erased")
    assert "ways, by a method that knows which pixels were erased; of 6 images" in known
    assert "can be restored almost exactly without this model (95%" in headline(PLANTED, sees_model=False)


@pytest.mark.parametrize(
    ("errors", "share"),
    [([0.0] * 249 + [1.0], "99.6%"), ([1.0] * 249 + [0.0], "0.40%"), ([1.0] * 250, "0%"), ([0.0] * 250, "100%")],
)
def test_a_rate_is_never_rounded_to_nothing_or_to_all(errors: list[float], share: str) -> None:
    assert headline(statistics(record(errors))).startswith(f"{share} of the 250")


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
        "Attribution: of 4 training images, blind recovers 1 almost exactly and 2 approximately that nothing restores "
        "approximately without this model. A generic prior (ddnm) and simple inpainting (biharmonic), which know the "
        "masks, restore 1 approximately."
    )
    alone = attribution(BOTH, {"methods": ["ddnm"], "beside": []}, ["ddnm"], 0.0)
    assert "A generic prior (ddnm) that knows the masks restores 1 approximately." in str(alone)


def test_nothing_is_attributed_without_a_prior_with_noise_or_where_no_model_is_used() -> None:
    assert attribution(BOTH, None, [], 0.0) is None
    assert attribution(statistics(*BOTH.records, main="ddnm"), PRIOR, ["ddnm", "biharmonic"], 0.0) is None
    assert str(attribution(BOTH, PRIOR, ["ddnm", "biharmonic"], 0.1)).startswith("No attribution: with noise")


# --- in full


def test_all_numbers_are_printed_and_only_checks_that_worry() -> None:
    checks = [Check("a", "ok", "Fine."), Check("b", "note", "Look here."), Check("c", "warning", "Mind this.")]
    text = printout(PLANTED, "The headline.", "The attribution.", checks, tuned_on=4)
    assert text.startswith("The headline.\n\nAlmost exactly recovered (MSE below 1e-07) by blind")
    assert "block      100 [68, 100]       0 [0, 39]           +100 [+49, +100]" in text
    assert "AUC 1.000" in text
    assert "The attribution." in text
    assert "searched on 4 other training images" in text
    assert text.endswith("note: Look here.\nwarning: Mind this.")
    assert "Fine." not in text


def test_methods_stand_side_by_side() -> None:
    text = printout(BOTH, "", None, [], 0)
    assert "blind         ddnm   biharmonic\nhalf        50 / 75      25 / 25        0 / 0" in text
    assert "any mask" not in text  # there is one mask
