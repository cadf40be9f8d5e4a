"""Diffusion models as generic priors: opened, trained, and honest about what they were trained on."""

from recollect.diffusion.card import Card, Overlap, without
from recollect.diffusion.learning import PriorRecipe
from recollect.diffusion.network import can_open_priors
from recollect.diffusion.opening import BUNDLED, bundled, open_prior
from recollect.diffusion.prior import Prior
from recollect.diffusion.train import train_prior

__all__ = [
    "BUNDLED", "Card", "Overlap", "Prior", "PriorRecipe", "bundled", "can_open_priors", "open_prior", "train_prior",
    "without",
]  # fmt: skip
