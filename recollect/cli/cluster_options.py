"""Options that say where work runs."""

from __future__ import annotations

from typing import Annotated

import typer

_PANEL = "Where it runs, if not on this machine"

On = Annotated[
    str | None,
    typer.Option(
        metavar="CLUSTER", rich_help_panel=_PANEL,
        help="ray: all of this machine, or the cluster of RAY_ADDRESS; ray://HOST:PORT or HOST:PORT: a Ray cluster.",
    ),
]  # fmt: skip
WorkerCpus = Annotated[float, typer.Option(rich_help_panel=_PANEL, min=0, help="CPUs of each worker of the cluster.")]
WorkerGpus = Annotated[
    float | None,
    typer.Option(rich_help_panel=_PANEL, min=0, help="GPUs of each worker, such as 0.5. Default: one, with cuda."),
]
