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


def test_kernels_that_trust_the_sizes_of_their_inputs_are_not_listed() -> None:
    """Each was seen to read or write beyond a tensor; the public operator above it checks."""
    checked = {"batch_norm", "instance_norm", "layer_norm", "scaled_dot_product_attention", "fft_fft", "fft_irfft"}
    assert checked <= SCRIPT_OPERATORS
    unchecked = {name for name in SCRIPT_OPERATORS if "batch_norm_legit" in name or "flash_attention" in name}
    unchecked |= SCRIPT_OPERATORS & {"native_batch_norm", "_weight_norm", "_weight_norm_interface"}
    assert not unchecked | (SCRIPT_OPERATORS & {"_fft_c2c", "_fft_c2r", "_fft_r2c"})
