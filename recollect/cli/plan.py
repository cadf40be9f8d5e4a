"""recollect plan: write down what an audit will do before any result is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from recollect.cli.printing import echo
from recollect.errors import InputError
from recollect.files.names import printable

INTRODUCTION = """\
# The plan of an audit: recollect audit --plan {name}
# The primary endpoint is the share of training images that any attack recovers: fail-above and threshold decide.
# Settings behind a # have the default that is shown; ... means not set.
"""


def plan_command(
    ctx: typer.Context,
    model: Annotated[str, typer.Argument(help="The autoencoder, as for recollect audit.", metavar="MODEL")],
    train: Annotated[str, typer.Option(metavar="SOURCE", help="The images that it was trained on.")],
    control: Annotated[str, typer.Option(metavar="SOURCE", help="Images like them that the model never saw.")],
    fail_above: Annotated[str, typer.Option(metavar="SHARE", help="The largest share that may be recovered.")] = "1%",
    threshold: Annotated[
        str,
        typer.Option(
            metavar="LEVEL", help="The error below which an image counts as recovered: exact, approximate or a number."
        ),
    ] = "approximate",
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("audit.toml"),
) -> None:
    """Write the plan of an audit as a TOML file, for recollect audit --plan."""
    from recollect.auditing.thresholds import read_threshold
    from recollect.cli.audit import NOT_PLANNED, read_rate_limit

    read_rate_limit(fail_above)
    read_threshold(threshold)
    if out.exists():
        raise InputError(f"{out} is there already; a plan is written once. Give another name with --out.")
    chosen = {"model": model, "train": train, "control": control, "fail_above": fail_above, "threshold": threshold}
    command = ctx.parent.command.commands["audit"]  # type: ignore[union-attr]
    lines = [_line(param, chosen) for param in command.params if param.name not in NOT_PLANNED]
    try:
        out.write_text(INTRODUCTION.format(name=printable(str(out))) + "\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror or error}.") from None
    echo(f"The plan: {out}")


def _line(param: Any, chosen: dict[str, Any]) -> str:
    name = str(param.name)
    if name in chosen:
        return f"{name.replace('_', '-')} = {_toml(chosen[name])}"
    default = "..." if param.default is None else _toml(_plain(param.default))
    return f"# {name.replace('_', '-')} = {default}"


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def _toml(value: Any) -> str:
    """Write a value; TOML's strings, numbers and booleans are those of JSON."""
    return json.dumps(value)
