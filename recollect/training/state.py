"""The state of a training run on disk, from which a killed run goes on as if nothing had happened."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from recollect.checkpoints import describe_network, read_tensors, write_tensors
from recollect.errors import InputError
from recollect.training.control import Point

if TYPE_CHECKING:
    from recollect.training.training import Run

FILE = "training-state.safetensors"
FORMAT = "recollect-training-1"


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
            **_identity(run), "steps": run.steps, "seconds": run.seconds, "tries": run.tries, "rate": stepper.rate,
            "stepper_steps": stepper.steps,            "precision": stepper.forward_precision,
            "best_loss": run.best_loss, "log": run.log,
            "since": run.watch.since, "history": [list(asdict(p).values()) for p in run.watch.history],
        }  # fmt: skip
        return cls(tensors, facts)

    def restore(self, run: Run) -> None:
        """Put a run where this one was; refuses the state of a run with other settings."""
        for name, value in _identity(run).items():
            if self.facts[name] != value:
                raise InputError(
                    f"{run.folder} holds a training run with another {name.replace('_', ' ')}; "
                    "continue it with its own settings, or choose another folder."
                )
        facts, stepper = self.facts, run.stepper
        stepper.set_weights(self._list("weight"))
        stepper.restart(facts["rate"])
        stepper.optimizer.load_state(
            {n.removeprefix("optimizer."): t for n, t in self.tensors.items() if n.startswith("optimizer.")}
        )
        stepper.average = self._list("average")
        stepper.draws.set_state(self.tensors["draws"].cpu())
        stepper.order = self.tensors["order"]
        stepper.steps = facts["stepper_steps"]
        stepper.forward_precision = facts["precision"]
        run.best_loss, run.best_weights = facts["best_loss"], self._list("best")
        run.steps, run.seconds, run.tries, run.log = facts["steps"], facts["seconds"], facts["tries"], facts["log"]
        run.watch.since = facts["since"]
        run.watch.history = [Point(*values) for values in facts["history"]]

    def _list(self, name: str) -> list[Tensor]:
        count = sum(key.startswith(f"{name}.") for key in self.tensors)
        return [self.tensors[f"{name}.{i}"] for i in range(count)]


def save_run(folder: Path, run: SavedRun) -> None:
    write_tensors(folder / FILE, run.tensors, {"format": FORMAT, "facts": json.dumps(run.facts)})


def load_run(folder: Path, device: torch.device) -> SavedRun | None:
    """What an earlier run left in the folder, if there is anything."""
    if not (folder / FILE).exists():
        return None
    tensors, metadata = read_tensors(folder / FILE, device)
    if metadata.get("format") != FORMAT:
        raise InputError(f"{folder / FILE} is not a training state that this version of recollect can continue.")
    return SavedRun(tensors, json.loads(metadata["facts"]))


def _identity(run: Run) -> dict[str, Any]:
    """What must be equal for a run to be continued."""
    recipe = {k: list(v) if isinstance(v, tuple) else v for k, v in run.recipe.record().items()}
    return {"network": json.loads(describe_network(run.network)), "recipe": recipe, "training_set": run.data_hash}


def _numbered(name: str, tensors: list[Any]) -> dict[str, Tensor]:
    return {f"{name}.{i}": t for i, t in enumerate(tensors)}
