"""Inpainting that knows nothing of images: the smooth surface through the kept pixels (scikit-image)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from recollect.degradation import Erasure
from recollect.engine.runtime import Autoencoder, check_observation
from recollect.errors import InputError
from recollect.image_values import all_finite, per_image
from recollect.methods.base import Method
from recollect.recovery import Progress, Recovery, Snapshot, Stop, Trace


@dataclass(frozen=True)
class Biharmonic(Method):
    """Biharmonic inpainting with the true mask, on the CPU; the autoencoder is never called.

    It stands beside a diffusion prior: one that restores less is no measure of what general knowledge can do.
    """

    name: ClassVar[str] = "biharmonic"
    summary: ClassVar[str] = "generic restoration: a smooth surface through the kept pixels, told the mask"
    label: ClassVar[str] = "biharmonic (never sees the model)"
    knows_truth: ClassVar[bool] = True
    sees_model: ClassVar[bool] = False
    only_erasures: ClassVar[bool] = True
    knowledge: ClassVar[str] = "a smooth surface through the kept pixels, which knows the mask"
    colour: ClassVar[str | None] = "brown"
    order: ClassVar[int] = 8

    def __call__(
        self,
        f: Autoencoder | None,  # noqa: ARG002  # like every method's, but never called
        y: Tensor,
        truth: Erasure,
        *,
        chunk: int | None = None,  # noqa: ARG002  # images are filled in one by one
        trace: Trace | None = None,
        progress: Progress | None = None,
    ) -> Recovery:
        check_observation(y)
        if not isinstance(truth, Erasure):
            raise InputError(
                f"biharmonic fills in erased pixels: the truth is an Erasure, not a {type(truth).__name__}."
            )
        truth = truth.expand(y)
        x = torch.empty(y.shape, dtype=y.dtype)
        for i, (image, keep) in enumerate(zip(y.detach().cpu(), truth.keep.cpu(), strict=True)):
            x[i] = surface(image, keep)
            if progress:
                progress(i + 1, len(y))
        x = x.to(y.device)
        finite = all_finite(x)
        estimate = truth.paste(torch.where(per_image(finite, x), x, y.detach()), y.detach())
        once = torch.ones(len(y), dtype=torch.int64, device=y.device)
        if trace:
            trace(Snapshot(torch.arange(len(y)), once, estimate, truth))
        return Recovery(estimate, truth, once, torch.zeros_like(once), torch.where(finite, Stop.DONE, Stop.DIVERGED))


def surface(image: Tensor, keep: Tensor) -> Tensor:
    """One image C x H x W with its erased pixels filled in; channel by channel where their masks differ."""
    if bool((keep == keep[:1]).all()):
        return _filled(image, keep[0], channel_axis=0)
    return torch.stack([_filled(channel, kept) for channel, kept in zip(image, keep, strict=True)])


def _filled(values: Tensor, keep: Tensor, channel_axis: int | None = None) -> Tensor:
    """As they are where nothing is kept, which no surface can go through."""
    from skimage.restoration import inpaint_biharmonic

    if not bool(keep.any()):
        return values
    return torch.from_numpy(inpaint_biharmonic(values.numpy(), ~keep.numpy(), channel_axis=channel_axis)).to(values)
