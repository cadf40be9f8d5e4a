# %% [markdown]
# # A model that does not memorize
#
# For people whose audit says 0% and who want to know what this means. You see a model that reproduces images well
# and gives none of its training images away.
#
# ## Many images, few weights
# The model is the simplest autoencoder: a linear one, which keeps the 300 principal components of 2,000 photographs.
# No training could give a linear autoencoder of this size a smaller error.

# %%
import torch

import recollect

images = recollect.load("photos?count=2000&size=16")
unseen = recollect.load("photos?count=40&size=16&part=control")

rows = images.pixels.flatten(1)
mean = rows.mean(0)
directions = torch.linalg.svd(rows - mean, full_matrices=False).Vh[:300]


def autoencoder(x):
    latent = (x.flatten(1) - mean) @ directions.T
    return (mean + latent @ directions).view_as(x)


# %% [markdown]
# ## Its output is close to its input, for unseen images too
# Both errors are small, and of the same order. This is a first sign that the model learnt what photographs have in
# common.

# %%
for name, pixels in (("training", images.pixels), ("unseen", unseen.pixels)):
    print(
        f"{name} images: mean square error {(autoencoder(pixels) - pixels).square().mean():.1e}"
    )

# %% [markdown]
# ## Audit a sample
# An audit need not take all training images. Here it takes the first 40.

# %%
result = recollect.audit(
    autoencoder,
    train=images[:40],
    control=unseen,
    masks="half,dust",
    methods="blind,refined",
    gamma=0.5,
    start="half_kept",
    fail_above=0.1,
)
result.picture("half")

# %%
result

# %% [markdown]
# ## What the result means
# The attack recovers neither training nor unseen images. The pixels that it fills in are a guess from what all
# photographs have in common. For training images the guess is no better than for unseen ones.
#
# Three questions show whether a 0% can be trusted:
#
# - **Does the model fit its images?** A model with a large training error would show 0% too. An audit warns of that.
# - **Does the model change damaged images at all?** A model that copies its input hides what it knows. An audit warns
#   of that too. This audit has no warnings:

# %%
[check.sentence for check in result.checks if check.level == "warning"]

# %% [markdown]
# - **How many images were tried?** With 0 of 40, a few percent of all training images may still be recoverable. The
#   verdict above states the upper bound. The model passes a limit of 10%, and would not pass one of 1%.
#   [Use in CI](../guide/ci.md) says how many images a limit needs.
#
# Even then the result is about these attacks: [what the number means](../guide/what-the-number-means.md).
