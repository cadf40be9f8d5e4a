"""The page about the command line is that of the commands."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import typer

from recollect.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]
spec = spec_from_file_location("cli_reference", ROOT / "docs" / "cli_reference.py")
assert spec
assert spec.loader
reference = module_from_spec(spec)
spec.loader.exec_module(reference)


def test_the_committed_page_is_that_of_the_commands() -> None:
    assert reference.PAGE.read_text() == reference.page(), "run: python docs/cli_reference.py"


def test_every_command_and_its_options_are_listed() -> None:
    page = reference.page()
    commands = re.findall(r"^## (recollect.*)$", page, re.M)
    assert {"recollect audit", "recollect canaries make", "recollect paper run"} <= set(commands)
    audit = page.split("## recollect audit\n")[1].split("\n## ")[0]
    assert "`--threshold LEVEL` | `approximate` |" in audit
    assert "<code>--layout nchw&#124;nhwc</code> |" in audit
    assert "**When the audit fails, for CI**\n\n| option |" in audit
    assert "| `MODEL` | required |" in audit
    assert "<code>--activation lrelu&#124;prelu&#124;softplus</code> |" in page
    assert "{" not in re.sub(r"`[^`]*`", "", page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_on_a_page_have_only_options_that_exist(page: Path) -> None:
    wrong = [command for command in commands_of(page.read_text()) if not options_of(command) <= known_options(command)]
    assert wrong == []


def test_an_option_that_does_not_exist_is_found() -> None:
    (command,) = commands_of("Write\n\n    recollect audit MODEL --train A \\\n        --mistake B  # wrong\n")
    assert options_of(command) == {"--train", "--mistake"}
    assert options_of(command) - known_options(command) == {"--mistake"}
    assert known_options("recollect nothing --train A") == set()


def commands_of(text: str) -> list[str]:
    """The commands of a page, in its indented examples and within its sentences."""
    text = text.replace("\\\n", " ")
    lines = [line.partition(" # ")[0].strip() for line in text.splitlines()]
    return [line for line in lines if line.startswith("recollect ")] + re.findall(r"`(recollect [a-z][^`]*)`", text)


def options_of(command: str) -> set[str]:
    return set(re.findall(r"(?<=[ \[])--[a-z-]+", command))


def known_options(command: str) -> set[str]:
    """The options of the command or subcommand that is called; none if there is no such command."""
    called: Any = typer.main.get_command(app)
    for word in command.split()[1:]:
        if word.startswith("-") or not hasattr(called, "commands"):
            break
        if word not in called.commands:
            return set()
        called = called.commands[word]
    return {name for parameter in called.params for name in (*parameter.opts, *parameter.secondary_opts)}
