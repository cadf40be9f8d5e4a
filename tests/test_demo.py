from pathlib import Path

from recollect.demo import DEMO, Demo
from recollect.sources import load


def test_it_has_forty_photographs_of_each_kind() -> None:
    train, control = load(DEMO.train), load(DEMO.control)
    assert (len(train), train.shape, len(control)) == (40, (3, 32, 32), 40)
    assert not set(train.ids) & set(control.ids)


def test_its_network_is_trained_and_audited(tmp_path: Path) -> None:
    small = Demo("photos?count=4&size=8", "photos?count=3&size=8&part=control", layers=2, width=16, loss=0.2)
    training = small.train_network(tmp_path / "training")
    assert training.reached
    assert (training.network.settings["layers"], training.network.settings["width"]) == (2, 16)
    found = small.audit_network(training.network, tmp_path / "audit")
    assert (found.facts["train"]["images"], found.facts["control"]["images"]) == (4, 3)
    assert (tmp_path / "audit" / "report.html").exists()
