import pytest

from recollect.auditing import AuditRequest, OutOfTime
from recollect.auditing.inputs import open_inputs
from recollect.auditing.method_setup import most_passes
from recollect.auditing.workload import WholeProgress, Workload, estimate_seconds, workload_sentence
from recollect.distributed.jobs import Budget
from recollect.methods import Blind, Iterate, KnownMask, Refined
from tests.auditing.making import images, small_audit
from tests.planted import Memorizer

TRAIN = images(10, 1)


def request(**more: object) -> AuditRequest:
    return AuditRequest(Memorizer(TRAIN.pixels), TRAIN, images(4, 2), masks="block,half", **more)  # type: ignore[arg-type]


def test_the_most_passes_of_methods_and_of_an_audit() -> None:
    assert (most_passes(Blind()), most_passes(Iterate()), most_passes(KnownMask())) == (4000, 1000, 40)
    assert most_passes(Refined()) == 3 * 4000 + 1000
    asked = request(methods=[Iterate(limit=10), KnownMask()], attractors=2)
    work = Workload.of(asked, open_inputs(asked))
    assert work.stages == {
        "tuning": 0, "cells": 2 * (10 + 4) * (10 + 40), "stability": 3 * 2 * 10, "generated": 0, "attractors": 1000
    }  # fmt: skip
    searched = request(methods="blind")
    assert Workload.of(searched, open_inputs(searched)).stages["tuning"] > 0


def test_the_estimate_is_a_sentence() -> None:
    asked = request(methods=[Iterate(limit=10)])
    inputs = open_inputs(asked)
    work = Workload.of(asked, inputs)
    assert estimate_seconds(inputs, work) > 0
    sentence = workload_sentence(inputs, work)
    assert sentence.startswith("1 attack under 2 masks, on 10 training and 4 unseen images: up to ")


def test_stages_follow_each_other_and_the_whole_is_a_hundred_percent() -> None:
    reported: list[float] = []
    whole = WholeProgress(lambda _doing, done, _total: reported.append(done), Workload({"a": 1.0, "b": 3.0}))
    for name in ("a", "b"):
        stage = whole.stage(name)
        stage("working", 1, 2)
        stage("working", 2, 2)
    assert reported == [12.5, 25.0, 62.5, 100.0]


def test_an_audit_ends_when_its_time_is_over() -> None:
    clock = iter(range(100))
    whole = WholeProgress(lambda *_: None, Workload({"a": 1.0}), Budget(3, lambda: float(next(clock))))
    stage = whole.stage("a")
    stage("first", 0, 1)
    stage("second", 0, 1)
    with pytest.raises(OutOfTime, match="3 seconds are over, in third"):
        stage("third", 0, 1)
    with pytest.raises(OutOfTime):
        small_audit(max_seconds=1e-9)
