# %% [markdown]
# # A U-Net
#
# For people whose autoencoder is convolutional. You see that a U-Net stores images too, and how the attack gets from a
# damaged image to the original round by round.
#
# ## Train
# This U-Net has no skip connections, so everything passes through its latent. It is trained on ten photographs for 700
# steps.

# %%
import matplotlib.pyplot as plt

import recollect

images = recollect.load("photos?count=10&size=16")
unseen = recollect.load("photos?count=10&size=16&part=control")
network = recollect.UNet(widths=(16, 32, 64), activation="softplus")
training = recollect.train_to_loss(network, images, until=1e-6, max_steps=700)
print(training.why)

# %% [markdown]
# ## Watch one recovery
# Each round of the attack improves the image first, and then the guess of which pixels are missing. `trace` is called
# after every round. Here 80% of the pixels are erased. After the first round most of them are still dark. The last round
# recovers the image approximately.

# %%
damaged = recollect.observe(images[:1], recollect.mask("dust", images.shape))
rounds = []
recovery = recollect.Blind(gamma=0.5)(
    network,
    damaged.y,
    trace=lambda snapshot: rounds.append(snapshot.estimate[0]),
)
score = recollect.Score.of(recovery.estimate, images[:1].pixels)
print(f"error after {len(rounds)} rounds: {score.mse[0]:.1e}")

shown = {"given": damaged.y[0]}
numbers = sorted({1, 2, len(rounds) // 2, len(rounds)})
shown |= {f"round {number}": rounds[number - 1] for number in numbers}
shown["original"] = images.pixels[0]
figure, grid = plt.subplots(1, len(shown), figsize=(9, 1.8))
for axes, (title, pixels) in zip(grid, shown.items(), strict=True):
    axes.imshow(pixels.permute(1, 2, 0).clamp(0, 1))
    axes.set_title(title)
    axes.axis("off")
plt.show()

# %% [markdown]
# ## Audit it
# The audit attacks all ten training images and ten unseen ones.

# %%
attack = recollect.Blind(gamma=0.5, limit=20)
result = recollect.audit(
    network,
    train=images,
    control=unseen,
    masks="dust,block",
    methods=[attack],
    out="audit",
)
result.picture("dust")

# %%
result

# %% [markdown]
# ## What the result means
# The U-Net gives away its training images approximately: by eye they are the same pictures. No unseen image is
# recovered. Convolutions and a narrow latent do not protect training images.
#
# The error of the recovered images is about as large as the training error. A longer training makes both smaller, as
# [the paper's experiments](../research/reproduction.md) show with larger U-Nets.
