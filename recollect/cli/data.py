"""recollect data: list sources of images, download them, show a set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli.early_checks import check_source
from recollect.cli.listings import SOURCE, ListingCommand
from recollect.cli.printing import echo, plain_warnings
from recollect.counting import counted
from recollect.errors import InputError

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

    from recollect.images import Images
    from recollect.sources.base import Archive
    from recollect.sources.base import Progress as ReadProgress

app = typer.Typer(no_args_is_help=True, help="List, download, show and split sets of images.")

Cache = Annotated[
    Path | None, typer.Option(help="Folder to keep downloads in. Default: $RECOLLECT_DATA, else ~/.cache/recollect.")
]


@app.command("list")
def list_sources(cache: Cache = None) -> None:
    """List where images can come from, with an example of each, and what is downloaded already."""
    from recollect.sources import SOURCES
    from recollect.sources.cache import cache_folder
    from recollect.sources.download import is_fetched

    for source in SOURCES.values():
        echo(f"{source.name:14} {source.summary}")
        echo(f"{'':14} for example: {source.example}")
        if source.archives:
            size = sum(archive.megabytes for archive in source.archives)
            state = f"recollect data fetch {source.name}  ({size} MB)"
            if is_fetched(source.name, cache):
                state = "downloaded"
            echo(f"{'':14} {state}")
    echo(f"\nDownloads are kept in {cache_folder(cache)} (change it with --cache or RECOLLECT_DATA).")


@app.command("fetch", cls=ListingCommand)
def fetch_sets(
    names: Annotated[list[str], typer.Argument(help="Which sets: {fetchable_sources}.", metavar="NAME")],
    cache: Cache = None,
    mirror: Annotated[
        str | None, typer.Option(help="Address of a folder with the same files, if the official server is slow.")
    ] = None,
) -> None:
    """Download the official archives of a set and check them; a checked archive is not downloaded again."""
    from rich.progress import DownloadColumn

    from recollect.sources.download import fetch, fetchable

    for name in names:  # a misspelt last name must not cost the first download
        if name not in fetchable():
            raise InputError(f"There is nothing to fetch for {name!r}; there is: {', '.join(fetchable())}.")
    for name in names:
        with _bar(DownloadColumn()) as bar:

            def progress(archive: Archive, bar: Progress = bar) -> ReadProgress:
                return _progress(bar, Path(archive.path).name)

            paths = fetch(name, cache=cache, mirror=mirror, progress=progress)
        for path in paths:
            echo(f"{name}: {path}")
        address = name if cache is None else f"{name}:{cache}"
        echo(f"Use it as {address}")


@app.command("show")
def show(spec: Annotated[str, typer.Argument(help=SOURCE, metavar="SOURCE")]) -> None:
    """Load a set of images and print how many it has, their size, the first ids and the content hash."""
    images = _load(spec)
    first = [*images.ids[:4]]
    if len(images) > 4:
        first.append("...")
    echo(f"{images.name}\n{described(images)}")
    echo(f"ids     {', '.join(first)}")
    echo(f"sha256  {images.hash}")


@app.command("split")
def split_set(
    train: Annotated[str, typer.Argument(help=SOURCE, metavar="TRAIN")],
    control: Annotated[
        str | None, typer.Argument(help="The control set. Default: TRAIN with part=control.", metavar="CONTROL")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the record (ids and content hashes) to this .json file, which recollect audit --train takes."
        ),
    ] = None,
) -> None:
    """Make a train and a control set, search both for duplicates, and write a record to make both again."""
    for address in (train, control):
        if address is not None:
            check_source(address)
    if out is not None and out.suffix != ".json":
        raise InputError(f"{out} is not called .json, by which recollect audit knows the record of a split.")

    from rich.progress import MofNCompleteColumn

    from recollect.duplicates import find_duplicates
    from recollect.sources import runs_code, split
    from recollect.sources.folder import SkippedFiles

    with _bar(MofNCompleteColumn()) as bar, plain_warnings(SkippedFiles):
        made = split(train, control, progress=_progress(bar, "reading"))
    duplicates = find_duplicates(made.train, made.control)
    for part, images in (("train", made.train), ("control", made.control)):
        echo(f"{part:8} {counted(len(images), 'image')}  sha256 {images.hash[:12]}  {images.name}")
    echo(str(duplicates))
    for pair in (*duplicates.across, *duplicates.inside)[:10]:
        echo(f"  {pair}")
    if out is not None:
        _write(out, {**made.record(), "duplicates": duplicates.record()})
        echo(f"Record written to {out}")
        if runs_code(made.train.name) or runs_code(made.control.name):
            echo("It names code, which recollect takes from no file: give an audit the addresses themselves.")


def described(images: Images) -> str:
    """Say how many images, signals or rows a set holds and of which size."""
    items = counted(len(images), images.kind.removesuffix("s"))
    if images.kind == "rows":
        return f"{items} of {counted(images.shape[0], 'column')}"
    channels, *sides = images.shape
    size = "x".join(map(str, reversed(sides))) if images.kind == "images" else counted(sides[0], "value")
    return f"{items} of {size}, {counted(channels, 'channel')}"


def _load(spec: str) -> Images:
    from rich.progress import MofNCompleteColumn

    from recollect.sources import load
    from recollect.sources.folder import SkippedFiles

    with _bar(MofNCompleteColumn()) as bar, plain_warnings(SkippedFiles):
        return load(spec, progress=_progress(bar, "reading"))


def _write(path: Path, record: dict[str, object]) -> None:
    try:
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from None


def _bar(amount: ProgressColumn) -> Progress:
    """Make a progress bar on stderr, which shows only in a terminal and leaves nothing behind."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), amount, TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _progress(bar: Progress, doing: str) -> ReadProgress:
    task = bar.add_task(doing, total=None)
    return lambda done, total: bar.update(task, completed=done, total=total or None)
