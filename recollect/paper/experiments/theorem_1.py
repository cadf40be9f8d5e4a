"""Theorem 1: W^T rho(W x) is a proximity operator if W's singular values and rho's slopes are in [0, 1]."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from recollect.attractors import firmly_nonexpansive, proximal_test
from recollect.networks import TiedTwoLayer
from recollect.paper.cells import SEED
from recollect.paper.experiment import Experiment
from recollect.paper.origin import origin
from recollect.paper.render.tables import markdown
from recollect.paper.scales import Scale
from recollect.paper.store import Store
from recollect.paper.workspace import Workspace

SIDE, HIDDEN, STEPS, POINTS = 8, 96, 300, 8


def facts(workspace: Workspace, scale: Scale) -> dict[str, Any]:
    """Test three networks for the properties of a proximity operator; the last breaks the theorem's condition."""
    images = workspace.images(scale.perfect("fc10", "lrelu", "adam"), "train")[:64].pixels
    x = torch.nn.functional.adaptive_avg_pool2d(images, SIDE).double()
    draws = torch.Generator().manual_seed(SEED)
    weight = _clipped(torch.randn(HIDDEN, x[0].numel(), generator=draws, dtype=torch.float64) / 10)
    networks = {
        "random W, singular values in [0, 1]": TiedTwoLayer(weight.clone()),
        "trained, W projected after each step": _trained(TiedTwoLayer(weight.clone()), x),
        "random W, singular values up to 2 (condition broken)": TiedTwoLayer(2 * weight),
    }
    rows = [{"network": name, **_examine(f, x)} for name, f in networks.items()]
    return {"networks": rows, "provenance": origin("cpu", seed=SEED, precision="float64")}


def _trained(f: TiedTwoLayer, x: Tensor) -> TiedTwoLayer:
    """Train on the reconstruction error; each step ends with a projection onto the theorem's condition."""
    optimizer = torch.optim.Adam(f.parameters(), lr=1e-2)
    for _ in range(STEPS):
        optimizer.zero_grad()
        (f(x) - x).square().mean().backward()
        optimizer.step()
        with torch.no_grad():
            f.weight.copy_(_clipped(f.weight))
    return f


def _clipped(weight: Tensor) -> Tensor:
    left, values, right = torch.linalg.svd(weight, full_matrices=False)
    return left @ torch.diag(values.clamp(0, 1)) @ right


def _examine(f: TiedTwoLayer, x: Tensor) -> dict[str, Any]:
    tests = [proximal_test(f, image) for image in x[:POINTS]]
    near = x + 0.1 * torch.randn(x.shape, generator=torch.Generator().manual_seed(SEED), dtype=x.dtype)
    firm = firmly_nonexpansive(f, torch.cat([x, x]), torch.cat([near, x.roll(1, 0)]))
    with torch.no_grad():
        loss = float((f(x) - x).square().mean())
    return {
        "asymmetry": max(t.asymmetry for t in tests), "lowest": min(t.lowest for t in tests),
        "highest": max(t.highest for t in tests), "passed": sum(t.passed for t in tests), "points": len(tests),
        "firm_pairs": int(firm.sum()), "pairs": len(firm), "reconstruction_mse": loss,
    }  # fmt: skip


def table(_scale: Scale, store: Store) -> str:
    facts = store.facts("theorem-1") or {"networks": []}
    rows = [
        [
            row["network"], f"{row['asymmetry']:.1e}", f"{row['lowest']:.4f} to {row['highest']:.4f}",
            f"{row['passed']} of {row['points']}", f"{row['firm_pairs']} of {row['pairs']}",
        ]
        for row in facts["networks"]
    ]  # fmt: skip
    titles = ["network", "asymmetry of the Jacobian", "its eigenvalues", "points as the theorem says", "firm pairs"]
    return markdown(titles, rows)


EXPERIMENT = Experiment(
    name="theorem-1",
    summary="the tied network's Jacobian is symmetric with eigenvalues in [0, 1]: a proximity operator",
    location="Theorem 1",
    facts=facts,
    table=table,
    order=14,
)
