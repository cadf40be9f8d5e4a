"""Real autoencoders in the many styles that people export to TorchScript."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional


def sequential() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.ReLU(), nn.ConvTranspose2d(6, 3, 2, stride=2))


def fully_connected() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(192, 20),
        nn.BatchNorm1d(20),
        nn.LeakyReLU(0.1),
        nn.Linear(20, 192),
        nn.Unflatten(1, (3, 8, 8)),
    )


class Block(nn.Module):
    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(inside, outside, 3, padding=1, padding_mode="reflect"), nn.GroupNorm(2, outside), nn.SiLU()
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class UNet(nn.Module):
    def __init__(self, skips: bool) -> None:
        super().__init__()
        self.skips = skips
        self.down = nn.ModuleList([Block(3, 4), Block(4, 8)])
        self.up = nn.ModuleList([Block(12 if skips else 8, 4), nn.Conv2d(7 if skips else 4, 3, 1)])

    def forward(self, x: Tensor) -> Tensor:
        held = []
        for block in self.down:
            held.append(x)
            x = functional.avg_pool2d(block(x), 2)
        for block in self.up:
            x = functional.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
            skip = held.pop()
            if self.skips:
                x = torch.cat([x, skip], dim=1)
            x = block(x)
        return torch.sigmoid(x)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.entrance = nn.Conv2d(3, 8, 2, stride=2)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1)
        self.position = nn.Parameter(torch.randn(1, 16, 8) * 0.1)
        self.exit = nn.Linear(8, 12)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.entrance(x).flatten(2).transpose(1, 2) + self.position
        attended, _ = self.attention(tokens, tokens, tokens, need_weights=False)
        tokens = self.encoder(self.norm(tokens + attended))
        return functional.pixel_shuffle(self.exit(tokens).transpose(1, 2).reshape(x.shape[0], 12, 4, 4), 2)


class ByHandAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(3, 9)
        self.scale = 3**-0.5

    def forward(self, x: Tensor) -> Tensor:
        n, c, h, w = x.shape
        q, k, v = self.project(x.permute(0, 2, 3, 1).reshape(n, h * w, c)).chunk(3, dim=-1)
        weights = torch.einsum("nqc,nkc->nqk", q, k).mul(self.scale).softmax(dim=-1)
        fused = functional.scaled_dot_product_attention(q, k, v)
        return (weights @ v + fused).view(n, h, w, c).permute(0, 3, 1, 2).contiguous()


class Variational(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Linear(192, 10)
        self.decode = nn.Linear(5, 192)

    def reparameterize(self, mean: Tensor, log_variance: Tensor) -> Tensor:
        if self.training:
            return mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
        return mean

    def forward(self, x: Tensor) -> Tensor:
        mean, log_variance = self.encode(x.flatten(1)).chunk(2, dim=1)
        return torch.sigmoid(self.decode(self.reparameterize(mean, log_variance))).view_as(x)


class Shuffled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inside = nn.Sequential(nn.PixelUnshuffle(2), nn.Conv2d(12, 12, 3, padding="same", groups=3), nn.PReLU(12))
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(12, 12, 1), nn.Hardsigmoid())
        self.outside = nn.Sequential(nn.InstanceNorm2d(12, affine=True), nn.Dropout2d(0.2), nn.PixelShuffle(2))

    def forward(self, x: Tensor) -> Tensor:
        coded = functional.channel_shuffle(self.inside(x), 3)
        return self.outside(coded * self.gate(coded))


class Decisions(nn.Module):
    """Loops, conditions, asserts with quotes and line breaks, dictionaries, and grad mode."""

    mean: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleDict({"first": nn.Conv2d(3, 3, 1), "second": nn.Conv2d(3, 3, 1)})
        self.register_buffer("mean", torch.full((1, 3, 1, 1), 0.45))
        self.rounds = 3
        self.factors = {"odd": 0.5, "even": 2.0}
        self.name = "Größe"

    def forward(self, x: Tensor) -> Tensor:
        assert x.dim() == 4, f'It\'s "{x.dim()}" dimensions,\nnot four'
        i = 0
        while i < self.rounds and bool(x.abs().max() < 1e6):
            x = x * self.factors["odd" if i % 2 else "even"]
            i += 1
        with torch.no_grad():
            shift = torch.zeros(1, device=x.device, dtype=x.dtype) - self.mean
        for name, layer in self.layers.items():
            x = layer(x) if name == "first" else x + layer(x)
        sizes = [int(s) for s in x.shape[2:]]
        if sizes[0] != sizes[-1]:
            raise ValueError("only square images")
        return (x + shift).clamp(-float("inf"), 5.0)


class Parts(NamedTuple):
    image: Tensor
    size: int


class Tupled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 3, 3, padding=1, bias=False)

    def split(self, x: Tensor, scale: float = 1.0) -> Parts:
        return Parts(self.layer(x) * scale, x.shape[0])

    def forward(self, x: Tensor) -> Tensor:
        parts = self.split(x, scale=-1.5)
        return parts.image[:, :, ::1, :] * parts.size


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.reader = nn.LSTM(24, 12, batch_first=True)
        self.writer = nn.GRU(12, 24, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        hidden, _ = self.reader(x.transpose(1, 2).flatten(2))
        return self.writer(hidden)[0].unflatten(2, (3, 8)).transpose(1, 2)


class Masked(nn.Module):
    """A masked autoencoder's gather and scatter, with a mask that does not change."""

    kept: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.tensor([0, 3, 5, 6]))
        self.layer = nn.Linear(24, 24)
        self.token = nn.Parameter(torch.zeros(1, 1, 24))

    def forward(self, x: Tensor) -> Tensor:
        rows = x.transpose(1, 2).reshape(x.size(0), 8, 24)
        coded = functional.gelu(self.layer(torch.index_select(rows, 1, self.kept)))
        full = self.token.expand(x.size(0), 8, 24).clone()
        full[:, self.kept] = coded
        return torch.where(full > 0, full, full * 0.1).view(x.size(0), 8, 3, 8).transpose(1, 2)


class Spectral(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.rand(8, 5))

    def forward(self, x: Tensor) -> Tensor:
        coded = torch.fft.irfft2(torch.fft.rfft2(x, norm="ortho") * self.gain, s=[8, 8], norm="ortho")
        padded = functional.pad(coded, [1, 1, 1, 1], mode="replicate")
        return functional.interpolate(
            functional.unfold(padded, 3).view(-1, 27, 8, 8)[:, ::9], size=[8, 8], mode="bicubic"
        )


class Hooked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inside = nn.Conv2d(3, 3, 1)

        def halve(self, inputs: tuple[Tensor], output: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
            return output * 0.5

        self.inside.register_forward_hook(halve)

    def forward(self, x: Tensor) -> Tensor:
        return self.inside(x)


AUTOENCODERS: dict[str, Callable[[], nn.Module]] = {
    "sequential": sequential,
    "fully connected": fully_connected,
    "u-net": lambda: UNet(skips=False),
    "u-net with skips": lambda: UNet(skips=True),
    "transformer": Attention,
    "attention by hand": ByHandAttention,
    "variational": Variational,
    "shuffled": Shuffled,
    "decisions": Decisions,
    "named tuple": Tupled,
    "recurrent": Recurrent,
    "masked": Masked,
    "spectral": Spectral,
    "hooked": Hooked,
}
