from tests.auditing.making import small_audit


def test_the_facts_name_the_model_the_images_and_every_setting() -> None:
    found = small_audit(masks="half", methods="blind,biharmonic")
    facts = found.facts
    assert facts["model"]["name"] == found.title == "Memorizer"
    assert facts["model"]["train_loss"] < 1e-7
    assert facts["model"]["damage_moved"] > 0.5
    assert (facts["train"]["images"], facts["control"]["images"]) == (8, 6)
    assert list(facts["settings"]["methods"]) == ["blind", "zero-rule", "biharmonic"]
    assert facts["settings"]["without_model"] == ["biharmonic"]
    assert facts["settings"]["gamma_and_start"] == "given, or the paper's"
    assert facts["settings"]["thresholds"] == {"accurate": 1e-7, "approximate": 5e-4}


def test_without_control_or_prior_the_facts_say_so() -> None:
    facts = small_audit(control=None, masks="half", methods="iterate").facts
    assert (facts["control"], facts["prior"]) == (None, None)


def test_a_search_is_described_with_the_images_that_it_took() -> None:
    settings = small_audit(train=8, control=None, masks="half", methods="blind", gamma=None).facts["settings"]
    assert settings["gamma_and_start"].startswith("searched")
    assert [len(settings[name]) for name in ("tried", "tried_on_masks", "tuning_images_left_out")] == [6, 1, 4]
