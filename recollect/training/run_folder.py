"""The folder of a run: its state, a checkpoint at each milestone, the loss curve and the log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from recollect.checkpoints import load_checkpoint_about, save_checkpoint
from recollect.errors import InputError
from recollect.records import atomically, provenance
from recollect.training.curve import draw_curve, write_curve
from recollect.training.outcome import Milestone, format_loss
from recollect.training.saved_state import FILE as STATE
from recollect.training.saved_state import SavedState, load_state, save_state
from recollect.training.state import RunState

BEST = "best.safetensors"  # of a run that stopped before its last milestone
LOG = "log.txt"
MILESTONES = "loss-*.safetensors"
SAVE_SECONDS = 15.0  # between two saved states at least
SAVE_SHARE = 0.05  # of the time that saving takes at most
DISK_SPEED = 5e8  # bytes a second, to estimate how long the first state takes


class RunFolder:
    """Writes the files of a run and reads those of an earlier one; does nothing without a folder."""

    def __init__(self, folder: Path | None, clock: Callable[[], float], state_bytes: int = 0) -> None:
        self.folder, self._clock = folder, clock
        self._next_save = clock() + _save_interval(state_bytes / DISK_SPEED)

    def resume(self, state: RunState) -> None:
        """Continue from the state and milestones in the folder, or claim the folder for this run."""
        if self.folder is None:
            return
        saved = load_state(self.folder, state.images.device)
        if saved:
            saved.restore(state, self.folder)
            state.note("resumed")
        on_disk = find_milestones(self.folder, state.identity())
        if saved:
            self._check_complete(on_disk, saved)
        state.milestones = [milestone for milestone in on_disk if milestone.steps <= state.steps]
        state.ahead = [milestone for milestone in on_disk if milestone.steps > state.steps]
        for milestone in state.ahead:
            wanted = format_loss(milestone.wanted)
            state.note(
                f"reached {wanted} at step {milestone.steps}, after its last saved state; these steps are taken again"
            )
        if not saved:
            save_state(self.folder, SavedState.claim(state))  # shows now whether the folder is writable

    def _check_complete(self, on_disk: list[Milestone], saved: SavedState) -> None:
        """Refuse a run that lacks a checkpoint: its weights of now are not those that reached the loss."""
        assert self.folder is not None
        present = {milestone.wanted for milestone in on_disk}
        for wanted in saved.values.get("milestones", ()):
            if wanted not in present:
                raise InputError(
                    f"{milestone_path(self.folder, wanted)} was removed after the run had reached this loss; put it "
                    f"back, or remove {self.folder / STATE} as well to train anew."
                )

    def save_milestone(self, state: RunState, loss: float, wanted: float, solved: str | None) -> Path | None:
        """Write a checkpoint of the network as it is; returns its path."""
        if self.folder is None:
            return None
        path = milestone_path(self.folder, wanted)
        save_checkpoint(path, state.network, _metadata(state, loss, wanted, solved))
        return path

    def save_best(self, state: RunState, loss: float, reached: bool) -> None:
        """Write the network as it is, unless the checkpoint of the last milestone holds it."""
        if self.folder is None:
            return
        if reached:
            (self.folder / BEST).unlink(missing_ok=True)
        else:
            save_checkpoint(self.folder / BEST, state.network, _metadata(state, loss, None, None))

    @property
    def save_is_due(self) -> bool:
        return self._clock() > self._next_save

    def save(self, state: RunState) -> None:
        """Write the state, the table of the loss curve and the log."""
        if self.folder is None:
            return
        started = self._clock()
        save_state(self.folder, SavedState.of(state))
        write_curve(self.folder, state.monitor.history)
        with atomically(self.folder / LOG) as file:
            file.write_text("".join(f"{line}\n" for line in state.log))
        finished = self._clock()
        self._next_save = finished + _save_interval(finished - started)

    def draw(self, state: RunState) -> None:
        """Draw the loss curve."""
        if self.folder:
            draw_curve(self.folder, state.monitor.history, [m.wanted for m in state.milestones])


def milestone_path(folder: Path, wanted: float) -> Path:
    return folder / MILESTONES.replace("*", format_loss(wanted))


def find_milestones(folder: Path, identity: dict[str, Any]) -> list[Milestone]:
    """Read the milestones in a folder, highest loss first; refuse those of another run."""
    milestones = []
    for path in folder.glob(MILESTONES):
        about = load_checkpoint_about(path)
        if any(about.get(name) != identity[name] for name in ("network", "recipe", "data_hash")):
            raise InputError(f"{path} is of another network, recipe or training set; choose another folder.")
        milestones.append(Milestone(about["milestone"], about["loss"], about["steps"], about["seconds"], path))
    return sorted(milestones, key=lambda milestone: milestone.wanted, reverse=True)


def _save_interval(writing: float) -> float:
    """Return the seconds between two saved states that each take `writing` seconds."""
    return max(SAVE_SECONDS, writing / SAVE_SHARE)


def _metadata(state: RunState, loss: float, wanted: float | None, solved: str | None) -> dict[str, Any]:
    """Return all that a checkpoint says about itself."""
    finish = "float64" if solved else None
    precision = {"steps": state.precision, "measured": "float32", "finish": finish}
    return {
        "loss": loss, "milestone": wanted, "steps": state.steps, "seconds": round(state.seconds, 3),
        "recipe": state.recipe.record(), "seed": state.recipe.seed, "restarted_from": state.restarted_from,
        "data_hash": state.data_hash, "images": len(state.images), "precision": precision, "finish": solved,
        "log": state.log, **provenance(state.images.device),
    }  # fmt: skip
