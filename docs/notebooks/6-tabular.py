# %% [markdown]
# # A tabular autoencoder
#
# For people who find anomalies in tables with an autoencoder. You see that such a model can complete a customer's row,
# if the customer was in the training set.
#
# ## A table and an autoencoder
# The table is generated: 16 columns that depend on each other, as the columns of real tables do. Values are scaled to
# [0, 1]. The autoencoder is trained on 30 customers.

# %%
import torch
from torch import nn

import recollect

COLUMNS = [
    "age",
    "income",
    "rent",
    "savings",
    "loans",
    "cards",
    "calls",
    "visits",
]
COLUMNS += [
    "claims",
    "tenure",
    "orders",
    "returns",
    "balance",
    "limit",
    "score",
    "children",
]


def make_rows(count, seed):
    shared = torch.randn(
        5, len(COLUMNS), generator=torch.Generator().manual_seed(0)
    )
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(count, 5, generator=generator) @ shared / 2
    values = values + 0.5 * torch.randn(
        count, len(COLUMNS), generator=generator
    )
    return recollect.Images(torch.sigmoid(values), columns=COLUMNS)


rows, unseen = make_rows(30, seed=1), make_rows(30, seed=2)

torch.manual_seed(0)
autoencoder = nn.Sequential(
    nn.Linear(16, 256),
    nn.LeakyReLU(),
    nn.Linear(256, 256),
    nn.LeakyReLU(),
    nn.Linear(256, 256),
    nn.LeakyReLU(),
    nn.Linear(256, 16),
)
steps = 2000
optimizer = torch.optim.Adam(autoencoder.parameters(), 1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
for _ in range(steps):
    loss = (autoencoder(rows.pixels) - rows.pixels).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
print(f"mean square error at the end of the training: {loss.item():.1e}")

# %% [markdown]
# ## Audit it
# One mask erases four columns by name, the other erases the second half of the columns. Bars show the values of a row.

# %%
private = "columns:income+savings+loans+score"
result = recollect.audit(
    autoencoder,
    train=rows,
    control=unseen,
    masks=[private, "half"],
    methods="blind,refined",
    gamma=0.5,
    start="half_kept",
    out="audit",
)
result.picture(private)

# %%
result

# %% [markdown]
# ## Read one row
# The attack is given twelve values of a customer, and returns the other four. It does so for a customer of the training
# set and for one that the model never saw.

# %%
for name, table in (("training row", rows), ("unseen row", unseen)):
    damaged = recollect.observe(
        table[:1], recollect.mask(private, table.shape, columns=table.columns)
    )
    recovered = recollect.Refined(gamma=0.5)(autoencoder, damaged.y).estimate[0]
    print(name)
    for column in ("income", "savings", "loans", "score"):
        place = COLUMNS.index(column)
        print(
            f"  {column:8} recovered {recovered[place]:.3f}   original {table.pixels[0, place]:.3f}"
        )

# %% [markdown]
# ## What the result means
# The attack recovers the missing columns of every customer in the training set accurately, and of no other
# customer. Columns depend on each other, so a good guess is possible for any row. The unseen rows show how good such a
# guess is. The rest is memory.
#
# Whoever has this model and knows the harmless columns of a customer can read the private ones from it.
# [Signals and rows](../guide/signals-and-rows.md) says how to audit a model of your own table.
