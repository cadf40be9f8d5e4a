"""Write the state of a training run to a file, from which a killed run continues with the same bits."""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from recollect.checkpoints import read_tensors, write_tensors
from recollect.errors import InputError
from recollect.training.monitor import Point
from recollect.training.state import RunState, Snapshot
from recollect.training.stepper import Stepper

FILE = "training-state.safetensors"
FORMAT = "recollect-training-2"
_DIFFERENCES = {
    "network": "of another network", "recipe": "with another recipe", "data_hash": "on other images",
    "device": "on another device", "frozen": "with other frozen parameters",
}  # fmt: skip
_OPTIMIZER, _FROZEN = "optimizer.", "frozen."


@dataclass(frozen=True, eq=False)
class SavedState:
    """The tensors of a run, and its other values as JSON."""

    tensors: dict[str, Tensor]
    values: dict[str, Any]

    @classmethod
    def of(cls, state: RunState) -> SavedState:
        stepper = state.stepper
        tensors = {
            **_numbered("weight", stepper.weights),
            **_numbered("average", stepper.average),
            **_numbered("best", state.best.weights),
            **{_OPTIMIZER + name: tensor for name, tensor in stepper.optimizer.state().items()},
            **{_FROZEN + name: tensor for name, tensor in stepper.frozen.items()},
            "generator": stepper.drawn.generator.get_state(),
            "order": stepper.drawn.order,
        }
        values = {
            **state.identity(), "steps": state.steps, "seconds": state.seconds, "restarts": state.restarts,
            "rate": stepper.rate, "peak_rate": state.peak_rate,
            "annealing": [state.annealing.length, state.annealing.start],
            "forward_precision": stepper.forward_precision, "precision": state.precision,
            "best_loss": state.best.loss, "milestones": [milestone.wanted for milestone in state.milestones],
            "log": state.log, "last_intervention": state.monitor.last_intervention,
            "history": [list(astuple(point)) for point in state.monitor.history],
        }  # fmt: skip
        return cls(tensors, values)

    @classmethod
    def claim(cls, state: RunState) -> SavedState:
        """Say only whose folder this is: cheap to write before the first step."""
        return cls({}, state.identity())

    def restore(self, state: RunState, folder: Path) -> None:
        """Put a run where this one was; refuse the state of a run with other settings."""
        for name, value in state.identity().items():
            saved = self.values.get(name, [])  # a state without a list of frozen parameters has none
            if saved != value:
                raise InputError(
                    f"{folder} holds a training run {_DIFFERENCES[name]}{_describe_difference(saved, value)}; "
                    "continue it with its own settings (in Python: recipe=...), or choose another folder."
                )
        try:
            if self.tensors:
                self._restore_stepper(state.stepper)
                self._restore_run(state)
        except KeyError as error:
            raise InputError(f"The training state in {folder} is damaged: it lacks {error}.") from None

    def _restore_stepper(self, stepper: Stepper) -> None:
        stepper.set_weights(self._list("weight"))
        stepper.restart(self.values["rate"])
        stepper.set_frozen(self._named(_FROZEN))
        stepper.optimizer.load_state(self._named(_OPTIMIZER))
        torch._foreach_copy_(stepper.average, self._list("average"))  # keeps the memory format of the weights
        stepper.drawn.generator.set_state(self.tensors["generator"].cpu())
        stepper.drawn.order = self.tensors["order"]
        stepper.steps, stepper.forward_precision = self.values["steps"], self.values["forward_precision"]

    def _restore_run(self, state: RunState) -> None:
        values = self.values
        state.best = Snapshot(values["best_loss"], self._list("best"))
        state.seconds, state.restarts, state.log = values["seconds"], values["restarts"], values["log"]
        state.precision, state.peak_rate = values["precision"], values["peak_rate"]
        length, start = values["annealing"]
        state.annealing = replace(state.annealing, length=length, start=start)
        state.monitor.last_intervention = values["last_intervention"]
        state.monitor.history = [Point(*point) for point in values["history"]]

    def _named(self, prefix: str) -> dict[str, Tensor]:
        return {name.removeprefix(prefix): value for name, value in self.tensors.items() if name.startswith(prefix)}

    def _list(self, name: str) -> list[Tensor]:
        count = sum(key.startswith(f"{name}.") for key in self.tensors)
        return [self.tensors[f"{name}.{i}"] for i in range(count)]


def save_state(folder: Path, saved: SavedState) -> None:
    write_tensors(folder / FILE, saved.tensors, {"format": FORMAT, "values": json.dumps(saved.values)})


def has_state(folder: Path) -> bool:
    """Return whether a run in the folder can be resumed."""
    return (folder / FILE).exists()


def remove_state(folder: Path) -> None:
    """Remove the state of a finished run: it is several times as large as the weights, and nothing resumes from it."""
    (folder / FILE).unlink(missing_ok=True)


def load_state(folder: Path, device: torch.device) -> SavedState | None:
    """Read what an earlier run left in the folder; None if there is no state."""
    if not has_state(folder):
        return None
    tensors, metadata = read_tensors(folder / FILE, device)
    if metadata.get("format") != FORMAT:
        raise InputError(f"{folder / FILE} is not a training state that this version of recollect can continue.")
    return SavedState(tensors, json.loads(metadata["values"]))


def _describe_difference(saved: Any, now: Any) -> str:
    """Name the settings that differ, in brackets; hashes are left out."""
    if isinstance(saved, dict) and isinstance(now, dict):
        changes = []
        for name in {**saved, **now}:
            before, after = saved.get(name, "not set"), now.get(name, "not set")
            if before != after:
                changes.append(f"{name} {before}, now {after}")
        return f" ({', '.join(changes)})"
    return f" ({saved}, now {now})" if len(str(saved)) < 20 else ""


def _numbered(name: str, tensors: list[Tensor]) -> dict[str, Tensor]:
    return {f"{name}.{i}": tensor for i, tensor in enumerate(tensors)}
