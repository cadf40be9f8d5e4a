"""Train a network to a loss, with a checkpoint at each milestone."""

from recollect.training.outcome import Milestone, Progress, Training
from recollect.training.recipe import Recipe
from recollect.training.run_folder import BEST
from recollect.training.train_to_loss import MILESTONES, train_to_loss

__all__ = ["BEST", "MILESTONES", "Milestone", "Progress", "Recipe", "Training", "train_to_loss"]
