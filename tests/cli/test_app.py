import subprocess
import sys
from inspect import signature

import pytest

import recollect
from recollect.auditing import AuditRequest
from recollect.training import Recipe
from tests.cli.running import here, mistake


def test_help_tells_a_newcomer_where_to_begin_and_what_exit_codes_mean() -> None:
    result = here("--help")
    assert result.exit_code == 0
    words = " ".join(result.stdout.replace("│", " ").split())
    assert "Begin with recollect demo" in words
    for command in ("demo", "audit", "plan", "verify", "report", "compare", "train", "data", "paper"):
        assert f" {command} " in words
    for code in ("0 done", "1 not finished", "2 invalid usage", "3 failed: above", "4 inconclusive", "130"):
        assert code in words


@pytest.mark.parametrize("command", ["demo", "audit", "plan", "verify", "report", "compare", "train", "data"])
def test_every_command_and_option_has_words_of_help(command: str) -> None:
    import typer.main

    from recollect.cli.app import app

    found = typer.main.get_command(app).commands[command]  # type: ignore[attr-defined]
    assert found.help
    for parameter in found.params:
        assert getattr(parameter, "help", "x"), f"{command} {parameter.name} has no help"
    shown = here(command, "--help").stdout
    assert "🏭" not in shown  # :factory: is a picture to some renderers
    assert "exit" in shown.lower() or command not in ("audit", "train")


@pytest.mark.parametrize("command", ["audit", "train", "plan", "extract", "data split", "canaries make"])
def test_no_name_is_cut_in_a_terminal_of_80_columns(command: str) -> None:
    shown = here(*command.split(), "--help", COLUMNS="80").stdout
    assert "--help" in shown
    assert "…" not in shown


def test_the_version() -> None:
    result = here("--version")
    assert (result.exit_code, result.stdout) == (0, f"recollect {recollect.__version__}\n")


def test_without_a_command_it_shows_the_help() -> None:
    assert "Commands" in here().output


def test_a_command_that_does_not_exist_is_a_usage_error() -> None:
    result = here("audti")
    assert result.exit_code == 2
    assert "audti" in result.output


def test_mistakes_of_the_data_commands_end_in_a_sentence_too() -> None:
    assert "There is no source 'mnist'" in mistake("data", "show", "mnist")


def test_python_dash_m_is_the_same_command() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "recollect", "data", "show", "mnist"], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("recollect: There is no source 'mnist'")
    assert "Traceback" not in done.stderr


AUDITING = {*signature(AuditRequest).parameters, *signature(recollect.open_model).parameters}
TRAINING = {
    p
    for f in (recollect.train_to_loss, Recipe, recollect.FullyConnected, recollect.UNet)
    for p in signature(f).parameters
}


@pytest.mark.parametrize(
    ("command", "in_python", "only_here"),
    [
        ("audit", AUDITING, {"json", "verbose", "debug", "inconclusive_passes", "on", "worker_cpus", "worker_gpus"}),
        ("train", TRAINING, {"json", "out"}),
    ],
)
def test_an_option_is_called_as_it_is_in_python(command: str, in_python: set[str], only_here: set[str]) -> None:
    """One word for one thing: --input-range is input_range in Python, in records and in messages."""
    import typer.main

    from recollect.cli.app import app

    found = typer.main.get_command(app).commands[command]  # type: ignore[attr-defined]
    flags = [flag for p in found.params if p.param_type_name == "option" for flag in p.opts]
    names = {flag.removeprefix("--").replace("-", "_") for flag in flags} - {"help", "_h"}
    assert len(names) > 10
    assert names - only_here <= in_python
