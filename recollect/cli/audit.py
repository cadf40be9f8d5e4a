"""recollect audit."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from recollect.errors import InputError

GATE_EXCEEDED = 3
_MODEL = (
    "A recollect checkpoint, a .pt2, TorchScript or .onnx file, or package.module:factory (your own code, "
    "which is run) with --weights."
)


def audit_command(
    model: Annotated[str, typer.Argument(help=_MODEL, metavar="MODEL")],
    train: Annotated[str, typer.Option(help="The images it was trained on; see: recollect data --help.")],
    control: Annotated[str | None, typer.Option(help="Images like them that it was never trained on.")] = None,
    masks: Annotated[
        str, typer.Option(help="all, or names, .png files, random:FRACTION, with commas between.")
    ] = "all",
    methods: Annotated[str, typer.Option(help="Of blind, iterate, known, zero-rule.")] = "blind,iterate,known",
    gamma: Annotated[str | None, typer.Option(help="A number, or auto. Default: the paper's, else auto.")] = None,
    start: Annotated[str | None, typer.Option(help="First mask estimate: random, erased or auto.")] = None,
    noise: Annotated[float, typer.Option(help="Standard deviation of noise added to the degraded images.")] = 0.0,
    attractors: Annotated[int, typer.Option(help="Examine the Jacobian at this many training images.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for results and report; a stopped audit goes on there.")] = Path(
        "audit"
    ),
    fail_above: Annotated[
        str | None, typer.Option(help="Exit with 3 if the accurate rate over all masks is above this, e.g. 1%.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print audit.json instead of words.")] = False,
    weights: Annotated[Path | None, typer.Option(help="Weights for package.module:factory, .safetensors best.")] = None,
    weights_key: Annotated[str | None, typer.Option(help="Where in the file the weights are.")] = None,
    input_range: Annotated[str, typer.Option("--range", help="What the model wants: 0,1 or -1,1 or 0,255.")] = "0,1",
    output_range: Annotated[str | None, typer.Option(help="What it returns, if another range.")] = None,
    mean: Annotated[str | None, typer.Option(help="Normalisation: mean a channel, with commas.")] = None,
    std: Annotated[str | None, typer.Option(help="Normalisation: standard deviation a channel.")] = None,
    output: Annotated[str | None, typer.Option(help="Which part of what it returns: 0, sample, 1.image ...")] = None,
    channels: Annotated[int | None, typer.Option(help="1 for a grey model, 3 for a colour one.")] = None,
    batch: Annotated[int | None, typer.Option(help="The batch size that the model insists on.")] = None,
    flat: Annotated[bool, typer.Option(help="The model works on vectors.")] = False,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.")] = None,
) -> None:
    """Measure how much of a training set can be read back out of a model."""
    from recollect.auditing.audit import audit
    from recollect.cli.narration import Narration
    from recollect.models import open_model

    gate = _share(fail_above) if fail_above is not None else None
    f = open_model(
        model, weights=weights, weights_key=weights_key, device=device, input_range=input_range,
        output_range=output_range, mean=mean, std=std, output=output, channels=channels, batch=batch, flat=flat,
    )  # fmt: skip
    with Narration(quiet=as_json) as narrate:
        found = audit(
            f, train=train, control=control, masks=masks, methods=[m.strip() for m in methods.split(",") if m.strip()],
            gamma=_gamma(gamma), start=start, noise_std=noise, attractors=attractors, out=out,
            command=shlex.join(["recollect", *sys.argv[1:]]), narrate=narrate,
        )  # fmt: skip
    if as_json:
        typer.echo((out / "audit.json").read_text(), nl=False)
    else:
        typer.echo(f"{found}\n\nThe report: {out / 'report.html'}")
    rate = found.best("train", found.main_method).accurate
    if gate is not None and rate.value > gate:
        typer.echo(f"recollect: {rate.value:.1%} of the training images were recovered, above {gate:.1%}.", err=True)
        raise typer.Exit(GATE_EXCEEDED)


def _share(text: str) -> float:
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise InputError(f"--fail-above takes a share like 1% or 0.01, not {text!r}.") from None
    if not 0 <= share <= 1:
        raise InputError(f"--fail-above takes a share between 0 and 100%, got {text!r}.")
    return share


def _gamma(text: str | None) -> float | str | None:
    if text is None or text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--gamma takes a number or auto, not {text!r}.") from None
