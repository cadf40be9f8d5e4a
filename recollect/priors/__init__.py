"""Diffusion models as generic priors: opened, trained, and honest about what they were trained on."""

from recollect.priors.card import Card, Overlap, without
from recollect.priors.learning import PriorRecipe
from recollect.priors.network import can_open_priors
from recollect.priors.opening import BUNDLED, bundled, open_prior
from recollect.priors.prior import Prior
from recollect.priors.training import train_prior

__all__ = [
    "BUNDLED", "Card", "Overlap", "Prior", "PriorRecipe", "bundled", "can_open_priors", "open_prior", "train_prior",
    "without",
]  # fmt: skip
