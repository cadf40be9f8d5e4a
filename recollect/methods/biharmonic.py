"""Inpainting that knows nothing of images: the smooth surface through the kept pixels (scikit-image)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from recollect.degradation import Erasure
from recollect.engine import Active, Autoencoder, Runtime, prepare
from recollect.image_values import all_finite, per_image
from recollect.methods.base import Method
from recollect.recovery import Stop


@dataclass(frozen=True)
class Biharmonic(Method):
    """Biharmonic inpainting with the true mask, on the CPU; the autoencoder is never called.

    Audits compare a diffusion prior with it: a prior that restores less is too weak a baseline.

    `Biharmonic()(None, y, truth)` returns a `Recovery`.

    Examples:
        >>> import recollect
        >>> from recollect.methods import Biharmonic
        >>> images = recollect.load("photos?count=1&size=8")
        >>> seen = recollect.observe(images, recollect.mask("block", images.shape))
        >>> Biharmonic()(None, seen.y, seen.truth).estimate.shape
        torch.Size([1, 3, 8, 8])
    """

    name: ClassVar[str] = "biharmonic"
    summary: ClassVar[str] = "generic restoration: a smooth surface through the kept pixels, with the mask known"
    label: ClassVar[str] = "biharmonic (never sees the model)"
    knows_truth: ClassVar[bool] = True
    sees_model: ClassVar[bool] = False
    only_erasures: ClassVar[bool] = True
    only_images: ClassVar[bool] = True
    headline_subject: ClassVar[str] = "a smooth surface through the kept pixels of the known mask"
    colour: ClassVar[str | None] = "brown"
    order: ClassVar[int] = 8

    @contextmanager
    def prepared(self, f: Autoencoder | None, y: Tensor, chunk: int | None) -> Iterator[Runtime]:
        with prepare(_unused, y, 1, accelerated=False) as runtime:  # images are filled in one by one
            yield runtime

    def step(self, f: Runtime, batch: Active) -> Active:
        y, truth = batch.estimate, batch.degradation
        assert isinstance(truth, Erasure)
        surfaces = [surface(image, keep) for image, keep in zip(y.cpu(), truth.keep.cpu(), strict=True)]
        x = torch.stack(surfaces).to(f.device)
        finite = all_finite(x)
        return replace(
            batch,
            estimate=truth.paste(torch.where(per_image(finite, x), x, y), y),
            rounds=batch.rounds + 1,
            stop=torch.where(finite, Stop.DONE, Stop.DIVERGED),
        )


def _unused(x: Tensor) -> Tensor:
    """Stand in for the network of a method that calls none."""
    return x


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
