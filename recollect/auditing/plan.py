"""A plan: the settings of an audit in a TOML file, written down before any result is known."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recollect.auditing.verdict import Gate
from recollect.errors import InputError
from recollect.sources import runs_code

SETS = ("train", "control")
ENDPOINT = ("fail_above", "threshold")  # a plan names what decides


@dataclass(frozen=True)
class Plan:
    """A plan that was read: its file, its hash, and the settings in it."""

    file: str
    sha256: str
    settings: Mapping[str, Any]
    overridden: tuple[str, ...] = ()  # settings that the command line set otherwise

    def facts(self, gate: Gate | None) -> dict[str, Any]:
        """Give plain values for audit.json."""
        endpoint = "none"
        if gate:
            endpoint = (
                f"The share of training images that any attack recovers under any mask ({gate.threshold}), at most "
                f"{gate.limit:.2%}."
            )
        return {"file": self.file, "sha256": self.sha256, "endpoint": endpoint, "overridden": list(self.overridden)}


def read_plan(path: str | Path, known: Collection[str]) -> Plan:
    """Read a plan; `known` are the settings that there are. It has to name its primary endpoint."""
    try:
        content = Path(path).read_bytes()
        written = tomllib.loads(content.decode())
    except FileNotFoundError:
        raise InputError(f"There is no plan {path}; recollect plan writes one.") from None
    except (OSError, ValueError, RecursionError) as error:  # TOML that cannot be decoded or parsed is a ValueError
        raise InputError(f"The plan {path} cannot be read as TOML: {error}.") from None
    settings = {name.replace("-", "_"): value for name, value in written.items()}
    unknown = [name for name in settings if name not in known]
    if unknown:
        raise InputError(f"The plan {path} sets {unknown[0]!r}, which is no setting of an audit: {', '.join(known)}.")
    if missing := [name for name in ENDPOINT if name not in settings]:
        raise InputError(
            f"The plan {path} does not set {missing[0].replace('_', '-')}: a plan names its primary endpoint before "
            'any result, with fail-above (such as "1%") and threshold (such as "approximate").'
        )
    _check_no_code(path, settings)
    return Plan(str(path), hashlib.sha256(content).hexdigest(), settings)


def _check_no_code(path: str | Path, settings: Mapping[str, Any]) -> None:
    """Refuse images that code of the user's gives: no file may name code for a source."""
    for name in SETS:
        if runs_code(str(settings.get(name, ""))):
            raise InputError(
                f"The plan {path} names code for {name}, which no file may do: give --{name} on the command line."
            )
