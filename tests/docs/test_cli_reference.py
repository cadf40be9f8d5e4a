"""The page about the command line is that of the commands."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

ROOT = Path(__file__).parents[2]
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
    assert "`--layout nchw\\|nhwc` |" in audit
    assert "**When the audit fails, for CI**\n\n| option |" in audit
    assert "| `MODEL` | required |" in audit
    assert "`--activation lrelu\\|prelu\\|softplus` |" in page
    assert "{" not in re.sub(r"`[^`]*`", "", page)
