"""Diffusion models as denoisers: opened, trained, sampled, attacked, and used as generic priors."""

from recollect.diffusion.card import Card, Overlap, without
from recollect.diffusion.denoiser import AnnealedDenoiser, Denoiser, DenoiserAt
from recollect.diffusion.library import can_open_priors
from recollect.diffusion.opening import BUNDLED, bundled, is_diffusion_folder, is_pipeline, open_denoiser
from recollect.diffusion.recipe import DenoiserRecipe
from recollect.diffusion.sampling import sample
from recollect.diffusion.train import train_denoiser

__all__ = [
    "BUNDLED", "AnnealedDenoiser", "Card", "Denoiser", "DenoiserAt", "DenoiserRecipe", "Overlap", "bundled",
    "can_open_priors", "is_diffusion_folder", "is_pipeline", "open_denoiser", "sample", "train_denoiser", "without",
]  # fmt: skip
