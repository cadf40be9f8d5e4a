# %% [markdown]
# # A tabular autoencoder
#
# For people who find anomalies in tables with an autoencoder. You see that such a model can complete a customer's row
# from a few of its columns, if the customer was in the training set.
#
# ## A table and an autoencoder
# The table is generated: 16 columns that depend on each other, as the columns of real tables do. Values are scaled to
# [0, 1].

# %%
import torch
from torch import nn

import recollect

COLUMNS = ["age", "income", "rent", "savings", "loans", "cards", "calls", "visits", "claims", "tenure", "orders",
           "returns", "balance", "limit", "score", "children"]  # fmt: skip


def make_rows(count: int, seed: int) -> recollect.Images:
    shared = torch.randn(5, len(COLUMNS), generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(count, 5, generator=generator) @ shared / 2
    values = values + 0.5 * torch.randn(count, len(COLUMNS), generator=generator)
    return recollect.Images(torch.sigmoid(values), columns=COLUMNS)


rows, unseen = make_rows(30, seed=1), make_rows(30, seed=2)
torch.manual_seed(0)
autoencoder = nn.Sequential(
    nn.Linear(16, 256), nn.LeakyReLU(), nn.Linear(256, 256), nn.LeakyReLU(), nn.Linear(256, 256), nn.LeakyReLU(),
    nn.Linear(256, 16),
)  # fmt: skip
steps = 3000
optimizer = torch.optim.Adam(autoencoder.parameters(), 1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
for _ in range(steps):
    loss = (autoencoder(rows.pixels) - rows.pixels).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
print(f"mean square error at the end of the training: {loss.item():.1e}")

# %%
result = recollect.audit(
    autoencoder, train=rows, control=unseen, masks="columns:income+savings+loans+score,half", methods="blind,refined",
    gamma=0.5, start="half_kept",
)
# %%
result.picture("half").save("/tmp/nb-rows.png")
