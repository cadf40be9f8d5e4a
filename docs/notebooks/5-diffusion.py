# %%
import recollect
from recollect.diffusion import DenoiserRecipe, train_denoiser

images = recollect.load("photos?count=20&size=16")
unseen = recollect.load("photos?count=20&size=16&part=control")
recipe = DenoiserRecipe("residual", {"width": 512, "blocks": 3}, batch=128)
denoiser = train_denoiser(images, "denoiser", max_steps=800, recipe=recipe, device="cpu", samples=16)
# %%
result = recollect.audit(denoiser, train=images, control=unseen, masks="block,half,dust", methods="blind,iterate")
# %%
print(result)
