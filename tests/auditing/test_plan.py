import hashlib
from pathlib import Path

import pytest

from recollect import InputError
from recollect.auditing.plan import read_plan
from recollect.auditing.thresholds import EXACT
from recollect.auditing.verdict import Gate

KNOWN = ["model", "fail_above", "threshold"]
TEXT = 'fail-above = "1%"\nthreshold = "exact"\n'


def test_a_plan_is_its_settings_and_its_hash(tmp_path: Path) -> None:
    path = tmp_path / "audit.toml"
    path.write_text(TEXT)
    plan = read_plan(path, KNOWN)
    assert plan.settings == {"fail_above": "1%", "threshold": "exact"}
    assert plan.sha256 == hashlib.sha256(TEXT.encode()).hexdigest()
    facts = plan.facts(Gate(0.01, EXACT))
    assert (facts["file"], facts["overridden"]) == (str(path), [])
    assert facts["endpoint"].endswith("recovers under any mask (MSE below 1e-07), at most 1.00%.")
    assert plan.facts(None)["endpoint"] == "none"


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a = [", b"a = 1\na = 2"])
def test_what_is_no_toml_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "audit.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read as TOML"):
        read_plan(path, KNOWN)
    with pytest.raises(InputError, match="cannot be read as TOML"):
        read_plan(tmp_path, KNOWN)
