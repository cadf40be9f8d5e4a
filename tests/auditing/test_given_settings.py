"""Sentences of single settings are tested through `AuditRequest`; here, that names known without torch are true."""

import dataclasses
from typing import Any

import pytest

from recollect.auditing import AuditRequest
from recollect.auditing.given_settings import START_NAMES, check_given, read_fills, read_gate
from recollect.auditing.request import STARTS
from recollect.degradation import all_erased, half_kept
from recollect.errors import InputError

DEFAULTS: dict[str, Any] = {field.name: field.default for field in dataclasses.fields(AuditRequest)}


def test_names_are_those_of_starts() -> None:
    assert {"half_kept": half_kept, "all_erased": all_erased} == STARTS
    assert tuple(STARTS) == START_NAMES


def test_defaults_of_a_request_are_accepted_with_images() -> None:
    check_given({**DEFAULTS, "train": "photos"})
    check_given({**DEFAULTS, "canaries": "folder", "fill": "zero,noise", "start": "auto", "fail_above": 0.01})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"train": None}, r"needs training images: train \(--train\)"),
        ({"canaries": "folder"}, "leave train and control out"),
        ({"fill": "foo"}, "no fill 'foo'; choose from zero"),
        ({"start": "foo"}, "no start mask 'foo'; choose half_kept"),
        ({"chunk": 0}, "chunk is a number of images"),
        ({"train": None, "canaries": "folder", "fill": "images"}, "With canaries the fill is not images"),
    ],
)
def test_a_mistake_is_one_sentence(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        check_given({**DEFAULTS, "train": "photos", **change})


def test_fills_and_gates_are_read() -> None:
    assert read_fills("zero, noise,zero") == ["zero", "noise"]
    gate = read_gate(0.01, "exact")
    assert gate is not None
    assert (gate.limit, gate.threshold.name) == (0.01, "exact")
    assert read_gate(None, "exact") is None
