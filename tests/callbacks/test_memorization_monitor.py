"""A monitor sees memorization begin where full audits do, and does not change the training that it watches."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from recollect import FullyConnected, Images, InputError, audit, load
from recollect.callbacks import MemorizationMonitor, SampleAudit
from recollect.scoring import APPROXIMATE, Rate
from tests.auditing.making import images, pictures
from tests.planted import Memorizer

STORED, UNSEEN = images(16, 1), images(16, 2)


def train(network: nn.Module, pixels: Tensor, epochs: int, after_epoch: Callable[[nn.Module, int], Any]) -> None:
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for epoch in range(1, epochs + 1):
        network.train()
        optimizer.zero_grad()
        mse_loss(network(pixels), pixels).backward()
        optimizer.step()
        after_epoch(network, epoch)


def nothing(_network: nn.Module, _epoch: int) -> None:
    """What a training without a monitor does after an epoch."""


# --- when memorization begins


def test_the_onset_is_within_one_checkpoint_of_that_of_full_audits() -> None:
    """All images under six masks, by the paper's attack: no evidence two checkpoints before, evidence one after."""
    images, control, every = load("photos?count=24&size=8"), load("photos?count=24&size=8&part=control"), 40
    watch = MemorizationMonitor(images, control, every=every, images=16, tell=lambda _: None)
    checkpoints: dict[int, nn.Module] = {}

    def after_epoch(network: nn.Module, epoch: int) -> None:
        if watch(network, epoch):
            checkpoints[epoch] = deepcopy(network)

    train(FullyConnected(images.shape, layers=4, width=128, seed=0), images.pixels, 7 * every, after_epoch)
    assert watch.onset is not None

    def full_audit_shows_it(epoch: int) -> bool:
        full = audit(checkpoints[epoch], train=images, control=control, methods="blind", pictures=False)
        return watch.shows_memorization(*(full.any_attack(name).rate(APPROXIMATE) for name in ("train", "control")))

    assert not full_audit_shows_it(watch.onset - 2 * every)
    assert full_audit_shows_it(watch.onset + every)


def test_what_is_memorized_is_told_once_with_its_numbers() -> None:
    told: list[str] = []
    watch = MemorizationMonitor(STORED, UNSEEN, every=5, tell=told.append)
    assert watch(lambda x: x * 0 + 0.5, 5) == SampleAudit(5, Rate(0, 16), Rate(0, 16), begun=False)
    assert watch.onset is None
    model = Memorizer(STORED.pixels)
    assert watch(model, 9) is None
    for epoch in (10, 15):
        found = watch(model, epoch)
        assert found is not None
        assert found.metrics == {"memorization/train": 1, "memorization/control": 0, "memorization/excess": 1}
    assert watch.onset == 10
    assert [one.epoch for one in watch.history] == [5, 10, 15]
    assert told == [
        "Memorization begins. After 10 epochs 16 of 16 training images can be recovered, and 0 of 16 unseen images."
    ]


def test_nothing_is_told_if_nobody_listens(capsys: pytest.CaptureFixture[str]) -> None:
    watch = MemorizationMonitor(STORED, UNSEEN, tell=None)
    watch(Memorizer(STORED.pixels), 10)
    assert watch.onset == 10
    assert capsys.readouterr() == ("", "")


def test_a_model_that_restores_unseen_images_as_well_has_not_begun_to_memorize() -> None:
    both = Memorizer(torch.cat([STORED.pixels, UNSEEN.pixels]))
    found = MemorizationMonitor(STORED, UNSEEN)(both, 10)
    assert found is not None
    assert (found.train.count, found.control.count, found.begun) == (16, 16, False)


@pytest.mark.parametrize(
    ("train", "control", "begun"),
    [((4, 32), (0, 32), False), ((5, 32), (0, 32), True), ((20, 32), (14, 32), False), ((40, 600), (0, 600), False)],
    ids=["chance", "evidence", "both", "too small a share"],
)
def test_evidence_is_a_share_that_chance_does_not_explain(
    train: tuple[int, int], control: tuple[int, int], begun: bool
) -> None:
    watch = MemorizationMonitor(STORED, UNSEEN)
    assert watch.shows_memorization(Rate(*train), Rate(*control)) is begun


def test_unseen_images_that_are_training_images_are_left_out() -> None:
    """Half of the unseen images are held by the model; counted, they would hide what is memorized."""
    control = Images(torch.cat([STORED.pixels[:8], pictures(8, 3)]))
    found = MemorizationMonitor(STORED, control)(Memorizer(STORED.pixels), 10)
    assert found is not None
    assert (found.control, found.begun) == (Rate(0, 8), True)


def test_a_model_that_does_not_take_the_whole_sample_is_refused_before_training() -> None:
    def f(x: Tensor) -> Tensor:
        if len(x) > 17:
            raise RuntimeError("too many images")
        return x

    with pytest.raises(InputError, match=r"too many images\).*--chunk 16"):
        MemorizationMonitor(pictures(20, 1), pictures(20, 2)).check(f)


# --- the training that is watched


class Noisy(nn.Module):
    """Draws random numbers whenever it is called, while it is judged too."""

    def __init__(self) -> None:
        super().__init__()
        self.network = FullyConnected(STORED.shape, layers=2, width=16, seed=0)
        self.drop = nn.Dropout(0.2)

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(self.network(x)) + 1e-3 * torch.randn_like(x)


@pytest.mark.parametrize("make", [Noisy, lambda: FullyConnected(STORED.shape, layers=3, width=16, seed=0)])
def test_the_weights_are_the_same_to_the_bit_with_a_monitor_and_without(make: Callable[[], nn.Module]) -> None:
    weights = []
    for watch in (nothing, MemorizationMonitor(STORED, UNSEEN, every=2, images=8)):
        torch.manual_seed(3)
        network = make()
        train(network, STORED.pixels, 6, watch)
        assert network.training
        weights.append(list(network.parameters()))
    assert all(torch.equal(a, b) for a, b in zip(*weights, strict=True))


# --- mistakes


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"control": None}, "A monitor needs unseen images too"),
        ({"control": STORED}, "Every control image is also a training image"),
        ({"every": 0}, "every is a number of epochs, 1 or more; got 0"),
        ({"images": 3}, "images is a number of images, 8 or more; got 3"),
        ({"begins_at": 10}, "begins_at is a share of the training images, between 0 and 1; got 10"),
        ({"chunk": 0}, "chunk is a number of images, 1 or more; got 0"),
        ({"gamma": 0}, "gamma"),
        ({"masks": "nothere"}, "nothere"),
        ({"threshold": "near"}, "near"),
    ],
)
def test_mistakes_are_refused_before_the_training(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        MemorizationMonitor(STORED, **{"control": UNSEEN} | settings)


def test_a_number_of_epochs_is_a_whole_number() -> None:
    with pytest.raises(InputError, match="The number of epochs done is a whole number; got 'last'"):
        MemorizationMonitor(STORED, UNSEEN)(lambda x: x, "last")  # type: ignore[arg-type]


def test_a_model_that_cannot_be_audited_is_refused_after_the_first_epoch() -> None:
    watch = MemorizationMonitor(STORED, UNSEEN, every=100)
    with pytest.raises(InputError, match="The model returned"):
        watch(lambda x: x[:, :1], 1)


def test_a_model_that_returns_its_loss_is_told_to_return_the_image() -> None:
    with pytest.raises(InputError, match="returned a single number, as a loss is; give a function of images"):
        MemorizationMonitor(STORED, UNSEEN).check(lambda x: mse_loss(x * 0.9, x))


def test_a_model_of_few_images_at_once() -> None:
    given: list[int] = []

    def model(x: Tensor) -> Tensor:
        given.append(len(x))
        if len(x) > 5:
            raise ValueError("at most 5 images")
        return x * 0 + 0.5

    with pytest.raises(InputError, match="chunk=4"):
        MemorizationMonitor(STORED, UNSEEN)(model, 10)
    given.clear()
    assert MemorizationMonitor(STORED, UNSEEN, chunk=4)(model, 10) is not None
    assert max(given) == 4


def test_a_model_that_breaks_in_training_is_told_once() -> None:
    told: list[str] = []
    watch = MemorizationMonitor(STORED, UNSEEN, every=1, images=8, tell=told.append)
    watch(lambda x: x * 0, 1)
    assert told == []
    for epoch in (2, 3):
        watch(lambda x: x * torch.nan, epoch)
    assert told == ["After 2 epochs the model's outputs are not finite, so nothing is recovered."]
