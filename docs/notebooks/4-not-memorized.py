# %%
import recollect
import torch
from torch import nn

images = recollect.load("photos?count=2000&size=16")
unseen = recollect.load("photos?count=40&size=16&part=control")

torch.manual_seed(0)
network = nn.Sequential(nn.Conv2d(3, 48, 4, 2, 1), nn.SiLU(), nn.Conv2d(48, 96, 3, 1, 1), nn.SiLU(), nn.Conv2d(96, 12, 4, 2, 1),
  nn.ConvTranspose2d(12, 96, 4, 2, 1), nn.SiLU(), nn.ConvTranspose2d(96, 48, 4, 2, 1), nn.SiLU(), nn.Conv2d(48, 3, 3, 1, 1))
steps = 1500
optimizer = torch.optim.Adam(network.parameters(), 2e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
for _ in range(steps):
    batch = images.pixels[torch.randint(len(images), (64,))]
    loss = (network(batch) - batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
network.eval()
with torch.no_grad():
    for s in (images.pixels, unseen.pixels):
        print((network(s)-s).square().mean())
# %%
result = recollect.audit(
    network, train=images[:40], control=unseen, masks="block,dust", methods="blind",
)
result.picture("dust")

# %%
print(result)
