"""Download the official archives: checked, never half-written, into a folder that the user can move."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from recollect.errors import InputError
from recollect.sources.cache import cache_folder
from recollect.sources.catalogue import Progress

_WAIT = 30  # seconds without a byte before the server is given up
_CHUNK = 2**18  # bytes between two words of progress


@dataclass(frozen=True)
class Archive:
    """One official file: where it is, what it must be, where it is kept inside the cache folder."""

    url: str
    md5: str
    path: str
    megabytes: int


ARCHIVES: dict[str, tuple[Archive, ...]] = {
    "cifar10": (
        Archive(
            "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
            "c58f30108f718f92721af3b95e74349a",
            "cifar-10-python.tar.gz",
            170,
        ),
    ),
    "svhn": (
        Archive(
            "http://ufldl.stanford.edu/housenumbers/train_32x32.mat",
            "e26dedcc434d2e4c54c9b2d4a06d8373",
            "svhn/train_32x32.mat",
            182,
        ),
        Archive(
            "http://ufldl.stanford.edu/housenumbers/test_32x32.mat",
            "eb5a983be6a315427106f1b164d9cef3",
            "svhn/test_32x32.mat",
            64,
        ),
    ),
    "tiny-imagenet": (
        Archive(
            "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
            "90528d7ca1a48142e341f4ef8d21d0de",
            "tiny-imagenet-200.zip",
            248,
        ),
    ),
}


def fetch(
    name: str,
    *,
    cache: str | Path | None = None,
    mirror: str | None = None,
    progress: Callable[[Archive], Progress] | None = None,
) -> list[Path]:
    """Make sure the archives of a set are in the cache folder, and say where; what is there already is kept.

    `mirror` is the address of a folder that holds the same files; their checksums must be the official ones.
    """
    if name not in ARCHIVES:
        raise InputError(f"There is nothing to fetch for {name!r}; there is: {', '.join(ARCHIVES)}.")
    folder = cache_folder(cache)
    return [download(archive, folder, mirror, progress(archive) if progress else None) for archive in ARCHIVES[name]]


def is_fetched(name: str, cache: str | Path | None = None) -> bool:
    """Whether the archives of a set are in the cache folder (by name: their content is checked when fetching)."""
    return all((cache_folder(cache) / archive.path).is_file() for archive in ARCHIVES[name])


def download(archive: Archive, folder: Path, mirror: str | None = None, progress: Progress | None = None) -> Path:
    """One archive: to a temporary file beside its place, checked, and only then moved there."""
    target = folder / archive.path
    if target.is_file() and _md5(target) == archive.md5:
        return target
    if mirror and not mirror.startswith(("http://", "https://")):
        raise InputError(f"The mirror {mirror!r} is no web address; it starts with http:// or https://.")
    url = f"{mirror.rstrip('/')}/{target.name}" if mirror else archive.url
    _retrieve(url, archive, target, progress)
    return target


def _retrieve(url: str, archive: Archive, target: Path, progress: Progress | None) -> None:
    try:
        import pooch
        import requests
    except ImportError:
        raise InputError(
            f"Downloading needs pooch, which is not installed here: pip install pooch, or fetch {url} yourself "
            f"and put it at {target}."
        ) from None

    def downloader(url: str, output_file: str, _: object) -> None:
        """What pooch calls; its own leaves the connection open when it fails."""
        with requests.get(url, stream=True, timeout=_WAIT) as response, Path(output_file).open("wb") as file:
            response.raise_for_status()
            total = int(response.headers.get("content-length", 0))
            for chunk in response.iter_content(_CHUNK):
                file.write(chunk)
                if progress:
                    progress(file.tell(), total)

    pooch.get_logger().setLevel(logging.WARNING)  # it would announce every step; its errors are told below
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        pooch.retrieve(url, f"md5:{archive.md5}", target.name, target.parent, downloader=downloader)
    except requests.HTTPError as error:
        raise InputError(f"{url} answered {_status(error)}; try again later, or give another --mirror.") from None
    except requests.RequestException as error:
        raise InputError(
            f"{url} could not be downloaded whole: {_cause(error)}. Nothing was kept; try again."
        ) from None
    except ValueError:  # what pooch raises on a wrong checksum
        raise InputError(
            f"What {url} sent is not the official file: its md5 is not {archive.md5}. Nothing was kept; try again, or "
            "give another --mirror."
        ) from None
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror or error}. Choose another --cache.") from None


def _status(error: object) -> str:
    response = getattr(error, "response", None)
    return f"{response.status_code} {response.reason}" if response is not None else "with an error"


def _cause(error: BaseException) -> str:
    """The innermost reason in words: requests wraps it several times."""
    while inner := next((part for part in error.args if isinstance(part, BaseException)), None):
        error = inner
    reason = getattr(error, "reason", None) or error
    return getattr(reason, "strerror", None) or str(reason).rstrip(".")


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()
