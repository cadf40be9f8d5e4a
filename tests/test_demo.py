from pathlib import Path

from recollect import FullyConnected
from recollect.demo import DEMO, DIFFUSION_DEMO, Demo, DiffusionDemo
from recollect.sources import load


def test_it_has_forty_photographs_of_each_kind() -> None:
    train, control = load(DEMO.train), load(DEMO.control)
    assert (len(train), train.shape, len(control)) == (40, (3, 32, 32), 40)
    assert not set(train.ids) & set(control.ids)


def test_its_network_is_trained_and_audited(tmp_path: Path) -> None:
    small = Demo(
        "photos?count=4&size=8", "photos?count=3&size=8&part=control", layers=2, width=16, loss=0.2, masks="half"
    )
    training = small.train_network(tmp_path / "training")
    assert training.reached
    assert isinstance(training.network, FullyConnected)
    assert (training.network.settings["layers"], training.network.settings["width"]) == (2, 16)
    found = small.audit_network(training.network, tmp_path / "audit")
    assert (found.facts["train"]["images"], found.facts["control"]["images"]) == (4, 3)
    assert (tmp_path / "audit" / "report.html").exists()


def test_its_diffusion_model_is_trained_and_audited_on_the_same_photographs(tmp_path: Path) -> None:
    assert (DIFFUSION_DEMO.train, DIFFUSION_DEMO.control) == (DEMO.train, DEMO.control)
    small = DiffusionDemo(
        "photos?count=8&size=8", "photos?count=3&size=8&part=control", 16, 1, 4, max_steps=3, masks="block",
        methods="iterate",
    )  # fmt: skip
    denoiser = small.train_denoiser(tmp_path / "denoiser")
    assert denoiser.network.settings == {"shape": (3, 8, 8), "width": 16, "blocks": 1}
    result = small.audit_denoiser(denoiser, tmp_path / "audit")
    assert result.facts["train"]["images"] == 8
    assert "control" in result.facts
    assert (tmp_path / "audit" / "report.html").exists()
