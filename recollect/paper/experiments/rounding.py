"""How far the answers of blind in float32 and in float64 differ, where many of its runs end in a cycle."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor

from recollect.paper.cells import Cell, Fit
from recollect.paper.experiment import BEYOND, Experiment
from recollect.paper.origin import origin
from recollect.paper.render.tables import markdown
from recollect.paper.scales import Scale
from recollect.paper.store import Store
from recollect.paper.workspace import Workspace
from recollect.scoring import APPROXIMATE, mse

MOVED = 1e-3  # an image moved if one of its values differs by more


def fits(scale: Scale) -> list[Fit]:
    return [scale.moderate("fc20", "lrelu", "muon")]


def facts(workspace: Workspace, scale: Scale) -> dict[str, Any]:
    """Recover the attacked images of Table 1 under each of its masks, in both precisions."""
    (fit,) = fits(scale)
    single = workspace.best_network(fit)
    images = Cell(fit, None, "train", "", "blind").select_attacked(workspace.images(fit, "train"))
    cells = [Cell(fit, fit.milestones[-1], "train", mask, "blind") for mask in scale.table_masks]
    observed = [cell.observe(images).y for cell in cells]
    answers, seconds = {}, {}
    for name, dtype in (("float32", torch.float32), ("float64", torch.float64)):
        f, began = single.to(dtype), time.monotonic()
        answers[name] = [cell.build_method()(f, y.to(dtype)).estimate for cell, y in zip(cells, observed, strict=True)]
        seconds[name] = round(time.monotonic() - began, 1)
    rows = [
        {"mask": cell.mask, **compare(one, other, images.pixels)}
        for cell, one, other in zip(cells, answers["float32"], answers["float64"], strict=True)
    ]
    about = {"training": fit.name, "gamma": cells[0].build_method().gamma, "images": len(images), "seconds": seconds}
    return {**about, "masks": rows, "provenance": origin(workspace.device, seed=fit.seed, precision=[*answers])}


def compare(single: Tensor, double: Tensor, originals: Tensor) -> dict[str, Any]:
    """Count the images that moved, and those recovered approximately in each precision and in both."""
    difference = (single.double() - double.double()).abs().flatten(1)
    recovered = [mse(estimate.float(), originals.to(estimate.device)) < APPROXIMATE for estimate in (single, double)]
    return {
        "moved": int((difference.amax(1) > MOVED).sum()),
        "moved_on_average": int((difference.square().mean(1).sqrt() > MOVED).sum()),
        "float32": int(recovered[0].sum()), "float64": int(recovered[1].sum()),
        "both": int((recovered[0] & recovered[1]).sum()),
    }  # fmt: skip


def table(_scale: Scale, store: Store) -> str:
    facts = store.facts("rounding")
    if facts is None:
        return ""
    total = facts["images"]
    names = ("moved", "moved_on_average", "float32", "float64", "both")
    rows = [
        [row["mask"], *(f"{row[name]} ({100 * row[name] / total:.1f}%)" for name in names)] for row in facts["masks"]
    ]
    titles = ["mask", f"a value moves by {MOVED:g}", f"RMS above {MOVED:g}", "float32", "float64", "both"]
    return (
        f"Blind at gamma {facts['gamma']:g} in float32 and in float64, from {facts['training']}, {total} images under "
        "each mask: images whose answers differ, and images recovered approximately in each precision and in both.\n\n"
        f"{markdown(titles, rows)}"
    )


EXPERIMENT = Experiment(
    name="rounding",
    summary="answers of blind in float32 beside float64, from the network of Table 1",
    location=BEYOND,
    trainings=fits,
    facts=facts,
    table=table,
    order=17,
)
