"""recollect paper: the same commands as `python -m recollect.paper`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli.where import On, WorkerCpus, WorkerGpus
from recollect.paper import RESULTS, WORK

if TYPE_CHECKING:
    from recollect.paper.commands import Options

app = typer.Typer(
    no_args_is_help=True,
    help="The experiments of the paper: what is recorded, computing what is missing, drawing figures and tables.",
)

Names = Annotated[str, typer.Argument(metavar="NAME[,NAME]", help="Experiments as in the list, or all.")]
Size = Annotated[str, typer.Option("--scale", help="small: minutes on two cores. full: the paper's sizes, on a GPU.")]
Data = Annotated[
    str | None, typer.Option(help="Folder with tiny-imagenet-200.zip, svhn/ and cifar-10-batches-py/.", metavar="DIR")
]
Records = Annotated[Path, typer.Option("--results", help="Folder of the records.")]
Work = Annotated[Path, typer.Option(help="Folder of checkpoints and pictures.")]
Device = Annotated[str | None, typer.Option(help="cpu or cuda. Default: cuda where there is one.")]
Only = Annotated[list[str] | None, typer.Option(metavar="PATTERN", help="Only trainings or cells like this.")]
Seconds = Annotated[float | None, typer.Option(help="Stop between two cells after this time; the exit code is then 1.")]


@app.command("list")
def list_command(scale: Size = "small", data: Data = None, results: Records = RESULTS, work: Work = WORK) -> None:
    """What there is, what is recorded of it and what that took."""
    from recollect.paper import commands

    raise typer.Exit(commands.list_command(_options(scale, data, results, work, "cpu")))


@app.command("run")
def run_command(
    names: Names, scale: Size = "small", data: Data = None, results: Records = RESULTS, work: Work = WORK,
    device: Device = None, only: Only = None, max_seconds: Seconds = None,
    on: On = None, worker_cpus: WorkerCpus = 1.0, worker_gpus: WorkerGpus = None,
) -> None:  # fmt: skip
    """Compute what has no record yet; stopped at any moment, the same command goes on."""
    from recollect.paper import commands

    options = _options(scale, data, results, work, device, on, worker_cpus, worker_gpus)
    raise typer.Exit(commands.run_command(names, options, only or (), max_seconds))


@app.command("figure")
def figure_command(
    names: Names, scale: Size = "small", data: Data = None, results: Records = RESULTS, work: Work = WORK
) -> None:
    """Draw figures and tables from records; nothing is computed."""
    from recollect.paper import commands

    raise typer.Exit(commands.figure_command(names, _options(scale, data, results, work, "cpu")))


@app.command("all")
def all_command(
    scale: Size = "small", data: Data = None, results: Records = RESULTS, work: Work = WORK, device: Device = None,
    max_seconds: Seconds = None, on: On = None, worker_cpus: WorkerCpus = 1.0, worker_gpus: WorkerGpus = None,
) -> None:  # fmt: skip
    """Compute what is missing of every experiment, then draw everything."""
    from recollect.paper import commands

    options = _options(scale, data, results, work, device, on, worker_cpus, worker_gpus)
    raise typer.Exit(commands.all_command(options, max_seconds))


def _options(
    scale: str, data: str | None, results: Path, work: Path, device: str | None, on: str | None = None,
    worker_cpus: float = 1.0, worker_gpus: float | None = None,
) -> Options:  # fmt: skip
    from recollect.paper.commands import Options

    return Options(scale, data, results, work, device, on, worker_cpus, worker_gpus)
