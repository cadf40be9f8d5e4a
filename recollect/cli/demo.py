"""recollect demo."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli.printing import echo

if TYPE_CHECKING:
    from recollect.auditing import Audit
    from recollect.demo import DiffusionDemo

INTRODUCTION = """\
An autoencoder is trained until it reproduces 40 crops of photographs. Copies of these are then damaged: pixels are
erased under six masks. The network alone is used to recover them. The same is done with 40 crops of other parts of the
photographs. If training images are recovered and unseen images are not, the model memorized them.
"""


DIFFUSION_INTRODUCTION = """\
A diffusion model is trained on 40 crops of photographs for {steps} steps. Copies of these are then damaged: pixels are
erased under three masks. The model alone is used to recover them. The same is done with 40 crops of other parts of the
photographs. If training images are recovered and unseen images are not, the model memorized them.
"""


def demo_command(
    out: Annotated[
        Path | None, typer.Option(help="Folder for the model, the results and the report. Default: demo.")
    ] = None,
    diffusion: Annotated[
        bool, typer.Option("--diffusion", help="Train and audit a diffusion model, in two to four minutes.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print audit.json instead of text.")] = False,
) -> None:
    """Train a network on bundled photographs, damage them, recover them, report. Takes about three minutes."""
    from recollect.cli.audit import print_result
    from recollect.files.locks import lock_folder

    def say(text: str) -> None:
        if not as_json:
            echo(text)

    run = run_diffusion_demo if diffusion else run_demo
    out = out or Path("demo-diffusion" if diffusion else "demo")
    with lock_folder(out):
        result = run(out, say, as_json)
    say("")
    print_result(result, out / "audit", as_json)


def run_demo(out: Path, say: Callable[[str], None], quiet: bool) -> Audit:
    """Train an autoencoder to a small loss and audit it."""
    from recollect import demo
    from recollect.auditing import shown_progress
    from recollect.cli.training_progress import training_report

    say(f"{INTRODUCTION}\nTraining, to a mean square error of 1e-8 ...")
    with training_report() as report:
        training = demo.DEMO.train_network(out / "training", report)
    say(f"{training.why}\n\nAuditing, with six masks and as many unseen images ...")
    with shown_progress(quiet=quiet) as progress:
        return demo.DEMO.audit_network(training.network, out / "audit", progress)


def run_diffusion_demo(
    out: Path, say: Callable[[str], None], quiet: bool, settings: DiffusionDemo | None = None
) -> Audit:
    """Train a diffusion model for a number of steps and audit it."""
    from recollect.auditing import shown_progress
    from recollect.demo import DIFFUSION_DEMO

    demo = settings or DIFFUSION_DEMO
    say(f"{DIFFUSION_INTRODUCTION.format(steps=demo.max_steps)}\nTraining ...")
    denoiser = demo.train_denoiser(out / "denoiser", say)
    say("\nAuditing: the noise level is searched first, on photographs that are then left out of the score ...")
    with shown_progress(quiet=quiet) as progress:
        return demo.audit_denoiser(denoiser, out / "audit", progress)
