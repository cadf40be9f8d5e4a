"""What is done about a run that is not well: a lower rate, back to good weights, or other weights."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recollect.networks import SHRINK, initialise
from recollect.training.monitor import CUT, LOWEST_RATE, Point, Verdict

if TYPE_CHECKING:
    from recollect.training.loop import Run

FAR = 3.0  # an average this many times worse than the best weights is not gone back to


def react(run: Run, verdict: Verdict, point: Point) -> None:
    """Act on what was seen, and say so; a rate that falls by itself needs no cut on a plateau."""
    if verdict is Verdict.FINE or (verdict is Verdict.PLATEAU and run.fall.length):
        return
    if verdict is Verdict.COLLAPSED:
        start_again(run, point)
    else:
        cut_rate(run, verdict, point)
    run.watch.acted(point.steps)


def restarted_from(run: Run) -> dict[str, float] | None:
    """The seed and scale of the weights that it last started again from, if it ever did."""
    if not run.tries:
        return None
    return {"seed": run.recipe.seed + run.tries, "scale": 1.0 if run.tries % 2 else SHRINK, "restarts": run.tries}


def start_again(run: Run, point: Point) -> None:
    run.tries += 1
    start = restarted_from(run)
    assert start is not None
    initialise(run.network, int(start["seed"]), start["scale"])
    run.top_rate *= 1.0 if run.tries % 2 else CUT  # cuts made before stay made
    run.stepper.restart(run.top_rate)
    run.fall = replace(run.fall, begin=run.steps)
    run.say(
        f"the output collapsed: hardly better than a constant one ({point.best:.1e}); "
        f"started again from other weights (seed {start['seed']}), rate {run.top_rate:.1e}"
    )


def cut_rate(run: Run, verdict: Verdict, point: Point) -> None:
    run.top_rate *= CUT
    to_average = verdict is Verdict.PLATEAU and point.averaged <= FAR * run.best_loss
    if to_average:
        run.stepper.set_weights(run.stepper.average)
    else:
        run.stepper.set_weights(run.best_weights)
        run.stepper.restart(run.top_rate)
    to = "the averaged" if to_average else "the best"
    run.say(f"{verdict.value} at {point.loss:.1e}: back to {to} weights, rate cut to {run.top_rate:.1e}")


def too_slow(run: Run) -> str | None:
    """A rate cut over and over ends somewhere: better said than gone on with for ever."""
    if run.top_rate > min(LOWEST_RATE, 1e-3 * run.recipe.rate):
        return None
    return f"stopped at a rate of {run.top_rate:.0e}, too small to change float32 weights,"
