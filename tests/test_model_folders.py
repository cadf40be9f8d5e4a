import logging
import warnings
from pathlib import Path

import pytest
import torch
from torch import nn

from recollect import InputError
from recollect.checkpoints import write_tensors
from recollect.model_folders import check_loaded, check_network_folder, check_size, quiet, read_config


def test_a_description_is_an_object_of_a_few_thousand_bytes(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    with pytest.raises(InputError, match="There is no file"):
        read_config(file)
    file.write_text("[1]")
    with pytest.raises(InputError, match="does not describe a model"):
        read_config(file)
    file.write_text(f'{{"a": "{"x" * 2**20}"}}')
    with pytest.raises(InputError, match="a description of a model has a few thousand"):
        read_config(file)
    file.write_text('{"a": 1}')
    assert read_config(file) == {"a": 1}


def test_a_folder_needs_weights_as_safetensors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no weights as safetensors"):
        check_network_folder(tmp_path)
    write_tensors(tmp_path / "model.safetensors", {"a": torch.ones(1)}, {})
    check_network_folder(tmp_path)


def test_a_network_is_no_larger_than_its_weights(tmp_path: Path) -> None:
    write_tensors(tmp_path / "model.safetensors", {"a": torch.ones(1)}, {})
    check_size(tmp_path, lambda: nn.Linear(10, 10))
    with pytest.raises(InputError, match="far more weights than its files hold"):
        check_size(tmp_path, lambda: nn.Linear(10**4, 10**4))
    with pytest.raises(InputError, match="cannot be opened: nothing fits"):
        check_size(tmp_path, lambda: (_ for _ in ()).throw(ValueError("nothing fits")))


def test_weights_that_are_missing_or_not_finite_are_refused(tmp_path: Path) -> None:
    network = nn.Linear(2, 2)
    check_loaded(tmp_path, network, {"missing_keys": []})
    with pytest.raises(InputError, match=r"weights are missing \(a, b\)"):
        check_loaded(tmp_path, network, {"missing_keys": {"b", "a"}})
    nn.init.constant_(network.bias, float("inf"))
    with pytest.raises(InputError, match="some of its weights are not finite"):
        check_loaded(tmp_path, network, {"missing_keys": []})


def test_a_library_is_quiet_while_it_opens_a_model(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("some_library.models")
    with quiet("some_library"):
        logger.warning("settings that are not expected")
        warnings.warn("an old way", stacklevel=1)
    logger.warning("later")
    assert caplog.messages == ["later"]
