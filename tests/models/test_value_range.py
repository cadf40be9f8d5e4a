"""Pixels are converted to the range of a model and back."""

import torch

from recollect.models.value_range import read_scaling


def test_statistics_made_in_inference_mode_serve_outside_it() -> None:
    scaling = read_scaling((0.0, 1.0), (0.1, 0.2, 0.3), (0.5, 0.5, 0.25))
    x = torch.rand(2, 3, 4, 4)
    with torch.inference_mode():
        scaling.to_model(x)
    x.requires_grad_()
    scaling.to_model(x).square().sum().backward()  # tensors of inference mode could not be kept for this
    assert x.grad is not None
    assert torch.allclose(scaling.to_pixels(scaling.to_model(x)), x, atol=1e-6)
    assert scaling.to_model(x.double()).dtype == torch.float64
