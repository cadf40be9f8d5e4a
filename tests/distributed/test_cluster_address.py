"""What names a cluster, and what does not."""

import pytest

from recollect.distributed.cluster_address import address_of
from tests.cli.running import mistake


@pytest.mark.parametrize("on", ["spark", "ray:/host:1", "ray://host", "host:port", ""])
def test_what_is_no_cluster_is_told(on: str) -> None:
    assert "--on takes ray, ray://HOST:PORT, HOST:PORT or auto" in mistake("paper", "run", "psnr", "--on", on)


def test_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert address_of("ray") == "local"
    assert address_of("ray://head:10001") == "ray://head:10001"
    monkeypatch.setenv("RAY_ADDRESS", "ray://head:10001")
    assert address_of("ray") == "ray://head:10001"
    assert address_of("10.0.0.1:6379") == "10.0.0.1:6379"
