"""Write the page about the command line from the commands themselves.

python docs/cli_reference.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recollect.cli.app import EPILOG, app
from recollect.cli.listings import LISTINGS

PAGE = Path(__file__).parent / "reference" / "cli.md"
HEAD = """\
# Command line

This page is for people who run Recollect in a terminal. It lists every command with its options.
`recollect COMMAND --help` prints the same.
"""
HIDDEN = ("help", "install_completion", "show_completion")
PAGES = {  # where the lists are explained that the help contains
    "{methods}": "[methods](../concepts/methods.md)",
    "{degradations}": "[masks](glossary.md#masks)",
    "{fills}": "[fills](../concepts/methods.md#fills)",
    "{model_formats}": "[models](models.md)",
    "{networks}": "[training](../concepts/training.md)",
    "{denoising_networks}": "[training a diffusion model](../concepts/diffusion.md#training-one)",
    "{sources}": "[source addresses](../guide/choose-images.md#source-addresses)",
}


def page() -> str:
    """Write the page."""
    import typer

    root = typer.main.get_command(app)
    parts = [HEAD, *command_parts("recollect", root), "## Exit codes\n", EPILOG.partition("\n\n")[2]]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n"


def command_parts(name: str, command: Any) -> Iterator[str]:
    """Yield the section of a command, and those of its subcommands."""
    yield f"## {name}\n"
    yield plain(command.help or "") + "\n"
    for panel, parameters in panels(command).items():
        rows = "\n".join(row(parameter) for parameter in parameters)
        yield f"**{panel}**\n" if panel else ""
        yield f"| option | default | meaning |\n|---|---|---|\n{rows}\n"
    for child, subcommand in getattr(command, "commands", {}).items():
        yield from command_parts(f"{name} {child}", subcommand)


def panels(command: Any) -> dict[str | None, list[Any]]:
    """Group the parameters of a command as its help does; None is the group without a title."""
    shown = [parameter for parameter in command.params if parameter.name not in HIDDEN]
    titles = dict.fromkeys(getattr(parameter, "rich_help_panel", None) for parameter in shown)
    return {
        title: [parameter for parameter in shown if getattr(parameter, "rich_help_panel", None) == title]
        for title in titles
    }


def row(parameter: Any) -> str:
    """Write the row of an option or an argument."""
    names = [*parameter.opts, *parameter.secondary_opts] if parameter.param_type_name == "option" else []
    metavar = parameter.metavar or ""
    shown = ", ".join(code(f"{name} {metavar}".strip()) for name in names) or code(metavar or parameter.name.upper())
    default = "" if parameter.default in (None, False, True, "", ()) else f"`{parameter.default}`"
    default = "required" if parameter.required else default
    cells = (shown, default, plain(parameter.help or "").replace("|", "\\|"))
    return f"| {' | '.join(cells)} |"


def code(text: str) -> str:
    """Write code for a cell; the site would show the backslash of a bar between backticks."""
    return f"<code>{text.replace('|', '&#124;')}</code>" if "|" in text else f"`{text}`"


def plain(text: str) -> str:
    """Join the lines of a help text; a list leads to the page that explains it."""
    for name in LISTINGS:
        text = text.replace(name, f"See {PAGES[name]}." if name in PAGES else LISTINGS[name]())
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
