"""recollect paper: list, compute and draw the experiments of the paper."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli.cluster_options import On, WorkerCpus, WorkerGpus, cpus_of
from recollect.cli.printing import echo
from recollect.errors import InputError
from recollect.paper import RESULTS, WORK

if TYPE_CHECKING:
    import torch

    from recollect.distributed.jobs import Budget, Runner

UNFINISHED = 1  # exit code
PAGE = Path("docs/research/reproduction.md")

app = typer.Typer(
    no_args_is_help=True,
    help="The experiments of the paper: list what is recorded, compute what is missing, draw figures and tables.",
)

Names = Annotated[str, typer.Argument(metavar="NAME[,NAME]", help="Experiments as in the list, or all.")]
Size = Annotated[str, typer.Option("--scale", help="small: minutes on two cores. full: the paper's sizes, on a GPU.")]
Data = Annotated[
    str | None, typer.Option(help="Folder with tiny-imagenet-200.zip, svhn/ and cifar-10-batches-py/.", metavar="DIR")
]
Records = Annotated[Path, typer.Option("--results", help="Folder of the records.")]
Work = Annotated[Path, typer.Option(help="Folder of checkpoints and pictures.")]
Device = Annotated[str | None, typer.Option(help="cpu or cuda. Defaults to CUDA if available.")]
Only = Annotated[list[str] | None, typer.Option(metavar="PATTERN", help="Only trainings or cells like this.")]
Seconds = Annotated[
    float | None,
    typer.Option(help="Pause the training, or stop between two cells, after this time, with exit code 1."),
]
Seeds = Annotated[
    int | None, typer.Option(help="At most so many trainings of each network, from other first weights.", min=1)
]


@app.command("list")
def list_command(scale: Size = "small", data: Data = None, results: Records = RESULTS, work: Work = WORK) -> None:
    """List the experiments, what of them is recorded, and the seconds that took."""
    from recollect.paper.overview import overview
    from recollect.paper.scales import scale_named
    from recollect.paper.workspace import open_workspace

    sizes = scale_named(scale, data)
    for line in overview(sizes, open_workspace(sizes, data, results, work, "cpu")):
        echo(line)


@app.command("run")
def run_command(
    names: Names, scale: Size = "small", data: Data = None, results: Records = RESULTS, work: Work = WORK,
    device: Device = None, only: Only = None, max_seconds: Seconds = None, seeds: Seeds = None,
    on: On = None, worker_cpus: WorkerCpus = None, worker_gpus: WorkerGpus = None,
) -> None:  # fmt: skip
    """Compute what has no record yet. If the command is stopped, the same command resumes."""
    from recollect.paper.experiments import experiments_named
    from recollect.paper.run import run
    from recollect.paper.scales import scale_named
    from recollect.paper.workspace import open_workspace

    budget, experiments, sizes = _budget(max_seconds), experiments_named(names), scale_named(scale, data)
    workspace = open_workspace(sizes, data, results, work, None if on else device)
    with _workers(on, device, worker_cpus, worker_gpus) as (runner, worker_device):
        complete = run(
            experiments, sizes, workspace, only=only or (), budget=budget, log=echo, runner=runner,
            worker_device=worker_device, seeds=seeds,
        )  # fmt: skip
    if not complete:
        raise typer.Exit(UNFINISHED)


@app.command("figure")
def figure_command(
    names: Names, scale: Size = "small", data: Data = None, results: Records = RESULTS, work: Work = WORK
) -> None:
    """Draw figures and tables from records; nothing is computed."""
    from recollect.paper.experiments import experiments_named
    from recollect.paper.render.document import page_tables, update_page
    from recollect.paper.render.figures import draw
    from recollect.paper.scales import scale_named
    from recollect.paper.workspace import open_workspace

    sizes = scale_named(scale, data)
    draw(experiments_named(names), sizes, open_workspace(sizes, data, results, work, "cpu"), echo)
    if PAGE.exists() and results == RESULTS:
        update_page(PAGE, page_tables())
        echo(f"tables updated in {PAGE}")


@app.command("all")
def all_command(
    scale: Size = "small", data: Data = None, results: Records = RESULTS, work: Work = WORK, device: Device = None,
    max_seconds: Seconds = None, seeds: Seeds = None, on: On = None, worker_cpus: WorkerCpus = None,
    worker_gpus: WorkerGpus = None,
) -> None:  # fmt: skip
    """Compute what is missing of every experiment, then draw everything."""
    exit_code = 0
    try:
        run_command("all", scale, data, results, work, device, None, max_seconds, seeds, on, worker_cpus, worker_gpus)
    except typer.Exit as unfinished:  # what is recorded is drawn all the same
        exit_code = unfinished.exit_code
    figure_command("all", scale, data, results, work)
    raise typer.Exit(exit_code)


def _budget(max_seconds: float | None) -> Budget:
    from recollect.distributed.jobs import Budget

    if max_seconds is None:
        return Budget()
    if not max_seconds > 0:
        raise InputError(f"--max-seconds is a number of seconds, more than 0; got {max_seconds:g}.")
    return Budget(max_seconds)


@contextmanager
def _workers(
    on: str | None, device: str | None, worker_cpus: float | None, worker_gpus: float | None
) -> Iterator[tuple[Runner, torch.device | None]]:
    """Start the workers of a cluster; without one, everything is computed in this process."""
    from recollect.distributed.jobs import in_this_process

    cpus = cpus_of(on, worker_cpus, worker_gpus)
    if on is None:
        yield in_this_process, None
        return
    import torch

    from recollect.distributed import open_pool

    with open_pool(on, device, cpus, worker_gpus) as pool:
        yield pool, torch.device(pool.device)
