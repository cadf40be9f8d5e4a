import pickle
from pathlib import Path

import pytest

from recollect import InputError
from recollect.models import open_model


@pytest.mark.parametrize("name", ["m.pt", "m.ts", "m.onnx", "m.unknown"])
def test_a_pickle_is_refused_under_any_name_with_a_way_to_convert_it(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(InputError, match=r"bare pickle(?s:.*)none of it was run(?s:.*)save_file"):
        open_model(tmp_path / name)
