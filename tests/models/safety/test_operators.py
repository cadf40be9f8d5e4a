"""Operators that a program of a stranger may use."""

import torch

from recollect.models.safety.operators import SCRIPT_OPERATORS, TENSOR_OPERATORS

TEXT_ARGUMENTS = {"approximate", "rounding_mode", "mode", "pad_mode", "padding", "equation", "norm", "ord", "indexing"}
TEXT_ARGUMENTS |= {"reduce", "interpolation", "side", "assert_msg", "UPLO", "driver", "p", "padding_side"}


def test_listed_operators_take_no_text_but_modes() -> None:
    for name in sorted(TENSOR_OPERATORS):
        for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
            text = {argument.name for argument in schema.arguments if "str" in str(argument.type)}
            assert text <= TEXT_ARGUMENTS or "Tensor" not in str(schema), schema  # text.split() is no tensor's split


def test_listed_operators_are_torchs_own_and_none_reaches_files() -> None:
    registered = {schema.name for schema in torch._C._jit_get_all_schemas()}
    unknown = {name for name in SCRIPT_OPERATORS if f"aten::{name}" not in registered}
    assert not unknown
    for name in ("save", "from_file", "_print", "chr", "set_", "resize_", "_reshape_alias", "manual_seed", "wait"):
        assert f"aten::{name}" in registered
        assert name not in SCRIPT_OPERATORS
