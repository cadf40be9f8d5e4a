"""The straight line of an audit: open, choose settings, measure, judge, save."""

from __future__ import annotations

from functools import partial
from typing import Any

from recollect.auditing.attraction import examine
from recollect.auditing.facts import audit_facts
from recollect.auditing.inputs import choose_settings, open_inputs
from recollect.auditing.judge import judge
from recollect.auditing.measure import Conditions, Measured, Measurer, Trial, measure_cells
from recollect.auditing.progress import AuditProgress, no_progress
from recollect.auditing.request import AuditRequest
from recollect.auditing.result import Audit
from recollect.auditing.store import Store
from recollect.auditing.traces import trace_audit
from recollect.recovery import Progress


def audit(
    model: Any, *, train: Any, control: Any = None, progress: AuditProgress | None = None,
    measurer: Measurer | None = None, **settings: Any,
) -> Audit:  # fmt: skip
    """Measure how much of `train` can be recovered from `model`; `control` are images that it never saw.

    `settings` are the other fields of `recollect.auditing.AuditRequest`: masks, fill, methods, gamma, start,
    noise_std, attractors, prior, out, chunk, seed, title. `progress` is called with what is done, how far and of how
    much. `measurer` measures the cells in place of this process: a `Spread` over several machines.
    """
    return run_audit(AuditRequest(model, train, control, **settings), progress, measurer)


def run_audit(request: AuditRequest, progress: AuditProgress | None = None, measurer: Measurer | None = None) -> Audit:
    """Run the audit that is requested; with `out`, a stopped one is resumed."""
    progress = progress or no_progress
    opened = open_inputs(request)
    store = Store(request.out)
    inputs = choose_settings(request, opened, store, progress)
    f, facts = inputs.model, audit_facts(request, inputs)
    model_hash = facts["model"]["hash"]
    conditions = Conditions(model_hash, request.noise_std, request.seed, facts["provenance"], request.chunk)
    here = partial(_measure_here, f)
    records = measure_cells(measurer or here, inputs.damaged_sets, inputs.methods, conditions, store, progress)
    attraction = None
    if request.attractors:
        first = inputs.scored["train"][: request.attractors]
        attraction = examine(f, first, model_hash, store, progress)
    trace_mask, store.traces = trace_audit(f, inputs.damaged_sets, inputs.methods, conditions)
    judgement = judge(inputs, facts, records, attraction)
    result = Audit(
        records, **vars(judgement), facts=facts, store=store, title=request.title or facts["model"]["name"],
        command=request.command, trace_mask=trace_mask,
    )  # fmt: skip
    if request.out:
        result.save(request.out)
    return result


def _measure_here(f: Any, trial: Trial, progress: Progress) -> Measured:
    return trial.measured(f, progress)
