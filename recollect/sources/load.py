"""From a spelling to images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from recollect.errors import InputError
from recollect.images import Images
from recollect.sources import arrays, cifar10, folder, photos, svhn, tiny_imagenet
from recollect.sources.address import Request, parse
from recollect.sources.cache import cache_folder
from recollect.sources.catalogue import Catalogue, Progress, Source, quiet
from recollect.sources.resize import to_squares
from recollect.sources.selection import draw

SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        photos.SOURCE,
        cifar10.SOURCE,
        svhn.SOURCE,
        tiny_imagenet.SOURCE,
        folder.SOURCE,
        arrays.SOURCE,
    )
}


def load(spec: str | Path, *, progress: Progress | None = None) -> Images:
    """The images that a spelling such as `photos?count=40&size=32`, or a path, stands for.

    `progress(done, total)` is told how far reading is.
    """
    if isinstance(spec, Path):
        spec = str(spec.expanduser().absolute())  # with a slash in it, it cannot be read as the name of a source
    request = parse(spec, SOURCES)
    catalogue = open_catalogue(request)
    return read(catalogue, draw(catalogue, request), request, progress)


def open_catalogue(request: Request) -> Catalogue:
    """List what a source holds, without reading it."""
    source = SOURCES[request.source]
    try:
        return source.open(place_of(request), request)
    except InputError as error:
        if request.path or not source.cached:
            raise
        raise InputError(
            f"{error} To put it there run: recollect data fetch {source.name}. Or say where you have it: "
            f"{source.name}:PATH."
        ) from None


def place_of(request: Request) -> Path:
    """Where the files of a request are; the cache folder when it names no path."""
    return Path(request.path).expanduser() if request.path else cache_folder()


def read(catalogue: Catalogue, positions: np.ndarray, request: Request, progress: Progress | None = None) -> Images:
    """Read the images at these positions; 8-bit ones stay 8-bit."""
    values = catalogue.read(positions, progress or quiet)
    size, name = request.size, str(request)
    ids = [catalogue.ids[position] for position in positions]
    try:
        if size is not None and tuple(values.shape[2:]) != (size, size):
            values = torch.from_numpy(to_squares(values.numpy(), size))
        return Images.from_uint8(values, ids, name) if values.dtype == torch.uint8 else Images(values, ids, name)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
