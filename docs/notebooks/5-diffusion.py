# %% [markdown]
# # A diffusion model
#
# For people who trained a diffusion model. You see an audit that recovers the training images from damaged copies, and
# the noise levels at which the model gives them away.
#
# ## Train on few images
# A diffusion model removes noise from images. This one is small and fully connected, and it is trained on only 16
# photographs.

# %%
import matplotlib.pyplot as plt

import recollect
from recollect.diffusion import DenoiserRecipe, train_denoiser

images = recollect.load("photos?count=16&size=16")
unseen = recollect.load("photos?count=16&size=16&part=control")
recipe = DenoiserRecipe("residual", {"width": 256, "blocks": 3}, batch=64)
denoiser = train_denoiser(
    images, "denoiser", max_steps=800, recipe=recipe, device="cpu", samples=0
)

# %% [markdown]
# ## Audit it at one noise level
# At one noise level a diffusion model maps images to images, as an autoencoder does. The same attack applies. Without
# `noise_level` and `gamma` the audit searches for both, which takes a few minutes here.

# %%
result = recollect.audit(
    denoiser,
    train=images,
    control=unseen,
    masks="block,half",
    methods="blind",
    noise_level=0.2,
    gamma=0.5,
    start="half_kept",
)
result.picture("block")

# %%
result

# %% [markdown]
# ## The noise levels at which the model remembers
# The audit also measures how well the model removes noise of several levels. A model that knows an image removes noise
# from it better than from others.

# %%
levels = result.facts["noise_levels"]
sigmas = [level["sigma"] for level in levels]
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
lines = (
    ("train", "training images", "#0072b2"),
    ("control", "unseen images", "#d55e00"),
)
for name, label, colour in lines:
    axes.loglog(
        sigmas,
        [level["denoising_loss"][name] for level in levels],
        marker="o",
        color=colour,
        label=label,
    )
axes.set_xticks(sigmas, [f"{sigma:g}" for sigma in sigmas])
axes.minorticks_off()
axes.set(
    xlabel="noise level",
    ylabel="mean square error",
    title="Error after removing the noise",
)
axes.legend()
plt.show()

# %% [markdown]
# ## What the result means
# The model gives its training images away: with the middle of an image erased, all of them are recovered approximately,
# and no unseen image is. With the lower half erased, fewer are recovered. Always read a rate with its mask.
#
# At high noise levels the two lines of the chart lie far apart. An outsider can therefore also tell which images were in
# the training set. Models trained on many images for few steps keep the lines together. [Diffusion models](../concepts/diffusion.md)
# describes audits of larger models.
