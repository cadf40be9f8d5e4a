"""Pictures for the report: a sample of images as 8-bit arrays, and a few recoveries round by round."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from recollect.degradation import Erasure, Observation
from recollect.images import Images
from recollect.records import atomically
from recollect.recovery import Recovery, Snapshot

SAMPLE = 48  # images of each set in the gallery, at the most
GALLERY_BYTES = 12e6  # fewer when their pictures would be more than this ...
CELLS = 60  # ... in an audit of two sets, six masks and five methods
TRACED = 4  # images shown round by round
ERROR_SCALE = 0.25  # an error this large, or larger, is drawn at full strength
ROUNDS_SHOWN = 40


def sampled(images: Images) -> np.ndarray:
    """Positions evenly spaced over a set, fewer when images are large: the same for every cell of every audit."""
    affordable = int(GALLERY_BYTES / (CELLS * 2.5 * math.prod(images.shape)))
    return images.spread(max(6, min(SAMPLE, affordable)))


def cell_pictures(images: Images, seen: Observation, recovery: Recovery, some: np.ndarray) -> dict[str, np.ndarray]:
    """What the gallery shows of one cell, for the images at the positions `some`."""
    original, estimate = images[some].pixels, recovery.estimate[some]
    error = (estimate - original).abs().mean(1) / ERROR_SCALE
    pictures = {"degraded": _colour(seen.y[some]), "estimate": _colour(estimate), "error": _grey(error)}
    if isinstance(recovery.degradation, Erasure):
        pictures["mask"] = _grey(recovery.degradation.keep.expand_as(recovery.estimate)[some].float().mean(1))
    return pictures


def set_pictures(images: Images, some: np.ndarray) -> dict[str, np.ndarray]:
    return {"original": _colour(images[some].pixels), "index": some}


@dataclass
class Film:
    """Collects estimates and masks round by round through a method's trace callback."""

    frames: dict[int, list[np.ndarray]] = field(default_factory=dict)
    masks: dict[int, list[np.ndarray]] = field(default_factory=dict)

    def __call__(self, shot: Snapshot) -> None:
        for row, image in enumerate(shot.index.tolist()):
            frames = self.frames.setdefault(image, [])
            if len(frames) >= ROUNDS_SHOWN:
                continue
            frames.append(_colour(shot.estimate[row : row + 1])[0])
            if isinstance(shot.degradation, Erasure):
                keep = shot.degradation.keep[row : row + 1].float().mean(1)
                self.masks.setdefault(image, []).append(_grey(keep)[0])


def film(images: Images, seen: Observation, methods: Mapping[str, Callable[..., Recovery]]) -> dict[str, np.ndarray]:
    """These images recovered again with the camera on: {"estimate/blind/0": rounds x H x W x C, ...}."""
    shown: dict[str, np.ndarray] = {}
    for j in range(len(images)):
        shown[f"original/{j}"] = _colour(images[j].pixels)[0]
        shown[f"degraded/{j}"] = _colour(seen.y[j : j + 1])[0]
    for name, run in methods.items():
        camera = Film()
        run(seen.y, trace=camera)
        for j, frames in camera.frames.items():
            shown[f"estimate/{name}/{j}"] = np.stack(frames)
        for j, masks in camera.masks.items():
            shown[f"mask/{name}/{j}"] = np.stack(masks)
    return shown


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    packed = io.BytesIO()
    named: dict[str, Any] = dict(arrays)
    np.savez_compressed(packed, **named)
    with atomically(path) as file:
        file.write_bytes(packed.getvalue())


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as packed:
        return {name: packed[name] for name in packed.files}


def _colour(images: Tensor) -> np.ndarray:
    """As 8-bit H x W x C, cut to [0, 1] and never rescaled; what is not finite is black."""
    values = images.detach().float().cpu().nan_to_num(0.0).clamp(0, 1)
    return (values * 255).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()


def _grey(values: Tensor) -> np.ndarray:
    return (values.detach().float().cpu().nan_to_num(1.0).clamp(0, 1) * 255).round().to(torch.uint8).numpy()
