import pytest
import torch

from recollect.accelerate.backend import LayerCall, contiguous, passes_self_test


@pytest.mark.parametrize(
    ("x", "weight", "stride", "padding", "scale", "output"),
    [
        ((9, 1, 1, 40), (24, 40), 1, (0, 0), 1, (9, 1, 1, 24)),
        ((2, 8, 6, 20), (30, 20, 3, 3), 1, (1, 1), 1, (2, 8, 6, 30)),
        ((2, 8, 6, 20), (30, 20, 4, 3), 2, (1, 0), 1, (2, 4, 2, 30)),
        ((2, 8, 6, 20), (30, 20, 3, 3), 1, (1, 1), 2, (2, 16, 12, 30)),
    ],
)
def test_a_call_knows_the_shape_of_its_output(
    x: tuple, weight: tuple, stride: int, padding: tuple, scale: int, output: tuple
) -> None:
    call = LayerCall(torch.empty(x), torch.empty(weight), None, stride, padding, scale)
    assert call.output_shape == output


def test_pending_negations_are_resolved() -> None:
    values = torch.rand(9, 40, dtype=torch.complex64).conj().imag[:, ::2]
    dense = contiguous(values)
    assert dense.is_contiguous()
    assert not dense.is_neg()
    assert torch.equal(dense, values)


def test_kernels_are_used_if_their_self_test_passes() -> None:
    def fails() -> bool:
        raise ImportError("no compiler")

    def fills_the_memory() -> bool:
        raise torch.cuda.OutOfMemoryError("full")

    lines: list[str] = []

    def log(text: str, *given: object) -> None:
        lines.append(text % given)

    assert passes_self_test("the Triton kernels", lambda: True, log)
    assert not lines
    assert not passes_self_test("the Triton kernels", lambda: False, log)
    assert not passes_self_test("oneDNN", fails, log)
    with pytest.raises(torch.cuda.OutOfMemoryError):
        passes_self_test("oneDNN", fills_the_memory, log)
    assert lines == [
        "Layers run in PyTorch's kernels: the Triton kernels computed wrong values in a self-test.",
        "Layers run in PyTorch's kernels: oneDNN failed (ImportError: no compiler).",
    ]
