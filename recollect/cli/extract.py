"""recollect extract."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from recollect.cli.early_checks import check_folder, check_inputs
from recollect.cli.printing import echo
from recollect.devices.device_names import check_device_name

EPILOG = """\
Example: recollect extract my-denoiser --train folder:photos/train --samples 2048 --out extract/
"""


def extract_command(
    model: Annotated[
        str, typer.Argument(help="The model. No file runs code when opened. {model_formats}", metavar="MODEL")
    ],
    train: Annotated[str, typer.Option(metavar="SOURCE", help="The images that it was trained on. {sources}")],
    control: Annotated[
        str | None,
        typer.Option(metavar="SOURCE", help="Autoencoders only: also start from these unseen images."),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, metavar="N", help="How many images to generate.")] = 2048,
    steps: Annotated[
        int, typer.Option(min=2, metavar="N", help="Diffusion models only: steps from noise to a sample.")
    ] = 20,
    out: Annotated[Path, typer.Option(help="Folder for extract.json and copies.png.")] = Path("extract"),
    as_json: Annotated[bool, typer.Option("--json", help="Print extract.json instead of text.")] = False,
    label: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="The class to sample, if a diffusion model has classes.")
    ] = None,
    input_range: Annotated[
        str | None, typer.Option(help="Values that an autoencoder takes: 0,1 or -1,1 or 0,255.")
    ] = None,
    chunk: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Give the model at most N images at once. Default: by memory."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the samples.")] = 42,
    device: Annotated[
        str | None, typer.Option(help="Where the model runs: cpu or cuda. Defaults to cuda if available.")
    ] = None,
) -> None:  # fmt: skip
    """Generate images and count the training images among them: no damaged copy is needed.

    A diffusion model is sampled. An autoencoder is applied over and over, from noise, constants and blends, until it
    no longer changes. Each result is compared with all training images, by pixels and by the patch rule of Carlini et
    al. (2023).
    """
    from recollect.models.value_range import read_range

    check_inputs(model, train, control)
    check_device_name(device)
    if input_range is not None:
        read_range("input_range", input_range)
    check_folder(out)

    from recollect.auditing import shown_progress
    from recollect.extraction import extract
    from recollect.files.locks import lock_folder
    from recollect.models import open_model
    from recollect.sources import control_of, load

    opened = open_model(model, device=device, label=label, input_range=input_range)
    images = load(train)
    unseen = load(control_of(control) or control) if control else None
    with lock_folder(out), shown_progress(quiet=as_json) as progress:
        result = extract(
            opened, images, control=unseen, samples=samples, steps=steps, seed=seed, chunk=chunk,
            progress=lambda done, total: progress("generating", done, total),
        )  # fmt: skip
        write_result(result, images, out)
    if as_json:
        echo((out / "extract.json").read_text(encoding="utf-8"), nl=False)
    else:
        echo(str(result))


def write_result(result: Any, images: Any, out: Path, most: int = 32) -> None:
    """Write the counts as JSON, and the nearest samples beside their training images as a picture."""
    import torch

    from recollect.diffusion.samples import write_sheet
    from recollect.records import write_json

    write_json(out / "extract.json", result.to_dict())
    best = result.nearest.mse.argsort()[:most]
    originals = torch.stack([images[int(i)].pixels[0] for i in result.nearest.by_pixels[best]])
    pairs = torch.stack([result.samples[torch.from_numpy(best.copy())], originals], 1).flatten(0, 1)
    write_sheet(out / "copies.png", pairs)
