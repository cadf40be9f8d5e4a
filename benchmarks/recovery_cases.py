"""Networks and images that recovery is timed on."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from recollect import FullyConnected, Images, UNet
from recollect.checkpoints import load_checkpoint, save_checkpoint
from recollect.degradation import Degradation, all_erased, half_kept
from recollect.sources import load
from recollect.training import train_to_loss


@dataclass(frozen=True)
class Case:
    """A network, the images it is trained on, and the settings of its recovery."""

    network: Callable[[tuple[int, int, int]], nn.Module]
    source: str
    shape: tuple[int, int, int, int]  # of random images, where there is no data
    gamma: float
    loss: float
    train_seconds: float  # 0 leaves the weights as they are
    start: Callable[[Tensor], Degradation] = half_kept
    limit: int = 100  # rounds, for all contenders


class AutoencoderOfDiffusers(nn.Module):
    """A small `AutoencoderKL`: a convolutional network with attention that is not ours."""

    def __init__(self) -> None:
        super().__init__()
        from diffusers import AutoencoderKL

        self.vae: Any = AutoencoderKL(
            down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
            block_out_channels=(16, 32), norm_num_groups=4,
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return self.vae.decode(self.vae.encode(x).latent_dist.mode()).sample


TINY = "tiny-imagenet:{data}/tiny-imagenet-200.zip?per-class=3&seed=42"
SVHN = "svhn:{data}/svhn?count=50&seed=42"
CIFAR = "cifar10:{data}/cifar-10-batches-py?count=1000&seed=42"
CASES = {
    "quick": Case(lambda s: FullyConnected(s, layers=3, width=64), "", (12, 3, 8, 8), 0.5, 1e-5, 60),
    "demo": Case(
        lambda s: FullyConnected(s, layers=6, width=512), "photos?count=40&size=32", (40, 3, 32, 32), 0.5, 1e-8, 600
    ),
    "unet-small": Case(
        lambda _: UNet(widths=(16, 32, 64)), "photos?count=40&size=32", (40, 3, 32, 32), 1.0, 1e-4, 60, all_erased, 20
    ),
    "kl-small": Case(
        lambda _: AutoencoderOfDiffusers(), "photos?count=12&size=32", (12, 3, 32, 32), 0.5, 0, 0, limit=1
    ),
    "fc10": Case(lambda s: FullyConnected(s, layers=10), TINY, (600, 3, 64, 64), 0.5, 1e-8, 60),
    "fc20": Case(lambda s: FullyConnected(s, layers=20), TINY, (600, 3, 64, 64), 0.1, 1e-8, 180),
    "unet50": Case(lambda _: UNet(activation="softplus"), SVHN, (50, 3, 32, 32), 1.0, 1e-6, 20, all_erased),
    "unet1000": Case(lambda _: UNet(activation="softplus"), CIFAR, (1000, 3, 32, 32), 1.0, 1e-4, 25, all_erased),
}  # fmt: skip


def load_case(name: str, options: argparse.Namespace) -> tuple[Images, nn.Module]:
    """Load the images of a case and its network, trained within the case's time if there is no checkpoint."""
    case = CASES[name]
    if case.source and (options.data or "{data}" not in case.source):
        images = load(case.source.format(data=options.data))
    else:
        images = Images(torch.rand(case.shape, generator=torch.Generator().manual_seed(0)))
    if options.checkpoint and options.checkpoint.exists():
        return images, load_checkpoint(options.checkpoint, options.device).network
    network = case.network(images.image_shape)
    if not case.train_seconds:
        return images, network.to(options.device).eval()
    done = train_to_loss(network, images, case.loss, device=options.device, max_seconds=case.train_seconds)
    print(f"{name}: {len(images)} images, trained to {done.loss:.1e} in {done.history[-1].seconds:.0f} s", flush=True)
    if options.checkpoint:
        save_checkpoint(options.checkpoint, network, {"loss": done.loss, "steps": done.history[-1].steps})
    return images, network.eval()
