"""The state of a training run on disk, from which a killed run goes on as if nothing had happened."""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from recollect.checkpoints import describe_network, read_tensors, write_tensors
from recollect.errors import InputError
from recollect.training.curve import DRAWING, TABLE
from recollect.training.monitor import Point
from recollect.training.outcome import BEST, LOG, MILESTONE_FILES

if TYPE_CHECKING:
    from recollect.training.loop import Run
    from recollect.training.stepper import Stepper

FILE = "training-state.safetensors"
FORMAT = "recollect-training-1"
_OTHER = {
    "network": "of another network", "recipe": "with another recipe", "data_hash": "on other images",
    "device": "on another device",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class SavedRun:
    """Everything a run needs to go on: tensors, and facts as JSON."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]

    @classmethod
    def of(cls, run: Run) -> SavedRun:
        stepper = run.stepper
        tensors = {
            **_numbered("weight", stepper.weights),
            **_numbered("average", stepper.average),
            **_numbered("best", run.best_weights),
            **{f"optimizer.{name}": t for name, t in stepper.optimizer.state().items()},
            "draws": stepper.draws.get_state(),
            "order": stepper.order,
        }
        facts = {
            **identity(run), "steps": run.steps, "seconds": run.seconds, "tries": run.tries, "rate": stepper.rate,
            "top_rate": run.top_rate, "fall": [run.fall.length, run.fall.begin],
            "forward_precision": stepper.forward_precision, "precision": run.precision,
            "best_loss": run.best_loss, "log": run.log,
            "since": run.watch.since, "history": [list(astuple(p)) for p in run.watch.history],
        }  # fmt: skip
        return cls(tensors, facts)

    @classmethod
    def start(cls, run: Run) -> SavedRun:
        """Whose folder this is, and no more: written before the first step, it costs nothing."""
        return cls({}, identity(run))

    def restore(self, run: Run) -> None:
        """Put a run where this one was; refuses the state of a run with other settings."""
        for name, value in identity(run).items():
            if self.facts.get(name) != value:
                raise InputError(
                    f"{run.folder} holds a training run {_OTHER[name]}{_differences(self.facts.get(name), value)}; "
                    "continue it with its own settings (in Python: recipe=...), or choose another folder."
                )
        try:
            if self.tensors:
                self._restore_stepper(run.stepper)
                self._restore_run(run)
        except KeyError as error:
            raise InputError(f"The training state in {run.folder} is damaged: it lacks {error}.") from None

    def _restore_stepper(self, stepper: Stepper) -> None:
        facts = self.facts
        stepper.set_weights(self._list("weight"))
        stepper.restart(facts["rate"])
        stepper.optimizer.load_state(
            {n.removeprefix("optimizer."): t for n, t in self.tensors.items() if n.startswith("optimizer.")}
        )
        torch._foreach_copy_(stepper.average, self._list("average"))  # into tensors laid out as the weights are
        stepper.draws.set_state(self.tensors["draws"].cpu())
        stepper.order = self.tensors["order"]
        stepper.steps, stepper.forward_precision = facts["steps"], facts["forward_precision"]

    def _restore_run(self, run: Run) -> None:
        facts = self.facts
        run.best_loss, run.best_weights = facts["best_loss"], self._list("best")
        run.seconds, run.tries, run.log = facts["seconds"], facts["tries"], facts["log"]
        run.precision, run.top_rate = facts["precision"], facts["top_rate"]
        length, begin = facts["fall"]
        run.fall = replace(run.fall, length=length, begin=begin)
        run.watch.since = facts["since"]
        run.watch.history = [Point(*values) for values in facts["history"]]

    def _list(self, name: str) -> list[Tensor]:
        count = sum(key.startswith(f"{name}.") for key in self.tensors)
        return [self.tensors[f"{name}.{i}"] for i in range(count)]


def save_run(folder: Path, run: SavedRun) -> None:
    write_tensors(folder / FILE, run.tensors, {"format": FORMAT, "facts": json.dumps(run.facts)})


def load_run(folder: Path, device: torch.device) -> SavedRun | None:
    """What an earlier run left in the folder, if there is anything."""
    for name in (FILE, TABLE, DRAWING, LOG, BEST, MILESTONE_FILES):
        for leftover in folder.glob(f".{name}.*"):  # of a run killed while it wrote
            leftover.unlink(missing_ok=True)
    if not (folder / FILE).exists():
        return None
    tensors, metadata = read_tensors(folder / FILE, device)
    if metadata.get("format") != FORMAT:
        raise InputError(f"{folder / FILE} is not a training state that this version of recollect can continue.")
    return SavedRun(tensors, json.loads(metadata["facts"]))


def identity(run: Run) -> dict[str, Any]:
    """What must be equal for a run to be continued."""
    recipe = json.loads(json.dumps(run.recipe.record()))  # as it comes back from a file
    network = json.loads(describe_network(run.network))
    return {"network": network, "recipe": recipe, "data_hash": run.data_hash, "device": run.images.device.type}


def _differences(was: Any, now: Any) -> str:
    """Which settings differ, in brackets; hashes would tell nobody anything."""
    if isinstance(was, dict) and isinstance(now, dict):
        pairs = {n: (was.get(n, "not set"), now.get(n, "not set")) for n in {**was, **now}}
        return f" ({', '.join(f'{n} {a}, now {b}' for n, (a, b) in pairs.items() if a != b)})"
    return f" ({was}, now {now})" if len(str(was)) < 20 else ""


def _numbered(name: str, tensors: list[Any]) -> dict[str, Tensor]:
    return {f"{name}.{i}": t for i, t in enumerate(tensors)}
