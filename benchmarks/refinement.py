"""What carries blind recovery further: variants of the refinement beside each other, on small networks.

    python benchmarks/refinement.py --cache CACHE --json docs/figures/refinement.json

Every variant starts from the same run of `Blind`. A cell is the accurate / approximate rate in percent; the last
columns are the mean over masks and the applications of the autoencoder, as a multiple of Blind's. Networks are
trained once, into CACHE.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import jvp

from recollect import Blind, FullyConnected, Images, KnownMask, Recovery, Score, UNet, mask, observe, train_to_loss
from recollect.checkpoints import load_checkpoint
from recollect.degradation import PAPER_MASKS, Degradation, all_erased
from recollect.devices.precision import evaluation_mode
from recollect.engine import prepare
from recollect.methods import Refined
from recollect.methods.polish import polish
from recollect.records import provenance, write_json
from recollect.sources import load


@dataclass(frozen=True)
class Case:
    """A network at a train loss, and how the paper would attack it."""

    images: str
    network: Callable[[tuple[int, int, int]], nn.Module]
    loss: float
    blind: Blind


def demo(shape: tuple[int, int, int]) -> nn.Module:
    return FullyConnected(shape, layers=6, width=512)


def crowded(shape: tuple[int, int, int]) -> nn.Module:
    """More images for fewer parameters, so that recovery is hard."""
    return FullyConnected(shape, layers=8, width=384)


def unet(shape: tuple[int, int, int]) -> nn.Module:
    return UNet(channels=shape[0], widths=(32, 64, 128), activation="softplus")


PHOTOS, SMALL = "photos?count={count}&size=32", "photos?count={count}&size=16"
CASES = {
    "demo-1e-6": Case(PHOTOS.format(count=40), demo, 1e-6, Blind(gamma=0.5)),
    "demo-1e-8": Case(PHOTOS.format(count=40), demo, 1e-8, Blind(gamma=0.5)),
    "crowded-1e-8": Case(SMALL.format(count=160), crowded, 1e-8, Blind(gamma=0.5)),
    "unet-1e-5": Case(SMALL.format(count=20), unet, 1e-5, Blind(gamma=1.0, start=all_erased)),
}


@dataclass(frozen=True, eq=False)
class Try:
    """One mask on one case: what a variant may look at. The truth is for the reference alone."""

    f: nn.Module
    y: Tensor
    blind: Recovery
    method: Blind
    truth: Degradation

    @property
    def shared(self) -> Degradation:
        """Blind's mask made equal across channels."""
        return self.blind.degradation.plausible_refit(self.blind.estimate, self.y)  # type: ignore[union-attr]

    def polished(self, theta: Degradation, gamma: float | None = None, x: Tensor | None = None) -> Recovery:
        x = self.blind.estimate if x is None else x
        most = torch.full((len(x),), 200)
        with prepare(self.f, self.y, None) as runtime:
            rested = polish(runtime, self.y, x, theta, gamma=gamma or self.method.gamma, limits=most)
        pasted = theta.paste(rested.estimate, self.y)
        return replace(rested, estimate=pasted, degradation=theta, steps=rested.steps + self.blind.steps)


def from_zero(t: Try) -> Recovery:
    """400 steps from v = u = 0, as a known mask would be run."""
    longer = KnownMask(t.method.gamma, steps=400)(t.f, t.y, t.shared)
    return replace(longer, steps=longer.steps + t.blind.steps)


def twice(t: Try) -> Recovery:
    """Polished, the mask estimated once more, polished again."""
    first = t.polished(t.shared)
    again = t.polished(t.shared.plausible_refit(first.estimate, t.y), x=first.estimate)
    return replace(again, steps=first.steps + again.steps - t.blind.steps)


def gamma_lowered(t: Try) -> Recovery:
    """Polished, then polished with a fifth of gamma."""
    first = t.polished(t.shared)
    again = t.polished(t.shared, t.method.gamma / 5, first.estimate)
    return replace(again, steps=first.steps + again.steps - t.blind.steps)


@torch.no_grad()
def anderson(t: Try, steps: int = 60, memory: int = 4) -> Recovery:
    """Polished with Anderson acceleration of the map from (v, u) to the next (v, u)."""
    theta, count = t.shared, len(t.y)
    state = torch.cat([t.blind.estimate.flatten(1), torch.zeros(count, t.y[0].numel())], 1)
    states: list[Tensor] = []
    moves: list[Tensor] = []
    with evaluation_mode(t.f):
        for _ in range(steps):
            v, u = (half.view_as(t.y) for half in state.chunk(2, 1))
            xi = theta.prox(v - u, t.y, t.method.gamma)
            v = t.f(xi + u)
            following = torch.cat([v.flatten(1), (u + xi - v).flatten(1)], 1)
            states, moves = [*states, following][-memory:], [*moves, following - state][-memory:]
            state = mix_states(states, moves)
    return replace(t.blind, estimate=theta.paste(xi, t.y), steps=t.blind.steps + steps)


def mix_states(states: list[Tensor], moves: list[Tensor]) -> Tensor:
    """The mix of the last states, weights summing to one, whose move is smallest."""
    stacked = torch.stack(moves, 1).double()
    gram = stacked @ stacked.transpose(1, 2)
    scale = gram.diagonal(dim1=1, dim2=2).mean(1)[:, None, None] + 1e-30
    gram = gram / scale + 1e-8 * torch.eye(len(moves), dtype=torch.float64)
    weights = torch.linalg.solve(gram, torch.ones(len(gram), len(moves), 1, dtype=torch.float64))
    weights = (weights / weights.sum(1, keepdim=True)).float()
    return (torch.stack(states, 1) * weights).sum(1)


@torch.no_grad()
def newton_krylov(t: Try, steps: int = 3, directions: int = 20) -> Recovery:
    """Polished, then Newton steps to x = f(paste(x)), each by GMRES: an application of f's derivative a direction."""
    first, theta = t.polished(t.shared), t.shared
    x = first.estimate
    with evaluation_mode(t.f):
        for _ in range(steps):

            def moved(x: Tensor) -> Tensor:
                return t.f(theta.paste(x, t.y)) - x

            residual = moved(x)
            to_go = gmres(lambda d, x=x: -jvp(moved, (x,), (d,))[1], residual, directions)  # type: ignore[misc]
            nearer = moved(x + to_go).square().flatten(1).sum(1) < residual.square().flatten(1).sum(1)
            x = torch.where(nearer.view(-1, 1, 1, 1), x + to_go, x)
    return replace(first, estimate=theta.paste(x, t.y), steps=first.steps + steps * (directions + 2))


def gmres(apply: Callable[[Tensor], Tensor], right: Tensor, directions: int) -> Tensor:
    """For each image the least-squares solution of apply(d) = right in its Krylov space, by Gram-Schmidt."""
    flat, rows = right.flatten(1).double(), len(right)
    size = flat.norm(dim=1, keepdim=True).clamp(min=1e-30)
    basis, images = [flat / size], []
    for _ in range(directions):
        image = apply(basis[-1].float().view_as(right)).flatten(1).double()
        images.append(image)
        for _twice in range(2):
            image = image - sum((image * b).sum(1, keepdim=True) * b for b in basis)
        basis.append(image / image.norm(dim=1, keepdim=True).clamp(min=1e-30))
    weights = torch.linalg.lstsq(torch.stack(images, 2), flat.view(rows, -1, 1)).solution
    return (torch.stack(basis[:-1], 2) @ weights).float().view_as(right)


def whole(t: Try) -> Recovery:
    """The method as it is: blind, iterate and searches from other starts, and the best polished."""
    return Refined(t.method.gamma, t.method.steps, t.method.limit, t.method.start)(t.f, t.y)


VARIANTS: dict[str, Callable[[Try], Recovery]] = {
    "blind": lambda t: t.blind,
    "+ 400 steps from zero": from_zero,
    "+ polish, mask by channel": lambda t: t.polished(t.blind.degradation),  # type: ignore[arg-type]
    "+ polish": lambda t: t.polished(t.shared),
    "+ polish, twice": twice,
    "+ polish, then gamma / 5": gamma_lowered,
    "+ polish, gamma x 2": lambda t: t.polished(t.shared, 2 * t.method.gamma),
    "+ polish by Anderson": anderson,
    "+ polish, then Newton-Krylov": newton_krylov,
    "refined (restarts)": whole,
    "known, 40 steps": lambda t: KnownMask(t.method.gamma)(t.f, t.y, t.truth),
    "known, 400 steps": lambda t: KnownMask(t.method.gamma, 400)(t.f, t.y, t.truth),
}


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    torch.set_num_threads(options.threads)
    results: dict[str, Any] = {}
    for name in options.cases.split(","):
        results[name] = run(CASES[name], options)
        print(f"{name}: {results[name]['images']}\n{table(results[name])}\n", flush=True)
        if options.json:
            write_json(options.json, {"cases": results, **provenance("cpu")})


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cache", type=Path, required=True, help="folder for the trained networks")
    parser.add_argument("--cases", default=",".join(CASES), help="comma-separated: " + ", ".join(CASES))
    parser.add_argument("--masks", default=",".join(PAPER_MASKS))
    parser.add_argument("--count", type=int, default=80, help="images of each set that are attacked, at the most")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    return parser.parse_args(arguments)


def run(case: Case, options: argparse.Namespace) -> dict[str, Any]:
    """All variants under all masks on training images, and the whole method on control images."""
    f = trained(case, options.cache)
    train = load(case.images)[: options.count]
    control = load(f"{case.images}&part=control")[: options.count // 2]
    rows: dict[str, dict[str, Any]] = {name: {} for name in [*VARIANTS, "control: blind", "control: refined"]}
    for name in options.masks.split(","):
        t = tried(f, case, train, name)
        for variant, make in VARIANTS.items():
            rows[variant][name] = outcome(make(t), train, t.blind)
        c = tried(f, case, control, name)
        rows["control: blind"][name] = outcome(c.blind, control, c.blind)
        rows["control: refined"][name] = outcome(whole(c), control, c.blind)
    return {"images": case.images, "loss": case.loss, "attacked": len(train), "rows": rows}


def trained(case: Case, cache: Path) -> nn.Module:
    """The network at its loss, from the cache or trained now."""
    folder = cache / case.network.__name__
    file = folder / f"loss-{case.loss:.0e}.safetensors"
    if not file.exists():
        images = load(case.images)
        train_to_loss(case.network(images.image_shape), images, case.loss, out=folder, device="cpu")
    return load_checkpoint(file).network.eval()


def tried(f: nn.Module, case: Case, images: Images, name: str) -> Try:
    seen = observe(images, mask(name, images.shape))
    return Try(f, seen.y, case.blind(f, seen.y), case.blind, seen.truth)


def outcome(recovery: Recovery, images: Images, blind: Recovery) -> dict[str, float]:
    score = Score.of(recovery.estimate, images.pixels)
    cost = float(recovery.steps.sum()) / float(blind.steps.sum())
    return {"accurate": score.accurate.value, "approximate": score.approximate.value, "cost": cost}


def table(result: dict[str, Any]) -> str:
    masks = list(next(iter(result["rows"].values())))
    lines = [f"{'':<30}" + "".join(f"{name:>15}" for name in [*masks, "mean", "cost"])]
    for variant, cells in result["rows"].items():
        mean = {key: sum(c[key] for c in cells.values()) / len(cells) for key in ("accurate", "approximate", "cost")}
        rates = [f"{100 * c['accurate']:.0f} / {100 * c['approximate']:.0f}" for c in cells.values()]
        rates.append(f"{100 * mean['accurate']:.1f} / {100 * mean['approximate']:.1f}")
        lines.append(f"{variant:<30}" + "".join(f"{r:>15}" for r in [*rates, f"{mean['cost']:.2f}x"]))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
