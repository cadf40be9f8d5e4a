"""A masked autoencoder as an autoencoder: every patch is predicted from others, under masks that are fixed."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

SEED = 0


class MaskedAutoencoder(nn.Module):
    """Predicts each patch of an image in all passes that hide it, and returns the mean of these predictions.

    A masked autoencoder is trained to predict hidden patches alone: what it returns for patches that it is shown has no
    meaning, and without a mask it returns nothing else. It draws its mask at random, which would put chance into every
    error. So the masks are drawn once. Each hides as many patches as in training, and all of them together show and
    hide every patch. No patch is computed from itself, so a patch that is returned as it was must be known.

    `network` is called with the values and, for each patch, the rank that decides what is shown.
    """

    ranks: Tensor
    hidden: Tensor

    @property
    def audited_as(self) -> str:
        """Say how such a network is audited, for the reader of a result."""
        passes, patches = self.ranks.shape
        return (
            f"The masked autoencoder is audited with masks that are drawn once, in {passes} passes that each hide "
            f"{int(self.hidden[0].sum())} of {patches} patches. The answer for a patch is the mean of its predictions "
            "in the passes that hide it."
        )

    def __init__(self, network: Any, patches: int, shown: int) -> None:
        super().__init__()
        self.network: Any = network
        ranks = ranks_of_passes(patches, shown)
        self.register_buffer("ranks", ranks)
        self.register_buffer("hidden", (ranks >= shown).float())

    def forward(self, values: Tensor) -> Tensor:
        predicted: Any = 0.0
        for ranks, hidden in zip(self.ranks, self.hidden, strict=True):
            patches = self.network(values, noise=ranks.expand(len(values), -1)).logits
            predicted = predicted + patches * hidden[:, None]
        return self.network.unpatchify(predicted / self.hidden.sum(0)[:, None])


def ranks_of_passes(patches: int, shown: int) -> Tensor:
    """Draw the order in which patches are shown in each pass: the first `shown` are, and the next pass begins later.

    The window of shown patches moves over one random order by as many as are shown or hidden, whichever is fewer.
    """
    order = torch.randperm(patches, generator=torch.Generator().manual_seed(SEED))
    step = min(shown, patches - shown)
    windows = [order.roll(-start) for start in range(0, patches, step)]
    return torch.stack([window.argsort() for window in windows]).float()
