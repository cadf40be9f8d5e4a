"""recollect audit."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.cli.where import On, WorkerCpus, WorkerGpus
from recollect.errors import InputError

if TYPE_CHECKING:
    from recollect.auditing import Audit, Spread

GATE_EXCEEDED = 3
EPILOG = """\
Example: recollect audit model.pt2 --train folder:photos/train --control folder:photos/other --out audit/

Exit codes: 0 done, 2 invalid usage, 3 the rate is above --fail-above, 130 interrupted. After an interruption the same
command resumes the audit.
"""
_ATTACK, _FIT = "How the model is attacked", "What the model takes and returns, if not images in [0, 1]"


def audit_command(
    model: Annotated[
        str, typer.Argument(help="The autoencoder. No file runs code when opened. {model_formats}", metavar="MODEL")
    ],
    train: Annotated[str, typer.Option(metavar="SOURCE", help="The images that it was trained on. {sources}")],
    control: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            help="Images like them that the model never saw, to compare with. Without them a rate proves little.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for report.html, audit.json and images.csv. A stopped audit is resumed there.")
    ] = Path("audit"),
    fail_above: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="For CI: exit with 3 if more than this share of the training images, e.g. 1%, is recovered almost "
            "exactly under at least one mask.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print audit.json instead of text.")] = False,
    device: Annotated[
        str | None, typer.Option(help="Where the model runs: cpu or cuda. Defaults to cuda if available.")
    ] = None,
    masks: Annotated[
        str,
        typer.Option(rich_help_panel=_ATTACK, help="How images are damaged, separated by commas. {degradations}"),
    ] = "all",
    fill: Annotated[
        str,
        typer.Option(
            rich_help_panel=_ATTACK,
            help="What erased pixels hold: zero, constant, noise or images (pixels of another image), separated by "
            "commas. No method knows it.",
        ),
    ] = "zero",
    methods: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_ATTACK,
            help="Attacks, references and baselines, separated by commas. Some bring a baseline along. {methods}",
        ),
    ] = None,
    gamma: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_ATTACK,
            help="How freely a method departs from the damaged image: a number, or auto to search for it on images "
            "that are then left out of the score. Default: the paper's for recollect's own networks, auto for others.",
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_ATTACK,
            help="First guess of the mask: half_kept (at random), all_erased, or auto. Default: as for --gamma.",
        ),
    ] = None,
    noise_std: Annotated[
        float, typer.Option(rich_help_panel=_ATTACK, help="Standard deviation of noise added to the damaged images.")
    ] = 0.0,
    attractors: Annotated[
        int,
        typer.Option(
            rich_help_panel=_ATTACK, min=0, metavar="N",
            help="Also examine whether the first N training images are attractors (slow).",
        ),
    ] = 0,
    prior: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_ATTACK, metavar="FOLDER|NAME",
            help="Diffusion model for ddnm: a folder in diffusers' layout, or a name on the Hugging Face hub. Default: "
            "the bundled one, for colour images of up to 32x32.",
        ),
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(rich_help_panel=_FIT, help="Weights for package.module:factory, best as .safetensors."),
    ] = None,
    weights_key: Annotated[
        str | None, typer.Option(rich_help_panel=_FIT, help="The entry of that file that holds the weights.")
    ] = None,
    input_range: Annotated[
        str, typer.Option(rich_help_panel=_FIT, help="Values that the model takes: 0,1 or -1,1 or 0,255.")
    ] = "0,1",
    output_range: Annotated[
        str | None, typer.Option(rich_help_panel=_FIT, help="Values that the model returns, if another range.")
    ] = None,
    mean: Annotated[
        str | None, typer.Option(rich_help_panel=_FIT, help="Normalization: the mean of each channel: 0.5,0.5,0.5.")
    ] = None,
    std: Annotated[
        str | None, typer.Option(rich_help_panel=_FIT, help="Normalization: the standard deviation of each channel.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(rich_help_panel=_FIT, help="Which part of what the model returns is the image: 0, sample."),
    ] = None,
    channels: Annotated[
        int | None, typer.Option(rich_help_panel=_FIT, help="1 for a grey model, 3 for a colour one.")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(rich_help_panel=_FIT, help="The only number of images that the model takes at once.")
    ] = None,
    flat: Annotated[
        bool, typer.Option("--flat", rich_help_panel=_FIT, help="The model takes vectors, one an image.")
    ] = False,
    on: On = None,
    worker_cpus: WorkerCpus = 1.0,
    worker_gpus: WorkerGpus = None,
) -> None:  # fmt: skip
    """Measure how much of its training set can be recovered from a model.

    Training images are damaged by erasing pixels, and the model alone is used to recover them. Control images, which
    the model never saw, are treated in the same way. Training images recovered while control images are not were
    memorized.
    """
    from recollect.auditing import AuditRequest, run_audit
    from recollect.cli.audit_progress import audit_progress

    gate = read_share(fail_above) if fail_above is not None else None
    options: dict[str, Any] = {
        "weights": weights, "weights_key": weights_key, "input_range": input_range, "output_range": output_range,
        "mean": mean, "std": std, "output": output, "channels": channels, "batch": batch, "flat": flat,
    }  # fmt: skip
    request = AuditRequest(
        model, train, control, masks=masks, fill=fill, methods=methods, gamma=read_gamma(gamma), start=start,
        noise_std=noise_std, attractors=attractors, prior=prior, out=out, title=model,
        command=shlex.join(["recollect", *sys.argv[1:]]),
        model_options={**options, "device": "cpu" if on else device},
    )  # fmt: skip
    with (
        audit_progress(quiet=as_json) as progress,
        spread_on(on, model, options, device, worker_cpus, worker_gpus) as measurer,
    ):
        result = run_audit(request, progress, measurer)
    print_result(result, out, as_json)
    check_gate(gate, result)


@contextmanager
def spread_on(
    on: str | None, model: str, options: Mapping[str, Any], device: str | None, cpus: float, gpus: float | None
) -> Iterator[Spread | None]:
    """Connect to the Ray cluster that measures the cells; None where this process measures them."""
    if on is None:
        yield None
        return
    from recollect.auditing import Spread
    from recollect.distributed import crew_on
    from recollect.models import PortableModel

    with crew_on(on, device, cpus, gpus) as crew:
        portable = PortableModel.of(model, {**options, "device": crew.device})
        yield Spread(crew, portable, len(crew), tell=lambda line: typer.echo(line, err=True))


def print_result(result: Audit, out: Path, as_json: bool) -> None:
    """Print the result, for people or for machines."""
    if as_json:
        typer.echo((out / "audit.json").read_text(encoding="utf-8"), nl=False)
    else:
        typer.echo(f"{result}\n\nThe report: {out / 'report.html'}")


def check_gate(limit: float | None, result: Audit) -> None:
    """Exit with GATE_EXCEEDED if more than this share of the training images was recovered under any mask."""
    rate = result.rate("train", "any mask", result.main_method)
    if limit is not None and rate.value > limit:
        typer.echo(
            f"recollect: {rate.count} of {rate.total} training images ({rate.value:.1%}) were recovered almost "
            f"exactly, above the {limit:.1%} of --fail-above.", err=True,
        )  # fmt: skip
        raise typer.Exit(GATE_EXCEEDED)


def read_share(text: str) -> float:
    """Read a share such as 1% or 0.01; a bare 1 is refused, since it could mean either 1% or all."""
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise InputError(f"--fail-above takes a share such as 1% or 0.01, not {text!r}.") from None
    if not 0 <= share <= 1 or (share == 1 and not text.endswith("%")):
        raise InputError(f"--fail-above takes a share such as 1% or 0.01, up to 100%, not {text!r}.")
    return share


def read_gamma(text: str | None) -> float | str | None:
    """Read a number or auto."""
    if text is None or text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--gamma takes a number or auto, not {text!r}.") from None
