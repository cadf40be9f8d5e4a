from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from recollect import InputError, open_model
from recollect.models.refusals import needs_pickle, unsafe_program, weights_alone


def test_a_pickle_is_refused_with_a_conversion_that_runs_as_it_stands() -> None:
    text = str(needs_pickle(Path("models/net.pt"), "it names code"))
    assert text.startswith("models/net.pt is refused: it names code.")
    code = "\n".join(line.strip() for line in text.splitlines() if line.startswith("    "))
    compile(code, "conversion", "exec")
    assert '"net.safetensors"' in code
    assert text.endswith("weights=net.safetensors.")


def test_weights_without_a_network_are_told_both_ways_to_give_them() -> None:
    text = str(weights_alone(Path("w.safetensors")))
    assert "weights='w.safetensors'" in text
    assert "--weights w.safetensors" in text


def test_a_program_is_refused_with_the_way_round() -> None:
    assert str(unsafe_program(Path("m.pt"), "it writes", "Export it.")) == (
        "m.pt is refused: it writes. Nothing of it was run. Export it."
    )


def test_a_file_of_a_folder_that_opens_is_answered_with_the_folder(tmp_path: Path) -> None:
    save_file({"w": torch.zeros(1)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text('{"epochs": 3}')  # of somebody's training
    with pytest.raises(InputError, match="name the code that builds the network"):
        open_model(tmp_path / "model.safetensors")
    with pytest.raises(InputError, match=r"config\.json is not a file of a known kind"):
        open_model(tmp_path / "config.json")
    (tmp_path / "config.json").write_text('{"_class_name": "AutoencoderKL"}')
    for name in ("model.safetensors", "config.json"):
        with pytest.raises(InputError, match=rf"{name} .*give its folder, {tmp_path}"):
            open_model(tmp_path / name)
