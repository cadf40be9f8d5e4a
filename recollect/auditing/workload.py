"""How much work an audit is: passes through the model, for the bar, the estimate and the time limit."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from recollect.auditing.damaged_sets import DamagedSet
from recollect.auditing.inputs import Inputs
from recollect.auditing.method_setup import are_built, attacks, counted_methods, most_passes
from recollect.auditing.progress import AuditProgress
from recollect.auditing.request import AuditRequest
from recollect.auditing.stability import RUNS, sample_size
from recollect.counting import counted, counted_kinds
from recollect.devices.precision import apply_checked, device_of, evaluation_mode
from recollect.distributed.jobs import Budget
from recollect.records import SET_LABELS

TUNING_SHARE = 0.15  # of the work of the cells, where settings are searched for
PASSES_A_SAMPLE = 200  # of an autoencoder that is iterated; a diffusion model takes fewer
ATTRACTOR_PASSES = 500  # for each image examined
TIMED = 64  # images of a pass that is timed
TIMED_PASSES = 3  # the fastest counts: other programs delay single ones
WHOLE = 100.0  # what the bar counts to, in percent


class OutOfTime(Exception):
    """The time that an audit may take is over; finished cells are kept."""


@dataclass(frozen=True)
class Workload:
    """The most passes of one image through the model that each stage may take."""

    stages: Mapping[str, float]

    @classmethod
    def of(cls, request: AuditRequest, inputs: Inputs) -> Workload:
        cells = float(sum(passes_of_cells(inputs.damaged_sets, inputs.methods)))
        tuning = 0.0 if are_built(inputs.methods) else TUNING_SHARE * cells
        return cls({
            "tuning": tuning,
            "cells": cells,
            "generated": float(request.samples * PASSES_A_SAMPLE),
            "stability": float(_passes_again(inputs)),
            "attractors": float(request.attractors * ATTRACTOR_PASSES),
        })  # fmt: skip

    @property
    def passes(self) -> float:
        return sum(self.stages.values())


def passes_of_cells(damaged_sets: Sequence[DamagedSet], methods: Mapping[str, Any]) -> list[int]:
    """Compute the most passes of each cell, in the order in which cells are measured."""
    return [len(damaged.images) * most_passes(m) for damaged in damaged_sets for m in methods.values()]


def _passes_again(inputs: Inputs) -> int:
    """Compute the most passes of the recoveries that are run again."""
    most = max(most_passes(inputs.methods[name]) for name in counted_methods(inputs.methods))
    return RUNS * sample_size(len(inputs.scored["train"])) * most


@torch.no_grad()
def estimate_seconds(inputs: Inputs, work: Workload, chunk: int | None = None) -> float:
    """Estimate the longest time that an audit takes, from timed passes of a batch."""
    f, pixels = inputs.model, inputs.scored["train"][: min(TIMED, chunk or TIMED)].pixels.to(device_of(inputs.model))
    with evaluation_mode(f):
        apply_checked(f, pixels.clone())  # the first pass may prepare things
        fastest = min(_seconds_of_pass(f, pixels) for _ in range(TIMED_PASSES))
    return fastest / len(pixels) * work.passes


def _seconds_of_pass(f: Any, pixels: Tensor) -> float:
    began = time.perf_counter()
    float(apply_checked(f, pixels.clone()).sum())  # a number on the host: the device has finished
    return time.perf_counter() - began


def workload_sentence(inputs: Inputs, work: Workload, chunk: int | None = None) -> str:
    """Say before it starts how much work an audit is."""
    tried, masks = len(attacks(inputs.methods)), len({damaged.mask for damaged in inputs.damaged_sets})
    kinds = {"attack": tried, "reference": len(inputs.methods) - tried}
    noun = inputs.sets["train"].kind.removesuffix("s")
    methods = " and ".join(counted(count, kind) for kind, count in kinds.items() if count)
    images = counted_kinds({SET_LABELS[name]: len(images) for name, images in inputs.scored.items()}, noun)
    return (
        f"{methods} under {counted(masks, 'mask')}, on {images}: up to "
        f"{_duration(estimate_seconds(inputs, work, chunk))}, often much less."
    )


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return counted(max(1, round(seconds)), "second")


@dataclass(eq=False)
class WholeProgress:
    """Turns the progress of stages into that of the whole audit, in percent, and ends it when its time is over."""

    report: AuditProgress
    work: Workload
    budget: Budget = field(default_factory=Budget)

    def stage(self, name: str) -> AuditProgress:
        """Give the progress that a stage calls; its share of the whole is its share of the passes."""
        names = list(self.work.stages)
        before = sum(self.work.stages[earlier] for earlier in names[: names.index(name)])

        def report(doing: str, done: float, total: float) -> None:
            if not self.budget.left:
                raise OutOfTime(f"{self.budget.seconds:g} seconds are over, in {doing}.")
            share = done / total if total else 1.0
            self.report(doing, WHOLE * (before + share * self.work.stages[name]) / self.work.passes, WHOLE)

        return report
