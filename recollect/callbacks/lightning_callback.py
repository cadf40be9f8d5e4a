"""The monitor as a callback of Lightning."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from typing import TYPE_CHECKING, Any

from recollect.callbacks.memorization_monitor import MemorizationMonitor, SampleAudit
from recollect.errors import InputError
from recollect.scoring import Rate

if TYPE_CHECKING:
    from lightning.pytorch import Callback, LightningModule, Trainer
    from lightning.pytorch.utilities.rank_zero import rank_zero_info
else:
    PACKAGES = ("lightning.pytorch", "pytorch_lightning")  # one library under two names
    for package in PACKAGES:
        with suppress(ModuleNotFoundError):
            Callback = import_module(package).Callback
            rank_zero_info = import_module(f"{package}.utilities.rank_zero").rank_zero_info
            break
    else:
        raise InputError("MemorizationCallback needs Lightning: pip install 'recollect[lightning]'.")


class MemorizationCallback(Callback):
    """Audit a sample every few epochs, log what is recovered, and stop the training on request.

    Args:
        train: Training images, as for `MemorizationMonitor`, which is `monitor` here.
        control: Unseen images.
        stop: Whether the training ends when memorization begins.
        autoencoder: Gives the function from images to images, where it is not the LightningModule itself; for example
            `lambda module: open_model(module.vae, output="sample")`.
        settings: All other settings of `MemorizationMonitor`.

    Examples:
        >>> from recollect.callbacks import MemorizationCallback
        >>> train, control = "photos?count=8&size=8", "photos?count=8&size=8&part=control"
        >>> callback = MemorizationCallback(train, control, every=5, images=8, stop=True)  # for Trainer(callbacks=...)
        >>> callback.monitor.every
        5
    """

    def __init__(
        self, train: Any, control: Any = None, *, stop: bool = False,
        autoencoder: Callable[[LightningModule], Any] | None = None, **settings: Any,
    ) -> None:  # fmt: skip
        if autoencoder is not None and not callable(autoencoder):
            raise InputError(
                "autoencoder is a function of the LightningModule, such as lambda module: module.vae; "
                f"got {autoencoder!r}."
            )
        self.monitor = MemorizationMonitor(train, control, **{"tell": rank_zero_info, **settings})
        self.stop = stop
        self._autoencoder = autoencoder or (lambda module: module)

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:  # noqa: ARG002
        """Refuse a model that cannot be audited before hours of training."""
        self.monitor.check(self._autoencoder(pl_module))

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        audit = self.monitor(self._autoencoder(pl_module), trainer.current_epoch + 1)
        if audit is None:
            return
        pl_module.log_dict(audit.metrics, sync_dist=True)
        # Every process audits the same sample, but rounding may differ: they have to stop together.
        begun = trainer.strategy.reduce_boolean_decision(self.monitor.onset is not None, all=False)
        trainer.should_stop = trainer.should_stop or (self.stop and begun)

    def state_dict(self) -> dict[str, Any]:
        """Keep the history in Lightning's checkpoints: a resumed training still knows its onset."""
        return {"history": [asdict(audit) for audit in self.monitor.history]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.monitor.history = [
            SampleAudit(**{**audit, "train": Rate(**audit["train"]), "control": Rate(**audit["control"])})
            for audit in state_dict["history"]
        ]
