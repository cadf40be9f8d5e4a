# %% [markdown]
# # Your own VAE
#
# For people who wrote and trained a variational autoencoder themselves. You see how to give any PyTorch model to an
# audit, and that a VAE with far more weights than images memorizes them.
#
# ## A model and a training loop without Recollect
# The VAE returns three tensors, as most do, and draws its latent at random during training.

# %%
import torch
from torch import nn

import recollect


class VAE(nn.Module):
    def __init__(self, size: int, width: int, latent: int) -> None:
        super().__init__()
        self.encode = nn.Sequential(
            nn.Linear(size, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
        )
        self.mean, self.log_variance = (
            nn.Linear(width, latent),
            nn.Linear(width, latent),
        )
        self.decode = nn.Sequential(
            nn.Linear(latent, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, size),
        )

    def forward(self, x):
        hidden = self.encode(x.flatten(1))
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        latent = mean
        if self.training:
            latent = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        return self.decode(latent).view_as(x), mean, log_variance


images = recollect.load("photos?count=24&size=16")
unseen = recollect.load("photos?count=24&size=16&part=control")

torch.manual_seed(0)
vae = VAE(size=3 * 16 * 16, width=256, latent=32)
steps = 1500
optimizer = torch.optim.Adam(vae.parameters(), 1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
for _ in range(steps):
    output, mean, log_variance = vae(images.pixels)
    error = (output - images.pixels).square().mean()
    divergence = (
        0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).mean()
    )
    optimizer.zero_grad()
    (error + 1e-5 * divergence).backward()
    optimizer.step()
    schedule.step()
vae.eval()
print(f"mean square error at the end of the training: {error.item():.1e}")

# %% [markdown]
# ## Say which output is the image
# An audit takes a function from images to images of the same shape. `open_model` makes one. Part 0 of the output is
# the image. In `eval` mode this VAE decodes the mean of the latent, so it gives the same answer every time.

# %%
model = recollect.open_model(vae, output=0)

# %% [markdown]
# A VAE that draws its latent in `eval` mode too would add noise to every error. An audit warns of that.
#
# ## Audit it
# Recollect does not know this model, so it first searches for the settings of the attack on a few training images.
# These images are left out of the score.

# %%
result = recollect.audit(
    model,
    train=images,
    control=unseen,
    masks="block,dust",
    methods="blind",
    out="audit",
)
result.picture("dust")

# %%
result

# %% [markdown]
# ## What the result means
# The audit recovers all training images that it scored, at least approximately, and no unseen image. This VAE has far
# more weights than it needs for 24 images, and its divergence term is weak. It memorized the images.
#
# A VAE is no protection by itself. More images, a smaller network or a stronger divergence term reduce what it stores.
# Run the audit again after such a change, and compare both rates. [Audit your own model](../guide/audit-your-model.md)
# explains all options of `open_model`.
