"""What a user states of a model, read without torch: the command line refuses a mistake before that import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from recollect.errors import InputError, is_whole
from recollect.models.batch_sizes import BatchSizes
from recollect.models.value_range import Numbers, Scaling, read_range, read_scaling
from recollect.models.wording import ends_in_sigmoid

Part = Literal["input", "output", "layout"]
LAYOUTS = ("nchw", "nhwc")  # of a batch: images, channels, height and width; channels last, as Keras has them


@dataclass(frozen=True)
class Adaptation:
    """What stands between images in [0, 1] and a model."""

    into: Scaling = field(default_factory=Scaling)
    back: Scaling = field(default_factory=Scaling)  # how the model's output is read
    output: str | int | None = None
    channels: int | None = None  # as many as the images have
    batch: BatchSizes = field(default_factory=BatchSizes)  # by default any number of images at once
    flat: bool = False
    layout: str = LAYOUTS[0]
    stated: tuple[Part, ...] = field(default=(), compare=False, repr=False)  # what the user gave

    @property
    def plain(self) -> bool:
        """Return whether images and outputs need no change."""
        return self == Adaptation()


def read_adaptation(
    *,
    input_range: Numbers | None,
    output_range: Numbers | None,
    mean: Numbers | None,
    std: Numbers | None,
    output: str | int | None,
    channels: int | None,
    batch: int | None,
    flat: bool,
    layout: str | None,
) -> Adaptation:
    """Check the options of a model."""
    if channels not in (None, 1, 3):
        raise InputError(f"channels is 1 (grey) or 3 (colour), got {channels}.")
    if batch is not None and not is_whole(batch, 1):
        raise InputError(f"batch is a number of images, 1 or more; got {batch!r}.")
    if layout not in (None, *LAYOUTS):
        raise InputError(f"layout is {' or '.join(LAYOUTS)} (channels last), got {layout!r}.")
    into = read_scaling("0,1" if input_range is None else input_range, mean, std)
    back = into
    if output_range is not None:
        back = read_range("output_range", output_range)
    elif ends_in_sigmoid(output):
        back = Scaling.of_range(0, 1, "output_range")
    stated = stated_parts({"input_range": input_range, "output_range": output_range, "mean": mean, "layout": layout})
    sizes = BatchSizes() if batch is None else BatchSizes(batch, batch)
    return Adaptation(into, back, output, channels, sizes, flat, layout or LAYOUTS[0], stated)


def stated_parts(options: Mapping[str, Any]) -> tuple[Part, ...]:
    """Say what the options of a model state: the range of its input or output, its layout."""
    names: dict[str, Part] = {"input_range": "input", "mean": "input", "output_range": "output", "layout": "layout"}
    return tuple(dict.fromkeys(part for name, part in names.items() if options.get(name) is not None))
