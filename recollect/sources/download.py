"""Download the official archives: checked, never half-written, into a folder that the user can choose."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from pathlib import Path

from recollect.errors import InputError
from recollect.sources.base import SOURCES, Archive, Progress, Source
from recollect.sources.cache import cache_folder

TIMEOUT = 30.0  # seconds without a byte before the download fails
_CHUNK = 2**18  # bytes between two reports of progress


def fetchable() -> dict[str, Source]:
    """Return the sources that have archives to download, by name."""
    return {name: source for name, source in SOURCES.items() if source.archives}


def fetch(
    source: str | Source,
    *,
    cache: str | Path | None = None,
    mirror: str | None = None,
    progress: Callable[[Archive], Progress] | None = None,
) -> list[Path]:
    """Download the archives of a source into the cache folder and return their paths; keep those already there.

    `mirror` is the address of a folder that holds the same files; their checksums must be the official ones.
    """
    folder = cache_folder(cache)
    paths = []
    for archive in _archives(source):
        report = progress(archive) if progress else None
        paths.append(download(archive, folder, mirror, report))
    return paths


def is_fetched(source: str | Source, cache: str | Path | None = None) -> bool:
    """Return whether the archives of a source are in the cache folder; their content is checked when fetching."""
    return all((cache_folder(cache) / archive.path).is_file() for archive in _archives(source))


def _archives(source: str | Source) -> tuple[Archive, ...]:
    if isinstance(source, Source):
        return source.archives
    if source not in fetchable():
        raise InputError(f"There is nothing to fetch for {source!r}; there is: {', '.join(fetchable())}.")
    return SOURCES[source].archives


def download(
    archive: Archive,
    folder: Path,
    mirror: str | None = None,
    progress: Progress | None = None,
    *,
    timeout: float = TIMEOUT,
) -> Path:
    """Download one archive to a temporary file, check it, and only then move it into the folder."""
    target = folder / archive.path
    if target.is_file() and _md5(target) == archive.md5:
        return target
    if mirror and not mirror.startswith(("http://", "https://")):
        raise InputError(f"The mirror {mirror!r} is no web address; it starts with http:// or https://.")
    url = f"{mirror.rstrip('/')}/{target.name}" if mirror else archive.url
    _retrieve(url, archive, target, progress, timeout)
    return target


def _retrieve(url: str, archive: Archive, target: Path, progress: Progress | None, timeout: float) -> None:
    try:
        import pooch
        import requests
    except ImportError:
        raise InputError(
            f"Downloading needs pooch, which is not installed here: pip install pooch, or fetch {url} yourself "
            f"and put it at {target}."
        ) from None

    def downloader(url: str, output_file: str, _: object) -> None:
        """Replace pooch's own, which leaves the connection open when it fails."""
        with requests.get(url, stream=True, timeout=timeout) as response, Path(output_file).open("wb") as file:
            response.raise_for_status()
            total = int(response.headers.get("content-length", 0))
            for chunk in response.iter_content(_CHUNK):
                file.write(chunk)
                _check_length(url, archive, file.tell())
                if progress:
                    progress(file.tell(), total)

    pooch.get_logger().setLevel(logging.WARNING)  # it would announce every step; its errors are reported below
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        pooch.retrieve(url, f"md5:{archive.md5}", target.name, target.parent, downloader=downloader)
    except InputError:
        raise
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


def _check_length(url: str, archive: Archive, received: int) -> None:
    """Refuse an answer that does not end: twice the length of the official file."""
    most = 2 * (archive.megabytes + 1) * 10**6
    if received > most:
        raise InputError(
            f"{url} sent more than {most:,} bytes, and the official file has about {archive.megabytes} million. "
            "Nothing was kept; try again, or give another --mirror."
        )


def _status(error: object) -> str:
    response = getattr(error, "response", None)
    return f"{response.status_code} {response.reason}" if response is not None else "with an error"


def _cause(error: BaseException) -> str:
    """Return the innermost reason as text: requests wraps it several times."""
    while inner := next((part for part in error.args if isinstance(part, BaseException)), None):
        error = inner
    reason = getattr(error, "reason", None) or error
    return getattr(reason, "strerror", None) or str(reason).rstrip(".")


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()
