from pathlib import Path
from typing import Any

import pytest
import torch

from recollect import Images, InputError
from recollect.auditing import Audit, audit
from recollect.auditing.generic_baseline import prior_facts
from recollect.diffusion import open_denoiser
from recollect.methods import DDNM, Blind
from tests.auditing.making import images, small_audit
from tests.diffusion.making import train_steps
from tests.gaussian import GaussianPrior
from tests.planted import Memorizer

WITH_PRIOR: dict[str, Any] = {"masks": "half", "methods": "blind,ddnm"}


@pytest.fixture(scope="module")
def prior(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prior that has seen three images: two of the audited training images, and another."""
    folder = tmp_path_factory.mktemp("prior")
    seen = Images(torch.cat([images(8, 1).pixels[:2], images(1, 9).pixels]), name="three pictures")
    train_steps(seen, folder)
    return folder


@pytest.fixture(scope="module")
def short(prior: Path) -> DDNM:
    """The method with this prior and few steps, for what does not depend on how well it restores."""
    return DDNM(open_denoiser(prior), steps=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit")


@pytest.fixture(scope="module")
def audited(prior: Path, folder: Path) -> Audit:
    """An audit with the prior as a user runs it, which takes long."""
    return small_audit(prior=prior, out=folder, **WITH_PRIOR)


def test_the_record_says_what_the_prior_was_trained_on_and_what_it_knows(
    audited: Audit, prior: Path, folder: Path
) -> None:
    facts = audited.to_dict()["prior"]
    assert (facts["name"], facts["trained_on"], facts["training_images"]) == (str(prior), "three pictures", 3)
    assert facts["known_to_it"]["train"] == {"exact": 2, "near": 0, "total": 8}
    assert facts["known_to_it"]["control"] == {"exact": 0, "near": 0, "total": 6}
    assert next(c for c in audited.checks if c.name == "prior").level == "warning"
    page = (folder / "report.html").read_text()
    assert "three pictures" in page
    assert audited.to_dict()["attribution"] in page
    assert facts["hash"] in audited.record("train", "half", "ddnm").settings["method"]["prior"]


def test_what_the_model_restores_and_the_prior_does_not_is_attributed(audited: Audit) -> None:
    assert audited.to_dict()["attribution"] == (
        "Attribution: attacks recover 8 of 8 training images, 8 of them accurately, that no generic method "
        "restores. A generic prior (ddnm) and simple inpainting (biharmonic), which know the masks, "
        "restore 0 approximately."
    )
    assert audited.to_dict()["attribution"] in " ".join(str(audited).split())
    assert small_audit(masks="half", methods="blind").to_dict()["attribution"] is None


def test_what_the_prior_restores_by_itself_is_not_attributed() -> None:
    """A prior that knows every image exactly: one point, or nothing but what is kept."""
    sure = GaussianPrior.low_rank((3, 8, 8), rank=1)
    x = Images(sure.sample(6).clamp(0, 1).float())
    exact = DDNM(sure, steps=200)
    found = audit(
        Memorizer(x.pixels),
        train=x,
        masks="half",
        gamma=0.5,
        start="half_kept",
        methods={"blind": "blind", "ddnm": exact},
    )
    restored = found.rate("train", "half", "ddnm", 5e-4).count
    assert restored > 0
    assert found.rate("train", "half", "ddnm", 1e-7).count < restored  # roughly restored counts, also beside exactly
    left = found.rate("train", "half", "blind", 5e-4).count - restored
    assert f"attacks recover {left} of 6 training images, {left} of them accurately" in str(
        found.to_dict()["attribution"]
    )
    assert found.to_dict()["prior"]["known_to_it"] == "unknown"
    assert next(c for c in found.checks if c.name == "prior").level == "note"


def test_what_a_smooth_surface_restores_is_not_attributed_either(short: DDNM) -> None:
    """Every smooth method restores planes: the model adds nothing, and a prior that cannot restore them is weak."""
    slopes = torch.linspace(0.2, 0.9, 8).view(1, 1, 1, 8) * torch.linspace(0.5, 1, 5).view(5, 1, 1, 1)
    planes = Images(slopes.expand(5, 3, 8, 8).clone())
    methods = {"blind": "blind", "ddnm": short}
    found = audit(Memorizer(planes.pixels), train=planes, masks="block", gamma=0.5, start="half_kept", methods=methods)
    assert found.rate("train", "block", "blind").count == found.rate("train", "block", "biharmonic").count == 5
    sentence = str(found.attribution)
    assert "attacks recover 0 of 5 training images, 0 of them accurately" in sentence
    assert sentence.endswith("restore 5 approximately.")
    strength = next(c for c in found.checks if c.name == "prior-strength")
    assert strength.level == "warning"
    assert strength.sentence.endswith("The prior is weak here: that it does not restore an image means little.")


def test_a_strong_prior_is_no_warning_whatever_it_is_called() -> None:
    sure = GaussianPrior.low_rank((3, 8, 8), rank=1)
    x = Images(sure.sample(6).clamp(0, 1).float())
    methods = {"blind": "blind", "generic": DDNM(sure, steps=200)}
    found = audit(Memorizer(x.pixels), train=x, masks="half", gamma=0.5, start="half_kept", methods=methods)
    assert next(c for c in found.checks if c.name == "prior-strength").level == "ok"
    assert "A generic prior (generic) and simple inpainting (biharmonic), which know the masks" in str(
        found.to_dict()["attribution"]
    )


def test_an_audit_takes_one_prior_by_whatever_settings() -> None:
    first, second = (GaussianPrior.low_rank((3, 8, 8), rank=rank) for rank in (1, 2))
    x = images(3, 1)
    methods = {"blind": "blind", "a": DDNM(first, steps=2), "b": DDNM(first, steps=3)}
    found = audit(Memorizer(x.pixels), train=x, masks="half", gamma=0.5, start="half_kept", methods=methods)
    assert found.to_dict()["prior"]["methods"] == ["a", "b"]
    assert "A generic prior (a, b) and simple inpainting (biharmonic)" in str(found.to_dict()["attribution"])
    with pytest.raises(InputError, match="An audit takes one diffusion prior"):
        audit(Memorizer(x.pixels), train=x, methods=methods | {"b": DDNM(second, steps=3)})


def test_simple_inpainting_is_known_by_its_class_and_needs_no_name_of_its_own(short: DDNM) -> None:
    found = small_audit(masks="half", methods={"blind": "blind", "ddnm": short, "smooth": "biharmonic"})
    assert found.methods == ["blind", "zero-rule", "ddnm", "smooth"]
    assert "and simple inpainting (smooth), which know the masks, restore" in str(found.to_dict()["attribution"])
    assert any(c.name == "prior-strength" for c in found.checks)
    other = small_audit(masks="half", methods={"blind": "blind", "biharmonic": short})
    assert "A generic prior (biharmonic) that knows the masks restores" in str(other.to_dict()["attribution"])
    assert not any(c.name == "prior-strength" for c in other.checks)
    first = small_audit(masks="half", methods={"biharmonic": "biharmonic", "ddnm": short})
    assert first.to_dict()["attribution"] is None


@pytest.mark.parametrize("methods", ["biharmonic", {"smooth": "biharmonic"}])
def test_the_surface_alone_is_not_called_the_models_memory(methods: str | dict[str, str]) -> None:
    found = small_audit(masks="half", methods=methods)
    assert found.headline.startswith("A smooth surface through the kept pixels of the known mask restores 0 of 8")
    assert "without this model, even approximately" in found.headline
    assert found.to_dict()["prior"] is None


def test_alone_it_is_not_called_the_models_memory(short: DDNM) -> None:
    found = small_audit(masks="half", methods={"ddnm": short})
    assert found.headline.startswith("A general diffusion model that never saw this one")
    assert "without this model, even approximately" in found.headline
    assert found.to_dict()["attribution"] is None


def test_with_noise_nothing_is_attributed(short: DDNM) -> None:
    found = small_audit(noise_std=0.02, masks="half", methods={"blind": "blind", "ddnm": short})
    assert str(found.to_dict()["attribution"]).startswith("No attribution: generic")


def test_the_strongest_settings_are_used(audited: Audit) -> None:
    method = audited.record("train", "half", "ddnm").settings["method"]
    assert (method["steps"], method["eta"], method["spacing"], method["draws"]) == (50, 1.0, "quadratic", 4)


def test_mistakes_are_told_before_any_work(prior: Path) -> None:
    def never(_x: torch.Tensor) -> torch.Tensor:
        raise AssertionError("no work should have begun")

    with pytest.raises(InputError, match="A prior is for the method ddnm; add ddnm to the methods"):
        audit(never, train=images(2, 1), prior=prior)
    with pytest.raises(InputError, match="The images are 16x16 and the prior knows 8x8"):
        audit(never, train=images(2, 1, size=16), methods="ddnm", prior=prior)
    with pytest.raises(InputError, match="colour images and was given grey images"):
        audit(never, train=images(2, 1, channels=1), methods="ddnm", prior=prior)
    with pytest.raises(InputError, match="There is no folder"):
        audit(never, train=images(2, 1), methods="ddnm", prior="no-such-folder")
    with pytest.raises(InputError, match=r"ddnm restores erased pixels and cannot undo blur:1.5"):
        audit(never, train=images(2, 1), masks="half,blur:1.5", methods="blind,ddnm", prior=prior)
    with pytest.raises(InputError, match=r"biharmonic restores erased pixels and cannot undo blur:1.5"):
        audit(never, train=images(2, 1), masks="half,blur:1.5", methods="blind,biharmonic")


def test_a_prior_that_is_open_already_is_taken_as_it_is(prior: Path) -> None:
    opened = open_denoiser(prior)
    found = small_audit(train=1, control=None, prior=opened, masks="half", methods="ddnm")
    assert found.to_dict()["prior"]["weights"] == opened.weights_hash
    assert prior_facts({"blind": Blind()}, {}) is None
