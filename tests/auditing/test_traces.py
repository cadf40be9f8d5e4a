import pytest

import recollect
from recollect.auditing.damaged_sets import damage
from recollect.auditing.measure import Conditions
from recollect.auditing.pictures import as_colour
from recollect.auditing.traces import EARLY, IMAGES, trace_audit, trace_rounds
from recollect.methods import Blind, Iterate, KnownMask
from recollect.scoring import mse
from tests.auditing.making import images
from tests.planted import Memorizer

TRAIN = images(6, 1)
F = Memorizer(TRAIN.pixels)
CONDITIONS = Conditions("hash", 0.0, 42)


def test_every_round_is_kept_with_its_error() -> None:
    few = TRAIN[:2]
    seen = recollect.observe(few, recollect.mask("half", few.shape))
    recovery = Blind()(F, seen.y)
    shown = trace_rounds(few, seen, {"blind": lambda y, trace: Blind()(F, y, trace=trace)})
    for j in range(2):
        rounds = int(recovery.rounds[j])
        assert shown[f"estimate/blind/{j}"].shape == (rounds, 8, 8, 3)
        assert shown[f"mask/blind/{j}"].shape == (rounds, 8, 8)
        assert (shown[f"estimate/blind/{j}"][-1] == as_colour(recovery.estimate[j : j + 1])[0]).all()
        assert shown[f"round/blind/{j}"].tolist() == list(range(1, rounds + 1))
        errors = shown[f"mse/blind/{j}"]
        assert len(errors) == rounds
        assert errors[-1] == pytest.approx(float(mse(recovery.estimate, few.pixels)[j]))
        assert (shown[f"degraded/{j}"] == as_colour(seen.y[j : j + 1])[0]).all()


def test_of_long_runs_later_rounds_are_thinned_and_the_last_is_kept() -> None:
    few = TRAIN[:1]
    seen = recollect.observe(few, recollect.mask("half", few.shape))
    slow = Iterate(tolerance=0.0, limit=300)
    shown = trace_rounds(few, seen, {"slow": lambda y, trace: slow(lambda x: 0.9 * x, y, trace=trace)})
    rounds = shown["round/slow/0"].tolist()
    assert rounds[:EARLY] == list(range(1, EARLY + 1))
    assert rounds[-1] == 300
    assert len(rounds) == len(shown["estimate/slow/0"]) == len(shown["mse/slow/0"]) < 55
    assert "mask/slow/0" not in shown


def test_an_audit_traces_the_methods_that_work_in_rounds_under_one_mask() -> None:
    damaged = damage({"control": images(3, 2), "train": TRAIN}, {"dust": "dust", "half": "half"}, ["zero"], 42)
    mask, shown = trace_audit(F, damaged, {"blind": Blind(), "known": KnownMask()}, CONDITIONS)
    assert mask == "half"
    assert (shown["original/0"] == as_colour(TRAIN.pixels[:1])[0]).all()
    assert {name.split("/")[1] for name in shown if name.startswith("estimate/")} == {"blind"}
    assert len([name for name in shown if name.startswith("original/")]) == IMAGES
    other, _ = trace_audit(F, damaged[:1] + damaged[2:3], {"blind": Blind()}, CONDITIONS)
    assert other == "dust"
    assert trace_audit(F, damaged, {"known": KnownMask()}, CONDITIONS) == (None, {})
