"""Options that say where work runs."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.distributed.cluster_address import address_of
from recollect.errors import InputError

_PANEL = "Where it runs, if not on this machine"

On = Annotated[
    str | None,
    typer.Option(
        metavar="CLUSTER", rich_help_panel=_PANEL,
        help="ray: all of this machine, or the cluster of RAY_ADDRESS; ray://HOST:PORT or HOST:PORT: a Ray cluster.",
    ),
]  # fmt: skip
WorkerCpus = Annotated[
    float | None, typer.Option(rich_help_panel=_PANEL, min=0, help="CPUs of each worker of the cluster. Default: 1.")
]
WorkerGpus = Annotated[
    float | None,
    typer.Option(rich_help_panel=_PANEL, min=0, help="GPUs of each worker, such as 0.5. Default: one, with cuda."),
]


def cpus_of(on: str | None, worker_cpus: float | None, worker_gpus: float | None) -> float:
    """Return the CPUs of each worker; options of workers without a cluster are refused, not ignored."""
    if on is None and not (worker_cpus is None and worker_gpus is None):
        raise InputError(
            "--worker-cpus and --worker-gpus are for the workers of a cluster; name the cluster with --on, or leave "
            "them out."
        )
    if on is not None:
        address_of(on)  # refuses what is none
    return 1.0 if worker_cpus is None else worker_cpus
