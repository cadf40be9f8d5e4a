"""What a scenario is handed: its random numbers, a folder of its own, and the inputs that all scenarios share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.torture.commands import COMMANDS, Command, Reference, read_reference
from tests.torture.outcome import Outcome


@dataclass(frozen=True)
class Trial:
    """One draw of a scenario."""

    seed: int
    folder: Path  # empty, for this trial alone
    shared: Path  # inputs, valid files and references, which nobody may change

    @property
    def inputs(self) -> Path:
        return self.shared / "inputs"

    def random(self) -> Random:
        return Random(self.seed)

    def draw_command(self, rng: Random) -> Command:
        """Draw one of the commands whose undisturbed outcome is known."""
        known = {folder.name for folder in (self.shared / "references").iterdir()}
        return COMMANDS[rng.choice(sorted(known & set(COMMANDS)))]

    def reference(self, command: Command) -> Reference:
        return read_reference(self.shared / "references" / command.name)


Scenario = Callable[[Trial], list[Outcome]]
