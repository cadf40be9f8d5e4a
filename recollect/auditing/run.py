"""The straight line of an audit: open, choose settings, measure, judge, save."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from functools import partial
from inspect import signature
from typing import Any

from recollect.auditing.attraction import examine
from recollect.auditing.diffusion_model import chart_noise_levels, check_measurer
from recollect.auditing.facts import audit_facts
from recollect.auditing.generate_and_filter import generate_and_filter
from recollect.auditing.inputs import Inputs, choose_settings, ignored_settings, open_inputs
from recollect.auditing.judge import headline_threshold, judge, statistics_of
from recollect.auditing.measure import Conditions, Measured, Measurer, Trial, measure_cells
from recollect.auditing.progress import AuditProgress, no_progress, shown_progress, tell_nothing, tell_on_stderr
from recollect.auditing.request import AuditRequest
from recollect.auditing.result import Audit
from recollect.auditing.stability import examine_stability
from recollect.auditing.store import Store
from recollect.auditing.traces import trace_audit
from recollect.auditing.workload import WholeProgress, Workload, workload_sentence
from recollect.distributed.jobs import Budget, Log
from recollect.engine import shared_runtimes
from recollect.errors import InputError
from recollect.models import open_model
from recollect.records import Record
from recollect.recovery import Progress
from recollect.registry import not_among


def audit(
    model: Any, *, train: Any = None, control: Any = None, progress: AuditProgress | bool | None = None,
    measurer: Measurer | None = None, tell: Log | None = tell_on_stderr, **settings: Any,
) -> Audit:  # fmt: skip
    """Measure how much of the training set can be recovered from a model.

    Args:
        model: A callable from images to images of the same shape, or a file or name that `open_model` opens.
        train: Training images: an array, tensor, dataset, `Images`, a path or a source address.
        control: Unseen images, in the same forms.
        progress: True shows a bar in a terminal or a notebook, and lines elsewhere. A function is called with the task,
            the parts done and their total.
        measurer: Measures the cells in place of this process: a `ShardedMeasurer` over machines.
        tell: Called with a sentence on settings that are ignored, and on results that are moved to another folder. None
            tells nothing.
        settings: The other fields of `recollect.auditing.AuditRequest`, such as `masks`, `methods`, `out` and
            `fail_above`.

    Returns:
        The result. Print it for the headline and the rates.

    Examples:
        >>> import recollect
        >>> train = recollect.load("photos?count=4&size=8")
        >>> control = recollect.load("photos?count=4&size=8&part=control")
        >>> result = recollect.audit(lambda x: x * 0, train=train, control=control, masks="half", methods="iterate")
        >>> print(result.headline)
        Attacks recover 0 of 4 training images from this model, ...
    """
    if of_model := [name for name in settings if name in signature(open_model).parameters]:
        raise InputError(
            f"{of_model[0]} is an option of the model and not of the audit: "
            f"recollect.open_model(model, {of_model[0]}=...) gives what recollect.audit takes."
        )
    known = [field.name for field in fields(AuditRequest)][len(("model", "train", "control")) :]
    if unknown := [name for name in settings if name not in known]:
        raise not_among("setting of an audit", unknown[0], known)
    request = AuditRequest(model, train, control, **settings)
    with shown_progress(quiet=progress is not True) as shown:
        return run_audit(request, progress if callable(progress) else shown, measurer, tell or tell_nothing)


def run_audit(
    request: AuditRequest, progress: AuditProgress | None = None, measurer: Measurer | None = None,
    tell: Log = tell_on_stderr, announce: Log | None = None,
) -> Audit:  # fmt: skip
    """Run the audit that is requested; with `out`, a stopped one is resumed.

    `OutOfTime` is raised after `max_seconds` of the request.

    Args:
        request: What to audit and how.
        progress: Called with the task, the parts done and their total.
        measurer: Measures the cells in place of this process.
        tell: Called with a sentence on settings that are ignored, and on results that are moved to another folder.
        announce: Called before the work begins with a sentence on the longest time it takes.

    Returns:
        The result.

    Examples:
        >>> from recollect.auditing import AuditRequest, run_audit
        >>> request = AuditRequest(lambda x: x * 0, "photos?count=4&size=8", masks="half", methods="iterate")
        >>> run_audit(request).masks
        ['half']
    """
    budget = Budget(request.max_seconds or math.inf)
    opened = open_inputs(request)
    check_measurer(opened.model, measurer)
    store = Store(request.out, with_pictures=request.pictures)
    with store.locked():
        work = Workload.of(request, opened)
        for sentence in ignored_settings(request, opened.methods):
            tell(sentence)
        if announce:
            announce(workload_sentence(opened, work, request.chunk))
        whole = WholeProgress(progress or no_progress, work, budget)
        with shared_runtimes():
            return _run(request, opened, store, whole, measurer, tell)


def _run(
    request: AuditRequest, opened: Inputs, store: Store, whole: WholeProgress, measurer: Measurer | None, tell: Log
) -> Audit:
    opened = replace(opened, identity=store.recognise(opened.identity))
    inputs = choose_settings(request, opened, store, whole.stage("tuning"))
    f, facts = inputs.model, audit_facts(request, inputs)
    model_hash, source = inputs.identity.hash, inputs.identity.source
    conditions = Conditions(
        model_hash, request.noise_std, request.seed, facts["provenance"], request.chunk, source,
        pictures=request.pictures,
    )  # fmt: skip
    records = measure_cells(
        measurer or partial(_measure_here, f), inputs.damaged_sets, inputs.sets["train"], inputs.methods, conditions,
        store, whole.stage("cells"), tell,
    )  # fmt: skip
    facts |= chart_noise_levels(f, inputs.scored, inputs.methods, conditions, store, whole.stage("cells"))
    facts["generated"] = generate_and_filter(request, inputs, store, whole.stage("generated"))
    facts["stability"] = _stability(inputs, facts, records, conditions, store, whole.stage("stability"))
    attraction = None
    if request.attractors:
        first = inputs.scored["train"][: request.attractors]
        attraction = examine(f, first, model_hash, store, whole.stage("attractors"))
    trace_mask = None
    if request.pictures:
        trace_mask, store.traces = trace_audit(f, inputs.damaged_sets, inputs.methods, conditions)
    judgement = judge(inputs, facts, records, attraction, request.gate)
    result = Audit(
        records, **vars(judgement), facts=facts, store=store, title=request.title or facts["model"]["name"],
        command=request.command, trace_mask=trace_mask,
    )  # fmt: skip
    if request.out:
        result.save(request.out)
    return result


def _stability(
    inputs: Inputs, facts: dict[str, Any], records: list[Record], conditions: Conditions, store: Store,
    progress: AuditProgress,
) -> dict[str, Any]:  # fmt: skip
    threshold = headline_threshold(inputs, records, facts["model"]["train_loss"])
    statistics = statistics_of(inputs.methods, records, threshold)
    method = inputs.methods[statistics.main_method]
    return examine_stability(
        inputs.model, inputs.damaged_sets, statistics, method, threshold.mse, inputs.sets["train"], conditions, store,
        progress,
    )  # fmt: skip


def _measure_here(f: Any, trial: Trial, progress: Progress) -> Measured:
    return trial.measured(f, progress)
