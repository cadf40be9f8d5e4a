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
MODEL = (
    "The autoencoder: a recollect checkpoint (.safetensors), a TorchScript, .pt2 or .onnx file, or "
    "package.module:factory, which names code of yours that builds it (add --weights). No file runs code when opened."
)
EPILOG = (
    "Example: recollect audit model.pt2 --train folder:photos/train --control folder:photos/other --out audit/ · "
    "Exit codes: 0 done, 2 something was asked for wrongly, 3 the rate is above --fail-above, 130 interrupted "
    "(the same command goes on)."
)
_ATTACK, _FIT = "How it is attacked", "What the model wants, if not images in [0, 1]"


def audit_command(
    model: Annotated[str, typer.Argument(help=MODEL, metavar="MODEL")],
    train: Annotated[
        str, typer.Option(help="The images it was trained on: folder:PATH, a .npy file, ...; see recollect data list.")
    ],
    control: Annotated[
        str | None,
        typer.Option(help="Images like them that it never saw, to compare with; without them a rate proves little."),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for report.html, audit.json and images.csv; a stopped audit goes on there.")
    ] = Path("audit"),
    fail_above: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="For CI: exit with 3 if more than this share of the training images, e.g. 1%, is read back almost "
            "exactly under at least one mask.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print audit.json instead of words.")] = False,
    device: Annotated[
        str | None, typer.Option(help="Where the model runs: cpu or cuda. Default: cuda where there is one.")
    ] = None,
    masks: Annotated[
        str,
        typer.Option(
            rich_help_panel=_ATTACK,
            help="Which pixels are erased: all six (block, half, scatter, frame, stripes, dust), some of them with "
            "commas between, random:30% (random-each:30% draws for each image), or a black-and-white .png; or other "
            "damage: blur:1.5, coarse:4.",
        ),
    ] = "all",
    fill: Annotated[
        str,
        typer.Option(
            rich_help_panel=_ATTACK,
            help="What erased pixels hold, which no method is told: zero, constant, noise, images (another one's "
            "pixels), or several with commas between.",
        ),
    ] = "zero",
    methods: Annotated[
        str,
        typer.Option(
            rich_help_panel=_ATTACK,
            help="blind (the paper's, told nothing), refined (stronger, told nothing), iterate (the baseline), known "
            "(told the mask, a reference), known-400 (the same with 400 steps), ddnm (a general diffusion model, told "
            "the mask, that never saw the audited one), biharmonic (a smooth surface, told the mask). Baselines come "
            "along: zero-rule with blind where erased pixels are black, biharmonic with ddnm.",
        ),
    ] = "blind,refined,iterate,known",
    gamma: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_ATTACK,
            help="How freely the method departs from the damaged image: a number, or auto to search for it on images "
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
            help="Also find out whether the first N training images are attractors (slow).",
        ),
    ] = 0,
    prior: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_ATTACK, metavar="FOLDER|NAME",
            help="For ddnm: a folder in diffusers' layout, or a name on the Hugging Face hub. Default: the bundled "
            "prior for colour images of up to 32x32.",
        ),
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(rich_help_panel=_FIT, help="Weights for package.module:factory, best as .safetensors."),
    ] = None,
    weights_key: Annotated[
        str | None, typer.Option(rich_help_panel=_FIT, help="Which entry of that file holds the weights.")
    ] = None,
    input_range: Annotated[
        str, typer.Option(rich_help_panel=_FIT, help="Values that it takes: 0,1 or -1,1 or 0,255.")
    ] = "0,1",
    output_range: Annotated[
        str | None, typer.Option(rich_help_panel=_FIT, help="Values that it returns, if another range.")
    ] = None,
    mean: Annotated[
        str | None, typer.Option(rich_help_panel=_FIT, help="Normalisation: mean of each channel, as in 0.5,0.5,0.5.")
    ] = None,
    std: Annotated[
        str | None, typer.Option(rich_help_panel=_FIT, help="Normalisation: the standard deviation of each channel.")
    ] = None,
    output: Annotated[
        str | None, typer.Option(rich_help_panel=_FIT, help="Which part of what it returns is the image: 0, sample.")
    ] = None,
    channels: Annotated[
        int | None, typer.Option(rich_help_panel=_FIT, help="1 for a grey model, 3 for a colour one.")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(rich_help_panel=_FIT, help="The only number of images that it takes at once.")
    ] = None,
    flat: Annotated[bool, typer.Option("--flat", rich_help_panel=_FIT, help="It takes vectors, one an image.")] = False,
    on: On = None,
    worker_cpus: WorkerCpus = 1.0,
    worker_gpus: WorkerGpus = None,
) -> None:  # fmt: skip
    """Measure how much of a training set can be read back out of a model.

    Training images are damaged by erasing pixels, and the model alone is used to restore them. What comes back almost
    exactly was remembered by the model; control images, which it never saw, take the same path and show what does not
    come from memory.
    """
    from recollect.auditing import audit
    from recollect.cli.audit_progress import Narration
    from recollect.models import open_model

    gate = read_share(fail_above) if fail_above is not None else None
    how: dict[str, Any] = {
        "weights": weights, "weights_key": weights_key, "input_range": input_range, "output_range": output_range,
        "mean": mean, "std": std, "output": output, "channels": channels, "batch": batch, "flat": flat,
    }  # fmt: skip
    f = open_model(model, device="cpu" if on else device, **how)
    with Narration(quiet=as_json) as narrate, spread_on(on, model, how, device, worker_cpus, worker_gpus) as measurer:
        found = audit(
            f, train=train, control=control, masks=masks, fill=fill, methods=methods, gamma=read_gamma(gamma),
            start=start, noise_std=noise_std, attractors=attractors, prior=prior, out=out, title=model,
            command=shlex.join(["recollect", *sys.argv[1:]]), narrate=narrate, measurer=measurer,
        )  # fmt: skip
    tell(found, out, as_json)
    hold_to(gate, found)


@contextmanager
def spread_on(
    on: str | None, model: str, how: Mapping[str, Any], device: str | None, cpus: float, gpus: float | None
) -> Iterator[Spread | None]:
    """Who measures the cells: the workers of a Ray cluster, or nobody else."""
    if on is None:
        yield None
        return
    from recollect.auditing import Spread
    from recollect.distributed import crew_on
    from recollect.models import PortableModel

    with crew_on(on, device, cpus, gpus) as crew:
        portable = PortableModel.of(model, {**how, "device": crew.device})
        yield Spread(crew, portable, len(crew), tell=lambda line: typer.echo(line, err=True))


def tell(found: Audit, out: Path, as_json: bool) -> None:
    """Print what was found, for people or for machines."""
    if as_json:
        typer.echo((out / "audit.json").read_text(encoding="utf-8"), nl=False)
    else:
        typer.echo(f"{found}\n\nThe report: {out / 'report.html'}")


def hold_to(gate: float | None, found: Audit) -> None:
    """Exit with GATE_EXCEEDED where more than the share allowed was read back under any mask."""
    rate = found.rate("train", "any mask", found.main_method)
    if gate is not None and rate.value > gate:
        typer.echo(
            f"recollect: {rate.count} of {rate.total} training images ({rate.value:.1%}) were read back almost "
            f"exactly, above the {gate:.1%} of --fail-above.", err=True,
        )  # fmt: skip
        raise typer.Exit(GATE_EXCEEDED)


def read_share(text: str) -> float:
    """A share as 1% or 0.01; a bare 1 is refused, since it could mean either 1% or all."""
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise InputError(f"--fail-above takes a share such as 1% or 0.01, not {text!r}.") from None
    if not 0 <= share <= 1 or (share == 1 and not text.endswith("%")):
        raise InputError(f"--fail-above takes a share such as 1% or 0.01, up to 100%, not {text!r}.")
    return share


def read_gamma(text: str | None) -> float | str | None:
    if text is None or text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--gamma takes a number or auto, not {text!r}.") from None
