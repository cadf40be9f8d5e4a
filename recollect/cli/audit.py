"""recollect audit."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.cli.cluster_options import On, WorkerCpus, WorkerGpus, cpus_of
from recollect.cli.early_checks import check_folder, check_inputs, check_masks, check_methods, check_stated
from recollect.cli.endings import Debug
from recollect.cli.printing import echo, output_on_stderr, visible_console
from recollect.devices.device_names import check_device_name
from recollect.errors import InputError, read_share
from recollect.files.names import printable
from recollect.visible import visible

if TYPE_CHECKING:
    from recollect.auditing import Audit, ShardedMeasurer
    from recollect.auditing.plan import Plan
    from recollect.auditing.verdict import Verdict

NOT_FINISHED = 1
NOT_PLANNED = ("_plan", "as_json", "verbose", "_debug")
# Where it runs is no change of a plan.
WHERE = ("out", "max_seconds", "device", "chunk", "on", "worker_cpus", "worker_gpus")
EPILOG = """\
Example: recollect audit model.pt2 --train folder:photos/train --control folder:photos/other --out audit/

Exit codes: 0 done, and passed where --fail-above is given; 1 not finished: time limit, too little memory, or an error
of the model; 2 invalid usage; 3 failed: above --fail-above; 4 inconclusive: neither passed nor failed, for example with
too few images; 130, 143 interrupted. After 1, 130 and 143 the same command resumes the audit.
"""
_VERDICT, _PICTURES = "When the audit fails, for CI", "Pictures in the output"
_ATTACK, _FIT = "How the model is attacked", "What the model takes and returns, if not images in [0, 1]"


def take_plan(ctx: typer.Context, path: Path | None) -> Path | None:
    """Let options that are not given take their values from a plan."""
    if path is not None:
        from recollect.auditing.plan import read_plan

        plan = read_plan(path, [str(param.name) for param in ctx.command.params if param.name not in NOT_PLANNED])
        ctx.default_map, ctx.obj = dict(plan.settings), plan
    return path


def audit_command(
    ctx: typer.Context,
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="The autoencoder or diffusion model. No file runs code when opened. {model_formats}"
        ),
    ],
    train: Annotated[
        str | None, typer.Option(metavar="SOURCE", help="The images that it was trained on. {sources}")
    ] = None,
    control: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            help="Similar images that the model never saw. Without them a rate proves little.",
        ),
    ] = None,
    canaries: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="A folder written by `recollect canaries make`. Replaces --train and --control.",
        ),
    ] = None,
    _plan: Annotated[
        Path | None,
        typer.Option(
            "--plan", metavar="FILE", is_eager=True, callback=take_plan,
            help="Read the options from a TOML file of recollect plan. Its hash is recorded.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for report.html, audit.json and images.csv. A stopped audit is resumed there.")
    ] = Path("audit"),
    pictures: Annotated[
        bool,
        typer.Option(
            "--pictures/--no-pictures", rich_help_panel=_PICTURES,
            help="The report shows some of the images. --no-pictures writes no image to any file.",
        ),
    ] = True,
    fail_above: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE", rich_help_panel=_VERDICT,
            help="The largest share of the training images, such as 1%, that the attacks may recover. The exit code is "
            "3 if they recover more, 4 if the audit cannot decide.",
        ),
    ] = None,
    threshold: Annotated[
        str,
        typer.Option(
            metavar="LEVEL", rich_help_panel=_VERDICT,
            help="The error (MSE) below which an image counts as recovered: exact (1e-7), approximate (5e-4: by eye "
            "the same picture), or a number.",
        ),
    ] = "approximate",
    inconclusive_passes: Annotated[
        bool,
        typer.Option(
            "--inconclusive-passes", rich_help_panel=_VERDICT, help="Exit with 0, not 4, if the audit cannot decide."
        ),
    ] = False,
    max_seconds: Annotated[
        float | None,
        typer.Option(help="Stop after this time with exit code 1; the same command resumes the audit."),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also print the rates of each mask, membership and every warning.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print audit.json instead of text.")] = False,
    device: Annotated[
        str | None, typer.Option(help="Where the model runs: cpu or cuda. Defaults to cuda if available.")
    ] = None,
    chunk: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N",
            help="Give the model at most N images at once. Default: as many as fit in memory.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of random masks, noise and first guesses.")] = 42,
    _debug: Debug = False,
    masks: Annotated[
        str,
        typer.Option(rich_help_panel=_ATTACK, help="How images are damaged, separated by commas. {degradations}"),
    ] = "all",
    fill: Annotated[
        str,
        typer.Option(
            rich_help_panel=_ATTACK,
            help="What erased pixels hold, separated by commas. No method is told. {fills}",
        ),
    ] = "zero",
    methods: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_ATTACK,
            help="Attacks, references and baselines, separated by commas. blind adds zero-rule, ddnm adds biharmonic. "
            "{methods}",
        ),
    ] = None,
    gamma: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_ATTACK,
            help="How far a method may depart from the damaged image: a number or auto. auto searches for it on images "
            "that are left out of the score. Default: the paper's for recollect's own networks, auto for others.",
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_ATTACK,
            help="First guess of the mask: half_kept (at random), all_erased, or auto. Default: as for --gamma.",
        ),
    ] = None,
    noise_level: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_ATTACK,
            help="Diffusion models only: the noise level of the attack, for images in [-1, 1]. A number, annealed or "
            "auto. An annealed level falls within each round. auto searches for it and for gamma. Default: auto.",
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
    samples: Annotated[
        int,
        typer.Option(
            rich_help_panel=_ATTACK, min=0, metavar="N",
            help="Also generate N images and count the training images among them, as recollect extract does.",
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
        str | None,
        typer.Option(
            rich_help_panel=_FIT, help="Which state dict of --weights to use: an entry, or a prefix of names."
        ),
    ] = None,
    label: Annotated[
        int | None,
        typer.Option(rich_help_panel=_FIT, min=0, metavar="N", help="The class, if a diffusion model has classes."),
    ] = None,
    input_range: Annotated[
        str | None, typer.Option(rich_help_panel=_FIT, help="Values that the model takes: 0,1 or -1,1 or 0,255.")
    ] = None,
    output_range: Annotated[
        str | None, typer.Option(rich_help_panel=_FIT, help="Range of the model's outputs, if not --input-range.")
    ] = None,
    mean: Annotated[
        str | None, typer.Option(rich_help_panel=_FIT, help="Normalization: the mean of each channel: 0.5,0.5,0.5.")
    ] = None,
    std: Annotated[
        str | None, typer.Option(rich_help_panel=_FIT, help="Normalization: the standard deviation of each channel.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_FIT,
            help="Which part of what the model returns is the image: 0, sample. For logits: sigmoid, or 0.sigmoid.",
        ),
    ] = None,
    channels: Annotated[
        int | None, typer.Option(rich_help_panel=_FIT, help="1 for a grey model, 3 for a colour one.")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(rich_help_panel=_FIT, help="Batch size that the model requires.")
    ] = None,
    flat: Annotated[
        bool, typer.Option("--flat", rich_help_panel=_FIT, help="The model takes one vector for each image.")
    ] = False,
    layout: Annotated[
        str | None,
        typer.Option(
            metavar="nchw|nhwc", rich_help_panel=_FIT,
            help="Where the model has its channels: nhwc is channels last, as in Keras and TensorFlow. Default: nchw.",
        ),
    ] = None,
    on: On = None,
    worker_cpus: WorkerCpus = None,
    worker_gpus: WorkerGpus = None,
) -> None:  # fmt: skip
    """Measure how much of a model's training set can be recovered.

    Pixels of training images are erased, and the model alone is used to recover them. Unseen images (--control) are
    treated alike. If training images are recovered and unseen images are not, the model memorized them.
    """
    from recollect.auditing.given_settings import check_given

    numbers = read_number("gamma", gamma), read_number("noise-level", noise_level, "annealed")
    limit = None if fail_above is None else read_rate_limit(fail_above)
    settings: dict[str, Any] = {
        "train": train, "control": control, "canaries": canaries, "fill": fill, "gamma": numbers[0], "start": start,
        "noise_level": numbers[1], "noise_std": noise_std, "attractors": attractors, "samples": samples,
        "chunk": chunk, "seed": seed, "fail_above": limit, "threshold": threshold, "max_seconds": max_seconds,
    }  # fmt: skip
    check_given(settings)
    check_gate_options(ctx, fail_above)
    cpus_of(on, worker_cpus, worker_gpus)
    check_methods(methods)
    check_masks(masks)
    check_inputs(model, train, control, canaries=canaries)
    check_device_name(device)
    stated: dict[str, Any] = {
        "input_range": input_range, "output_range": output_range, "mean": mean, "std": std, "output": output,
        "channels": channels, "batch": batch, "flat": flat, "layout": layout,
    }  # fmt: skip
    check_stated(stated)
    check_folder(out)

    from recollect.auditing import AuditRequest, OutOfTime, run_audit, shown_progress

    options = {"weights": weights, "weights_key": weights_key, "label": label, **stated}
    where = "cpu" if on else device  # workers open the model themselves, on devices of their own
    request = AuditRequest(
        model, masks=masks, methods=methods, prior=prior, out=out, pictures=pictures, title=printable(model),
        command=printable(shlex.join(["recollect", *sys.argv[1:]])), model_options={**options, "device": where},
        plan=plan_of(ctx), **settings,
    )  # fmt: skip
    announce = None if as_json or on else say
    with (
        output_on_stderr(),
        shown_progress(quiet=as_json) as progress,
        open_measurer(on, model, options, device, worker_cpus, worker_gpus) as measurer,
    ):
        try:
            result = run_audit(request, progress, measurer, announce=announce)
        except OutOfTime as over:
            say(f"recollect: {over} Finished cells are kept, and the same command resumes the audit.")
            raise typer.Exit(NOT_FINISHED) from None
    print_result(result, out, as_json, verbose=verbose)
    if as_json and result.verdict:
        say(f"recollect: {result.verdict}")
    exit_with(result.verdict, inconclusive_passes=inconclusive_passes)


def check_gate_options(ctx: typer.Context, fail_above: str | None) -> None:
    """Refuse options that decide on a limit where none is given; they would be ignored."""
    for name in ("threshold", "inconclusive_passes"):
        if fail_above is None and name in given_options(ctx):
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option} says how --fail-above is decided; add --fail-above 1%, or leave {option} out.")


def given_options(ctx: typer.Context) -> list[str]:
    """List the options that the command line states."""
    sources = {str(param.name): ctx.get_parameter_source(str(param.name)) for param in ctx.command.params}
    return [name for name, source in sources.items() if source and source.name == "COMMANDLINE"]


def plan_of(ctx: typer.Context) -> Plan | None:
    """Get the plan with the settings that the command line added to it or set otherwise."""
    if ctx.obj is None:
        return None
    overridden = tuple(name for name in given_options(ctx) if name not in (*NOT_PLANNED, *WHERE))
    return replace(ctx.obj, overridden=overridden)


@contextmanager
def open_measurer(
    on: str | None, model: str, options: Mapping[str, Any], device: str | None, cpus: float | None, gpus: float | None
) -> Iterator[ShardedMeasurer | None]:
    """Connect to the Ray cluster that measures the cells; None where this process measures them."""
    worker_cpus = cpus_of(on, cpus, gpus)
    if on is None:
        yield None
        return
    from recollect.auditing import ShardedMeasurer
    from recollect.distributed import open_pool
    from recollect.models import PortableModel

    with open_pool(on, device, worker_cpus, gpus) as pool:
        portable = PortableModel.of(model, {**options, "device": pool.device})
        yield ShardedMeasurer(pool, portable, len(pool), log=lambda line: echo(line, err=True))


def say(line: str) -> None:
    """Print a line beside the results; a bar replaces `sys.stderr` to print it above itself."""
    sys.stderr.write(f"{visible(line)}\n")


def print_result(result: Audit, out: Path, as_json: bool, *, verbose: bool = False) -> None:
    """Print the result, for people or for machines."""
    if as_json:
        echo((out / "audit.json").read_text(encoding="utf-8"), nl=False)
        return
    from recollect.auditing.printout import print_audit

    print_audit(result, visible_console(), verbose=verbose, report=printable(str(out / "report.html")))


def exit_with(verdict: Verdict | None, *, inconclusive_passes: bool) -> None:
    """Exit with the code of the verdict."""
    if verdict is None or (verdict.outcome == "inconclusive" and inconclusive_passes):
        return
    if verdict.exit_code:
        raise typer.Exit(verdict.exit_code)


def read_rate_limit(text: str) -> float:
    """Read a share such as 1% or 0.01; a bare 1 could mean either 1% or all, and a limit of 100% could never fail."""
    try:
        share = read_share(text)
    except ValueError:
        raise InputError(f"--fail-above takes a share such as 1% or 0.01, not {text!r}.") from None
    if not 0 <= share < 1:
        raise InputError(f"--fail-above takes a share such as 1% or 0.01, below 100%, not {text!r}.")
    return share


def read_number(name: str, text: str | None, *choices: str) -> float | str | None:
    """Read a number, auto or another of these choices."""
    if text is None or text in ("auto", *choices):
        return text
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--{name} takes {', '.join(('a number', *choices))} or auto, not {text!r}.") from None
