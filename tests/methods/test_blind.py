import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect import Blind, Erasure, InputError, Stop
from recollect.degradation import all_erased, half_kept
from recollect.recovery import Snapshot
from tests import oracle
from tests.networks import Random

SHAPE = (3, 2, 2)
SIZE = math.prod(SHAPE)

pytestmark = pytest.mark.usefixtures("both_paths")


def observations(seed: int, count: int, noise: float) -> torch.Tensor:
    """Random images with random values erased and noise on top, in float64."""
    rng = np.random.default_rng(seed)
    x, keep = rng.random((count, *SHAPE)), rng.random((count, *SHAPE)) < rng.random()
    return torch.from_numpy(keep * x + noise * rng.standard_normal(x.shape))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Random, torch.Tensor, Blind]:
    scale = draw(st.sampled_from([1.0, 1e-3, 1e-4, 3e-5]))  # small images move by about what the paper's rule sees
    f = Random.draw(draw(st.integers(0, 10**6)), SIZE, draw(st.sampled_from([0.7, 1.0, 1.5])), scale)
    y = observations(draw(st.integers(0, 10**6)), draw(st.integers(1, 4)), draw(st.sampled_from([0.0, 0.02, 0.3])))
    y = y * scale
    seed = draw(st.integers(0, 100))
    starts: list[Callable[[torch.Tensor], Erasure]] = [all_erased, partial(half_kept, seed=seed)]
    start = draw(st.sampled_from(starts))
    steps, limit = draw(st.sampled_from([2, 7, 40])), draw(st.sampled_from([3, 30]))
    return f, y, Blind(gamma=draw(st.floats(0.05, 3)), steps=steps, limit=limit, start=start)


def check_against_oracle(f: Random, y: torch.Tensor, method: Blind) -> list[Stop]:
    """Every round of every image is the oracle's, and it stops where the paper's rule is decided."""
    seen: list[Snapshot] = []
    recovery = method(f, y, trace=seen.append)
    close = lambda a, b: np.allclose(a.flatten(), b, rtol=1e-6, atol=1e-8 * f.scale)  # noqa: E731
    starts = method.start(y).keep.flatten(1).numpy()  # type: ignore[attr-defined]
    for i, stop in enumerate(recovery.stops):
        rounds = int(recovery.rounds[i])
        path = oracle.blind(f.vector, y[i].flatten().numpy(), starts[i], method.gamma, method.steps, rounds + 60)
        own = [(s, s.index.tolist().index(i)) for s in seen if i in s.index]
        assert [int(s.round[at]) for s, at in own] == list(range(1, rounds + 1))
        shown = list(range(1, rounds + 1))
        if stop == Stop.CYCLE:  # the last shown is the answer
            shown[-1] = least_moved(f, path, rounds, int(recovery.cycle[i]), method.limit)  # type: ignore[index]
        for t, (snapshot, at) in zip(shown, own, strict=True):
            assert close(snapshot.estimate[at], path.x[t])
            assert np.array_equal(snapshot.degradation.keep[at].flatten(), path.keep[t])  # type: ignore[union-attr]
        assert close(recovery.estimate[i], path.x[shown[-1]])
        judged = rounds - (noticed(path, rounds) or rounds) + (stop == Stop.CYCLE)
        assert int(recovery.steps[i]) == rounds * method.steps + judged
        check_stop(stop, rounds, path, method.limit, int(recovery.cycle[i]))  # type: ignore[index]
        if stop == Stop.CONVERGED:  # the answer is the one the paper's rule gives
            assert close(recovery.estimate[i], path.x[-1])
            keep = recovery.degradation.keep[i].flatten()  # type: ignore[union-attr]
            assert path.calm[rounds] == 3 or np.array_equal(keep, path.keep[-1])
    return recovery.stops


def noticed(path: oracle.Path, rounds: int) -> int | None:
    """The first round whose mask is that of an earlier round, not the last, while the paper's rule counts nothing."""
    for t in range(2, rounds + 1):
        before = [s for s in range(t) if np.array_equal(path.keep[s], path.keep[t])]
        if before and before[-1] < t - 1 and path.calm[t] == 0:
            return t
    return None


def least_moved(f: Random, path: oracle.Path, rounds: int, length: int, limit: int) -> int:
    """The round of the cycle's member that the network moves least, of those from where it was noticed to the end."""
    first = noticed(path, rounds)
    assert first is not None
    assert np.array_equal(path.keep[first], path.keep[first - length])
    assert rounds == min(first + length - 1, limit)
    return min(range(first, rounds + 1), key=lambda t: oracle.mse(f.vector(path.x[t]), path.x[t]))


def check_stop(stop: Stop, rounds: int, path: oracle.Path, limit: int, cycle: int) -> None:
    earlier = [t for t in range(rounds) if np.array_equal(path.keep[t], path.keep[rounds])]
    calm = path.calm[rounds]
    assert (cycle > 1) == (stop == Stop.CYCLE)
    if stop == Stop.CONVERGED and calm == 3:
        assert path.rounds == rounds
    elif stop == Stop.CONVERGED:
        assert rounds - 1 in earlier  # the mask repeated ...
        assert path.stopped  # ... and the paper's rule then needs three calm rounds
        assert path.rounds == rounds + 3 - calm
    elif stop == Stop.CYCLE:
        assert not path.stopped or cycle > 3  # of long cycles only the first part is known
    else:
        assert stop == Stop.LIMIT
        assert rounds == limit
        assert noticed(path, rounds) is None
    for t in range(1, rounds):  # it could not have stopped before
        assert not np.array_equal(path.keep[t], path.keep[t - 1])
        assert path.calm[t] < 3


@settings(max_examples=75)  # on each path
@given(cases())
def test_agrees_with_the_oracle(case: tuple[Random, torch.Tensor, Blind]) -> None:
    check_against_oracle(*case)


def test_the_oracle_has_seen_every_way_to_stop() -> None:
    """The property above would say little if random networks always converged."""
    stops = set()
    for seed in range(10):
        scale = [1.0, 1e-4][seed % 2]
        f = Random.draw(seed, SIZE, 1.5, scale)
        stops |= set(check_against_oracle(f, scale * observations(seed, 4, 0.3), Blind(gamma=1.0, limit=6)))
    assert stops == {Stop.CONVERGED, Stop.CYCLE, Stop.LIMIT}


# A network that makes the mask alternate: with gamma 2 and two steps a kept value of 1 is estimated as 3.25 and
# dropped, a dropped one as 1 and kept.
def flip_flop(x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    return 0.5 * scale + 5 * x


TWO_STEPS = Blind(gamma=2.0, steps=2, limit=50, start=all_erased)


def test_a_cycle_is_noticed() -> None:
    recovery = TWO_STEPS(flip_flop, torch.ones(1, 1, 2, 2))
    assert recovery.stops == [Stop.CYCLE]
    assert recovery.rounds.tolist() == [3]  # noticed in the second, and once around
    assert recovery.cycle is not None
    assert recovery.cycle.tolist() == [2]
    path = oracle.blind(flip_flop, np.ones(4), np.zeros(4, dtype=bool), 2.0, 2, 50)
    assert not path.stopped
    moved = {t: oracle.mse(np.asarray(flip_flop(path.x[t])), path.x[t]) for t in (2, 3)}  # type: ignore[arg-type]
    assert moved[3] < moved[2]
    assert np.allclose(recovery.estimate.flatten(), path.x[3])
    assert np.array_equal(recovery.degradation.keep.flatten(), path.keep[3])  # type: ignore[union-attr]


def test_a_cycle_that_is_cut_off_by_the_limit_returns_the_best_member_so_far() -> None:
    recovery = replace(TWO_STEPS, limit=2)(flip_flop, torch.ones(1, 1, 2, 2))
    path = oracle.blind(flip_flop, np.ones(4), np.zeros(4, dtype=bool), 2.0, 2, 2)
    assert recovery.stops == [Stop.CYCLE]
    assert np.allclose(recovery.estimate.flatten(), path.x[2])


def test_a_cycle_too_small_for_the_papers_rule_converges() -> None:
    """Masks alternate, but estimates move by less than the rule sees: it stops, and so does the fast code."""
    f = partial(flip_flop, scale=1e-6)
    recovery = TWO_STEPS(f, torch.full((1, 1, 2, 2), 1e-6, dtype=torch.float64))
    path = oracle.blind(f, np.full(4, 1e-6), np.zeros(4, dtype=bool), 2.0, 2, 50)
    assert recovery.stops == [Stop.CONVERGED]
    assert path.stopped
    assert recovery.rounds.tolist() == [path.rounds] == [4]
    assert np.allclose(recovery.estimate.flatten(), path.x[-1], atol=0)


def test_the_limit_is_reported() -> None:
    recovery = Blind(gamma=2.0, steps=2, limit=1, start=all_erased)(flip_flop, torch.ones(3, 1, 2, 2))
    assert recovery.stops == [Stop.LIMIT] * 3
    assert recovery.rounds.tolist() == [1] * 3


def test_a_mask_that_does_not_change_ends_it_at_once() -> None:
    """With y = 1 everywhere and f = 1 the values are kept from the first round on."""
    recovery = Blind(start=lambda y: Erasure(torch.ones_like(y, dtype=torch.bool)))(
        torch.ones_like, torch.ones(2, 1, 2, 2)
    )
    assert recovery.stops == [Stop.CONVERGED] * 2
    assert recovery.rounds.tolist() == [1, 1]
    assert recovery.steps.tolist() == [40, 40]


def test_images_of_one_batch_stop_on_their_own() -> None:
    """One image cycles, the others settle; each at its own round."""
    y = torch.stack([torch.ones(1, 2, 2), torch.full((1, 2, 2), -1.0), torch.zeros(1, 2, 2)])
    recovery = TWO_STEPS(flip_flop, y)
    alone = [TWO_STEPS(flip_flop, y[i : i + 1]) for i in range(3)]
    assert recovery.stops == [a.stops[0] for a in alone]
    assert recovery.rounds.tolist() == [int(a.rounds) for a in alone]
    assert len(set(recovery.stops)) > 1


def test_a_start_shared_by_all_images_and_channels() -> None:
    """A user's start may be one mask for all; images that enter late meet ones whose mask was refitted."""
    shared = Erasure(torch.tensor([[[[True, False], [False, True]]]]))
    y = observations(3, 9, 0.1)
    f = Random.draw(3, SIZE, gain=1.5)
    one = Blind(start=lambda y: shared, limit=8)(f, y, chunk=2)
    other = Blind(start=lambda y: Erasure(shared.keep.expand(y.shape).clone()), limit=8)(f, y)
    assert torch.allclose(one.estimate, other.estimate)
    assert len(set(one.rounds.tolist())) > 1


def test_a_start_that_does_not_fit() -> None:
    method = Blind(start=lambda y: Erasure(torch.ones(1, 1, 9, 9, dtype=torch.bool)))
    with pytest.raises(InputError, match=r"The mask is 1x9x9; the images are 3x2x2"):
        method(torch.zeros_like, observations(0, 2, 0.0))
    with pytest.raises(InputError, match=r"start\(y\) gives a degradation like Erasure, not a Tensor"):
        Blind(start=torch.zeros_like)(torch.zeros_like, observations(0, 2, 0.0))  # type: ignore[arg-type]


def test_the_default_start_is_an_images_own_draw() -> None:
    assert Blind().start is half_kept


def test_the_papers_settings_are_the_defaults() -> None:
    assert (Blind().gamma, Blind().steps, Blind().limit) == (0.5, 40, 100)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"gamma": 0.0}, r"gamma must be positive, got 0.0"),
        ({"gamma": -1.0}, r"gamma must be positive, got -1.0"),
        ({"gamma": math.nan}, r"gamma must be positive, got nan"),
        ({"steps": 0}, r"At least one ADMM step is needed, got 0"),
        ({"limit": 0}, r"The limit is a number of rounds, 1 or more; got 0"),
    ],
)
def test_bad_settings(fields: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Blind(**fields)
