# %% [markdown]
# # A U-Net
#
# For people whose autoencoder is convolutional. You see that a U-Net stores images too, and what the attack makes of
# its guess step by step.
#
# ## Train
# This U-Net has no skip connections: everything passes through its latent. It is trained on ten photographs.

# %%
import recollect

images = recollect.load("photos?count=10&size=16")
unseen = recollect.load("photos?count=10&size=16&part=control")
network = recollect.UNet(widths=(16, 32, 64), activation="softplus")
training = recollect.train_to_loss(network, images, until=1e-6, max_seconds=60)
print(training.why)

# %%
result = recollect.audit(
    network, train=images, control=unseen, masks="block,stripes,dust", methods="blind,refined", gamma=0.5, start="half_kept",
)
result.picture("dust")

# %%
result
