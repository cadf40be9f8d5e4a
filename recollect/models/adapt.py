"""A foreign model as an autoencoder: images in [0, 1] in, images of the same shape out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from recollect.devices.model_call import ModelCall, leave_unchecked
from recollect.devices.precision import module_of
from recollect.errors import InputError
from recollect.models.adaptation import LAYOUTS, Adaptation
from recollect.models.outputs import pick_output
from recollect.models.wording import option, size

FEWEST_WITH_CHANNELS = 3  # dimensions of a batch: signals have a length in place of height and width


def other_form(returned: torch.Size, given: torch.Size) -> str:
    """Say which option a model asks for that returns as many values in another form."""
    if len(given) >= FEWEST_WITH_CHANNELS and returned == torch.Size([given[0], *given[2:], given[1]]):
        return f"if its channels come last, set {option('layout', 'nhwc')}"
    return f"if it works on flat vectors, set {option('flat', True)}"


class Adapted(nn.Module):
    """A model behind an adaptation; gradients pass through where the model has them."""

    def __init__(
        self, inner: Callable[[Tensor], Any], how: Adaptation, device: torch.device | str | None = None,
        most: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.inner = inner  # registered as a submodule where it is one
        if not isinstance(inner, nn.Module):
            self.owner = module_of(inner)  # of a method such as vae.reconstruct: its mode, weights and device count
        self.how = how
        self.device = device  # of a function that runs on a device of its own; a module's weights say theirs
        self.most = most  # images that the user allows at once: no part of what the model is

    @classmethod
    def of(cls, model: Callable[[Tensor], Any]) -> Adapted:
        """Return a model as one behind an adaptation, if only behind one that changes nothing."""
        return model if isinstance(model, Adapted) else cls(model, Adaptation())

    def but(self, **changes: Any) -> Adapted:
        """Return the same model behind an adaptation that differs in some points."""
        return self.under(replace(self.how, **changes))

    def under(self, how: Adaptation) -> Adapted:
        """Return the same model behind another adaptation."""
        return Adapted(self.inner, how, self.device, self.most)

    def limited(self, most: int) -> Adapted:
        """Return the same model, which is never given more images at once."""
        return Adapted(self.inner, self.how, self.device, most)

    def forward(self, images: Tensor) -> Tensor:
        if self.most is None:
            return self._in_batches(images)
        return ModelCall(self.most)(self._in_batches, images, leave_unchecked)

    def _in_batches(self, images: Tensor) -> Tensor:
        return self.how.batch.apply(self._reconstruct, images)

    def _reconstruct(self, images: Tensor) -> Tensor:
        values = self.how.into.to_model(_with_channels(images, self.how.channels))
        last = self.how.layout == LAYOUTS[1]
        if last and values.ndim < FEWEST_WITH_CHANNELS:
            raise InputError("layout is an option for images and signals; rows have no channels: leave it out.")
        if last:
            values = values.movedim(1, -1).contiguous()
        shape = values.shape
        if self.how.flat:
            values = values.flatten(1)
        out = self._run(values)
        if self.how.flat:
            out = _unflattened(out, shape)
        else:
            _check_form(out.shape, shape, images.shape)
        if last and out.ndim >= FEWEST_WITH_CHANNELS:  # the probe names another number of dimensions
            out = out.movedim(-1, 1).contiguous()
        return self._as_given(self.how.back.to_pixels(out), images)

    def _run(self, values: Tensor) -> Tensor:
        """Run the model, on its own device if it has one, and pick the image from what it returns."""
        if self.device is None:
            return pick_output(self.inner(values), self.how.output, values)
        return pick_output(self.inner(values.to(self.device)), self.how.output, values).to(values.device)

    def _as_given(self, pixels: Tensor, images: Tensor) -> Tensor:
        """Convert the model's channels to those of the images; the probe names a wrong shape."""
        if self.how.channels is None or pixels.ndim != 4 or pixels.shape[1] == images.shape[1]:
            return pixels
        if images.shape[1] == 1:
            return pixels.mean(1, keepdim=True)
        if pixels.shape[1] == 1:
            return pixels.repeat(1, images.shape[1], 1, 1)
        return pixels

    def extra_repr(self) -> str:
        return str(self.how)


def _check_form(returned: torch.Size, given: torch.Size, images: torch.Size) -> None:
    """Refuse as many values in another form; the probe names other wrong shapes."""
    if returned[:1] == given[:1] and returned != given and returned.numel() == given.numel():
        advice = other_form(returned, given)
        if returned == images:  # it took them channels last, and returned them as they were before
            advice = f"its channels come first, so leave {option('layout', LAYOUTS[1])} out"
        raise InputError(f"The model returned {size(returned)} for images of {size(given)}; {advice}.")


def _with_channels(images: Tensor, channels: int | None) -> Tensor:
    if channels is None or (images.ndim == 4 and images.shape[1] == channels):
        return images
    if images.ndim != 4:
        raise InputError("channels is an option for images; leave it out for signals and rows.")
    if channels == 1:
        return images.mean(1, keepdim=True)
    return images.repeat(1, channels, 1, 1)


def _unflattened(out: Tensor, shape: torch.Size) -> Tensor:
    if out.shape[:1] != shape[:1] or out.numel() != shape.numel():
        raise InputError(
            f"The model returned {size(out.shape)} for {shape[0]} flat images of {shape[1:].numel()} values; "
            "it must return as many values as it is given."
        )
    return out.reshape(shape)
