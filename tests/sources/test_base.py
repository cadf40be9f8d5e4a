from pathlib import Path

from recollect.sources import SOURCES
from recollect.sources.base import Catalogue, Source


def test_every_source_says_of_itself_what_help_needs() -> None:
    for name, source in SOURCES.items():
        assert source.name == name
        assert source.summary
        assert "\n" not in source.summary
        assert source.example.startswith((name, *("images", "train", ".", "/"))) or source.path
        assert set(source.defaults) <= {*source.parameters, "count", "size", "seed", "part"}


def test_archives_have_an_official_address_and_a_checksum() -> None:
    archives = [archive for source in SOURCES.values() for archive in source.archives]
    assert archives
    for archive in archives:
        assert archive.url.startswith("http")
        assert len(archive.md5) == 32
        assert not Path(archive.path).is_absolute()
        assert archive.megabytes > 0


def test_a_source_without_settings_has_none() -> None:
    source = Source("a", "b", "c", lambda _path, _address: Catalogue([], lambda positions, progress: None))  # type: ignore[arg-type, return-value]
    assert (source.archives, source.parameters, dict(source.defaults)) == ((), (), {})
