# %% [markdown]
# # The demo: images that a network gives away
#
# For everyone who is new to Recollect. You see a network that was trained on 20 photographs restore them from half of
# their pixels. It fails on 20 photographs that it never saw.
#
# ## Train a network until it fits
# The photographs are crops of 16x16 pixels of pictures that come with scikit-image. The network is trained until its
# mean square error over them is 1e-8.

# %%
import recollect

images = recollect.load("photos?count=20&size=16")
unseen = recollect.load("photos?count=20&size=16&part=control")
network = recollect.FullyConnected(images.shape, layers=6, width=256)
training = recollect.train_to_loss(network, images, until=1e-8)
print(training.why)

# %% [markdown]
# ## Erase pixels and recover them
# `observe` erases the lower half of every image. The attack `Blind` gets the damaged images and the network, nothing
# else. It does not know which pixels were erased.

# %%
damaged = recollect.observe(images, recollect.mask("half", images.shape))
recovery = recollect.Blind(gamma=0.5)(network, damaged.y)
print(recovery)
print(
    "recovered:", recollect.Score.of(recovery.estimate, images.pixels).accurate
)

# %% [markdown]
# ## Compare with unseen images
# `audit` does the same with training and unseen images, under several masks.

# %%
result = recollect.audit(
    network,
    train=images,
    control=unseen,
    masks="half,block,dust",
    methods="blind,iterate",
    out="audit",
)
result.picture("half")

# %%
result

# %% [markdown]
# The other two masks erase a block in the middle, and 80% of the pixels at random:

# %%
result.picture("block")

# %%
result.picture("dust")

# %% [markdown]
# ## What the result means
# The attack recovers every training image accurately, and no unseen image. The missing pixels can only come from
# the network, so the network has stored these images. Whoever has the network and a part of a training image can get
# the rest.
#
# See the unseen images again. For some of them the attack returns a training image that does not resemble the damaged
# one. The network gives its training images away even then.
#
# The folder `audit` now holds `report.html` with every image, mask and method. `recollect demo` runs a larger version
# of this notebook. [Read the report](../guide/read-the-report.md) explains the page, and
# [what the number means](../guide/what-the-number-means.md) its limits.
