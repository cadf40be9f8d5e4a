"""Where an experiment reads and writes: records, checkpoints, pictures, data sets."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import torch

from recollect.checkpoints import load_checkpoint
from recollect.devices.precision import choose_device
from recollect.diffusion import BUNDLED, Denoiser, can_open_priors, open_denoiser
from recollect.errors import InputError
from recollect.images import Images
from recollect.methods import Biharmonic
from recollect.paper import RESULTS, WORK
from recollect.paper.cells import Cell, Fit, ImageSet
from recollect.paper.scales import Scale
from recollect.paper.store import Store
from recollect.training import BEST


@dataclass(frozen=True)
class Workspace:
    """The folders of one scale, and the device that computes."""

    store: Store
    work: Path  # checkpoints and pictures: too large for the repository, or not free to publish
    data: str | None  # the folder of the real data sets
    device: torch.device

    def images(self, fit: Fit, part: str) -> Images:
        images = fit.images.load(part, self.data)
        return images if fit.images.first_of is None else images[: fit.images.count]

    def checkpoints(self, fit: Fit) -> dict[float | None, Path]:
        """Find the saved weights of a training by their milestone; None stands for the lowest loss reached."""
        folder = self.work / fit.name
        paths: dict[float | None, Path] = {loss: folder / f"loss-{loss:.0e}.safetensors" for loss in fit.milestones}
        paths[None] = folder / BEST
        return {loss: path for loss, path in paths.items() if path.exists()}

    def network(self, fit: Fit, loss: float | None) -> torch.nn.Module:
        """Load the network at a milestone, on the CPU: the computing device may be another machine's."""
        return load_checkpoint(self.checkpoints(fit)[loss], "cpu").network

    def best_network(self, fit: Fit) -> torch.nn.Module:
        """Load the network at its lowest loss, on the device."""
        saved = self.checkpoints(fit)
        lowest = None
        if None not in saved:
            lowest = min((loss for loss in saved if loss is not None), default=None)
        return self.network(fit, lowest).to(self.device)

    def prior_folder(self, images: ImageSet) -> Path | None:
        """Locate the diffusion model for these images: the bundled one, or a folder among the data sets."""
        if images.prior is None:
            return None
        if images.prior == BUNDLED.name:
            return BUNDLED
        return Path(self.data or "") / images.prior

    def lacks(self, cell: Cell) -> str:
        """Say what a method needs and does not find on this machine; nothing if it can be computed."""
        if cell.method == Biharmonic.name and find_spec("skimage") is None:
            return "it needs scikit-image"
        if not cell.needs_prior or self.has_prior(cell.fit.images):
            return ""
        if not can_open_priors():
            return "it needs diffusers"
        images = cell.fit.images
        return f"for {images.name} it needs a prior in {self.prior_folder(images)} (docs/concepts/generic-baseline.md)"

    def has_prior(self, images: ImageSet) -> bool:
        """Return whether a diffusion model for these images can be opened on this machine."""
        folder = self.prior_folder(images)
        return can_open_priors() and folder is not None and folder.is_dir()

    def prior(self, images: ImageSet) -> Denoiser:
        """Open the diffusion model for these images on the CPU, and give it its short name."""
        folder = self.prior_folder(images)
        if folder is None or images.prior is None:
            raise InputError(f"There is no diffusion prior for the images {images.name}.")
        prior = open_denoiser(folder)
        prior.name = images.prior
        return prior

    def pictures(self, name: str) -> Path:
        return self.work / "pictures" / f"{name}.npz"


def open_workspace(
    scale: Scale, data: str | None = None, results: Path = RESULTS, work: Path = WORK, device: str | None = None
) -> Workspace:
    """Open the folders of a scale; nothing is created yet."""
    if data and not Path(data).is_dir():
        raise InputError(f"There is no folder {data}; --data is the folder that holds the real data sets.")
    return Workspace(Store(results / scale.name), work / scale.name, data, choose_device(device))
