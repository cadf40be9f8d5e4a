"""Intervene in a run that goes wrong: cut the learning rate, go back to good weights, or start from other weights."""

from __future__ import annotations

from dataclasses import replace

from recollect.networks import initialise
from recollect.training.monitor import Point, Verdict
from recollect.training.state import RunState

RATE_CUT = 0.5
USABLE_AVERAGE = 3.0  # an average this many times worse than the best weights is not used
LOWEST_RATE = 1e-9  # below this a step no longer changes float32 weights


def intervene(state: RunState, verdict: Verdict, point: Point) -> None:
    """Act on a verdict and log it; an annealed rate needs no cut on a plateau."""
    if verdict is Verdict.FINE or (verdict is Verdict.PLATEAU and state.annealing.length):
        return
    if verdict is Verdict.COLLAPSED:
        restart_from_other_weights(state, point)
    else:
        cut_rate(state, verdict, point)
    state.monitor.intervened(point.steps)


def restart_from_other_weights(state: RunState, point: Point) -> None:
    """Draw new initial weights: at full scale first, then at the usual scale and half the rate, in turn."""
    state.restarts += 1
    initial = state.restarted_from
    assert initial is not None
    frozen = {name: w.clone() for name, w in state.stepper.frozen.items()}
    initialise(state.network, int(initial["seed"]), initial["scale"])
    state.stepper.set_frozen(frozen)
    if state.restarts % 2 == 0:
        state.peak_rate *= RATE_CUT
    state.stepper.restart(state.peak_rate)
    state.annealing = replace(state.annealing, start=state.steps)
    state.note(
        f"the output collapsed: hardly better than a constant one ({point.best:.1e}); "
        f"started again from other weights (seed {initial['seed']}), rate {state.peak_rate:.1e}"
    )


def cut_rate(state: RunState, verdict: Verdict, point: Point) -> None:
    """Halve the rate and go back to the average on a plateau, or else to the best weights."""
    state.peak_rate *= RATE_CUT
    if verdict is Verdict.PLATEAU and point.averaged <= USABLE_AVERAGE * state.best.loss:
        state.stepper.set_weights(state.stepper.average)
        source = "averaged"
    else:
        state.stepper.set_weights(state.best.weights)
        state.stepper.restart(state.peak_rate)
        source = "best"
    state.note(f"{verdict.value} at {point.loss:.1e}: back to the {source} weights, rate cut to {state.peak_rate:.1e}")


def rate_exhausted(state: RunState) -> str | None:
    """Say that a run stops because its rate was cut too often; None while it was not."""
    if state.peak_rate > min(LOWEST_RATE, 1e-3 * state.recipe.rate):
        return None
    return f"stopped at a rate of {state.peak_rate:.0e}, too small to change float32 weights,"
