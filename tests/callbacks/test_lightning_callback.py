"""The callback in real trainings by Lightning, under each of its two names."""

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

import recollect.callbacks
from recollect import FullyConnected, Images, InputError, load, open_model

if TYPE_CHECKING:
    from recollect.callbacks import MemorizationCallback

# Lightning's own, on torch that is newer than it, and on a loader as small as this one.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*is deprecated:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),
]
PACKAGES = ("lightning.pytorch", "pytorch_lightning")
EVERY = 20


@pytest.fixture(scope="module")
def photos() -> tuple[Images, Images]:
    return load("photos?count=12&size=8"), load("photos?count=12&size=8&part=control")


@pytest.fixture
def callback(photos: tuple[Images, Images]) -> Any:
    """Makes a callback; the network of `fit` takes values in [-1, 1], as `open_model` is told."""
    pytest.importorskip(PACKAGES[0])

    def make(**settings: Any) -> "MemorizationCallback":
        adapted = {"autoencoder": lambda module: open_model(module.network, input_range="-1,1")}
        return recollect.callbacks.MemorizationCallback(*photos, every=EVERY, **adapted | settings)

    return make


def fit(callback: Any, images: Images, epochs: int, package: str = PACKAGES[0]) -> Any:
    pl = pytest.importorskip(package)

    class Autoencoder(pl.LightningModule):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.network = FullyConnected(images.shape, layers=3, width=96, seed=0)

        def training_step(self, batch: list[Tensor], _number: int) -> Tensor:
            return mse_loss(self.network(batch[0]), batch[0])

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.Adam(self.parameters(), lr=3e-3)

    trainer = pl.Trainer(
        max_epochs=epochs, callbacks=[callback], accelerator="cpu", devices=1, logger=False, enable_progress_bar=False,
        enable_model_summary=False, enable_checkpointing=False,
    )  # fmt: skip
    trainer.fit(Autoencoder(), DataLoader(TensorDataset(2 * images.pixels - 1), batch_size=len(images)))
    return trainer


@pytest.mark.parametrize("package", PACKAGES)
def test_it_logs_what_is_recovered_and_stops_when_memorization_begins(
    callback: Any, photos: tuple[Images, Images], package: str
) -> None:
    told: list[str] = []
    watch = callback(stop=True, tell=told.append)
    trainer = fit(watch, photos[0], 400, package)
    assert EVERY < watch.monitor.onset == trainer.current_epoch < 400
    (sentence,) = told
    assert sentence.startswith(f"Memorization begins. After {watch.monitor.onset} epochs")
    last = watch.monitor.history[-1].metrics
    assert {name: float(value) for name, value in trainer.logged_metrics.items()} == pytest.approx(last)
    assert last["memorization/excess"] >= 0.1


def test_unless_asked_to_stop_it_only_logs(callback: Any, photos: tuple[Images, Images]) -> None:
    watch = callback(tell=lambda _: None)
    assert fit(watch, photos[0], 8 * EVERY).current_epoch == 8 * EVERY
    assert [audit.epoch for audit in watch.monitor.history] == list(range(EVERY, 8 * EVERY + 1, EVERY))
    assert watch.monitor.onset < 8 * EVERY


def test_a_resumed_training_knows_what_was_seen_before(
    callback: Any, photos: tuple[Images, Images], tmp_path: Path
) -> None:
    first, second = callback(), callback()
    fit(first, photos[0], EVERY).save_checkpoint(tmp_path / "last.ckpt")
    saved = torch.load(tmp_path / "last.ckpt", weights_only=True)["callbacks"]
    second.load_state_dict(saved[second.state_key])
    assert second.monitor.history == first.monitor.history != []


def test_a_model_that_cannot_be_audited_is_refused_before_the_first_step(
    callback: Any, photos: tuple[Images, Images]
) -> None:
    watch = callback(autoencoder=lambda _: lambda x: x[:, :1])
    with pytest.raises(InputError, match="The model returned"):
        fit(watch, photos[0], 1)


def test_an_autoencoder_that_is_no_function_is_refused(callback: Any) -> None:
    with pytest.raises(InputError, match=r"lambda module: module\.vae; got 'vae'"):
        callback(autoencoder="vae")


def test_without_lightning_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PACKAGES:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "recollect.callbacks.lightning_callback", raising=False)
    with pytest.raises(InputError, match=r"pip install 'recollect\[lightning\]'"):
        import_module("recollect.callbacks.lightning_callback")
