"""recollect paper: list, compute and draw the experiments of the paper."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli.cluster_options import On, WorkerCpus, WorkerGpus, cpus_of
from recollect.cli.early_checks import check_choice, check_experiments
from recollect.cli.printing import echo
from recollect.devices.device_names import check_device_name
from recollect.errors import check_positive
from recollect.paper import RESULTS, WORK

if TYPE_CHECKING:
    import torch

    from recollect.distributed.jobs import Runner

UNFINISHED = 1  # exit code
PAGES = tuple(Path("docs/research", f"{name}.md") for name in ("reproduction", "scaling", "defences"))

app = typer.Typer(
    no_args_is_help=True,
    help="Repeat the experiments of the paper: list what is recorded, compute the rest, draw figures and tables.",
)


SCALES = ("small", "full")
Names = Annotated[str, typer.Argument(metavar="NAME[,NAME]", help="Names that recollect paper list prints, or all.")]
Size = Annotated[str, typer.Option("--scale", help="small: minutes on two cores. full: the paper's sizes, on a GPU.")]
Data = Annotated[
    str | None, typer.Option(help="Folder with tiny-imagenet-200.zip, svhn/ and cifar-10-batches-py/.", metavar="DIR")
]
Records = Annotated[Path, typer.Option("--results", help="Folder of the records.")]
Work = Annotated[Path, typer.Option(help="Folder of checkpoints and pictures.")]
Device = Annotated[str | None, typer.Option(help="cpu or cuda. Defaults to CUDA if available.")]
Only = Annotated[
    list[str] | None, typer.Option(metavar="PATTERN", help="Only trainings or cells whose name matches PATTERN.")
]
Seconds = Annotated[
    float | None,
    typer.Option(help="Stop after this time with exit code 1. The same command resumes."),
]
Seeds = Annotated[
    int | None,
    typer.Option(metavar="N", help="Train each network at most N times, from different first weights.", min=1),
]


ByTraining = Annotated[
    bool, typer.Option("--by-training", help="Measure all cells of a training before the next training begins.")
]


@app.command("list")
def list_command(scale: Size = "small", data: Data = None, results: Records = RESULTS, work: Work = WORK) -> None:
    """List experiments, what is recorded, and how long the parts of a run take."""
    check_choice("scale", scale, SCALES)

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
    by_training: ByTraining = False, on: On = None, worker_cpus: WorkerCpus = None, worker_gpus: WorkerGpus = None,
) -> None:  # fmt: skip
    """Compute what has no record yet. If the command is stopped, the same command resumes."""
    check_experiments(names)
    check_choice("scale", scale, SCALES)
    check_device_name(device)
    check_positive("--max-seconds", max_seconds)
    cpus_of(on, worker_cpus, worker_gpus)

    from recollect.distributed.jobs import Budget
    from recollect.paper.experiments import EXPERIMENTS, experiments_named
    from recollect.paper.order import weights_needed
    from recollect.paper.run import run
    from recollect.paper.scales import scale_named
    from recollect.paper.workspace import open_workspace

    budget = Budget() if max_seconds is None else Budget(max_seconds)
    experiments, sizes = experiments_named(names), scale_named(scale, data)
    workspace = open_workspace(sizes, data, results, work, None if on else device)
    with _workers(on, device, worker_cpus, worker_gpus) as (runner, worker_device):
        complete = run(
            experiments, sizes, workspace, only=only or (), budget=budget, log=echo, runner=runner,
            worker_device=worker_device, seeds=seeds, by_training=by_training,
            kept=weights_needed(EXPERIMENTS.values(), sizes),
        )  # fmt: skip
    if not complete:
        raise typer.Exit(UNFINISHED)


@app.command("figure")
def figure_command(
    names: Names, scale: Size = "small", data: Data = None, results: Records = RESULTS, work: Work = WORK
) -> None:
    """Draw figures and tables from records; nothing is computed."""
    check_experiments(names)
    check_choice("scale", scale, SCALES)

    from recollect.paper.experiments import experiments_named
    from recollect.paper.render.document import page_tables, update_page
    from recollect.paper.render.figures import draw
    from recollect.paper.scales import scale_named
    from recollect.paper.workspace import open_workspace

    sizes = scale_named(scale, data)
    draw(experiments_named(names), sizes, open_workspace(sizes, data, results, work, "cpu"), echo)
    pages = [page for page in PAGES if page.exists() and results == RESULTS]
    tables = page_tables() if pages else {}
    for page in pages:
        update_page(page, tables)
        echo(f"tables updated in {page}")


@app.command("all")
def all_command(
    scale: Size = "small", data: Data = None, results: Records = RESULTS, work: Work = WORK,
    device: Device = None, max_seconds: Seconds = None, seeds: Seeds = None, on: On = None,
    worker_cpus: WorkerCpus = None, worker_gpus: WorkerGpus = None,
) -> None:  # fmt: skip
    """Compute what is missing of every experiment, then draw everything."""
    exit_code = 0
    try:
        run_command(
            "all", scale, data, results, work, device, None, max_seconds, seeds, False, on, worker_cpus, worker_gpus
        )
    except typer.Exit as unfinished:  # what is recorded is drawn all the same
        exit_code = unfinished.exit_code
    figure_command("all", scale, data, results, work)
    raise typer.Exit(exit_code)


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
