"""What a run leaves in its folder: its state now and then, a checkpoint at each milestone, the loss curve."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.checkpoints import save_checkpoint, writing
from recollect.records import provenance
from recollect.training.curve import draw_curve, write_curve
from recollect.training.interventions import restarted_from
from recollect.training.outcome import BEST, LOG, Milestone, milestone_path, milestones_in, spell
from recollect.training.state import SavedRun, identity, load_run, save_run

if TYPE_CHECKING:
    from recollect.training.loop import Run

SAVE_SECONDS = 15.0  # between two states at least
SAVE_SHARE = 0.05  # of the time goes into writing at most
DISK = 5e8  # bytes a second, to guess what the first state will take


class Keeper:
    """Writes for a run and reads what an earlier one left; without a folder it does nothing."""

    def __init__(self, folder: Path | None, state_bytes: int) -> None:
        self.folder = folder
        self._next_save = time.monotonic() + _pause(state_bytes / DISK)

    def resume(self, run: Run) -> list[Milestone]:
        """Put the run where the state in the folder was, or claim the folder; milestones on disk there stay reached."""
        if self.folder is None:
            return []
        if saved := load_run(self.folder, run.images.device):
            saved.restore(run)
            run.say("resumed")
        milestones = milestones_in(self.folder, identity(run))
        for m in milestones:
            if m.steps > run.steps:
                run.say(f"reached {spell(m.wanted)} before it was interrupted, at step {m.steps}")
        if not saved:
            save_run(self.folder, SavedRun.start(run))  # also finds out now whether the folder can be written
        return milestones

    def milestone(self, run: Run, loss: float, wanted: float, finish: str | None) -> Path | None:
        """A checkpoint of the network as it stands."""
        if self.folder is None:
            return None
        path = milestone_path(self.folder, wanted)
        save_checkpoint(path, run.network, _about(run, loss, wanted, finish))
        return path

    def best(self, run: Run, loss: float, reached: bool) -> None:
        """The network as it stands, where the last milestone was not reached; where it was, its checkpoint is there."""
        if self.folder is None:
            return
        if reached:
            (self.folder / BEST).unlink(missing_ok=True)
        else:
            save_checkpoint(self.folder / BEST, run.network, _about(run, loss, None, None))

    def save_if_due(self, run: Run) -> None:
        if time.monotonic() > self._next_save:
            self.save(run)

    def save(self, run: Run) -> None:
        if self.folder is None:
            return
        before = time.monotonic()
        save_run(self.folder, SavedRun.of(run))
        write_curve(self.folder, run.watch.history)
        with writing(self.folder / LOG) as file:
            file.write_text("".join(f"{line}\n" for line in run.log))
        now = time.monotonic()
        self._next_save = now + _pause(now - before)

    def draw(self, run: Run) -> None:
        if self.folder:
            draw_curve(self.folder, run.watch.history, [m.wanted for m in run.milestones])


def _pause(writing: float) -> float:
    """Seconds between two states that each take `writing`."""
    return max(SAVE_SECONDS, writing / SAVE_SHARE)


def _about(run: Run, loss: float, wanted: float | None, finish: str | None) -> dict[str, Any]:
    """All that a checkpoint says of itself."""
    precision = {"steps": run.precision, "measured": "float32", "finish": "float64" if finish else None}
    return {
        "loss": loss, "milestone": wanted, "steps": run.steps, "seconds": round(run.seconds, 3),
        "recipe": run.recipe.record(), "seed": run.recipe.seed, "restarted_from": restarted_from(run),
        "data_hash": run.data_hash, "images": len(run.images), "precision": precision, "finish": finish, "log": run.log,
        **provenance(run.images.device),
    }  # fmt: skip
