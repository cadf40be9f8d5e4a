"""Diffusion models as generic priors: opened, trained, and honest about what they were trained on."""

from recollect.priors.card import Card, Overlap, without
from recollect.priors.learning import PriorRecipe
from recollect.priors.opening import bundled, open_prior
from recollect.priors.prior import Prior
from recollect.priors.training import train_prior

__all__ = ["Card", "Overlap", "Prior", "PriorRecipe", "bundled", "open_prior", "train_prior", "without"]
