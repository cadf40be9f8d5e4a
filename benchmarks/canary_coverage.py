"""How often does the bound on epsilon hold? Simulated audits of mechanisms whose epsilon is known.

    python benchmarks/canary_coverage.py --out results/canary-coverage.json
    python benchmarks/canary_coverage.py --tables results/canary-coverage.json

No model is trained. A mechanism gives each canary an error that depends on its coin, and leaks exactly as much as its
epsilon allows. Coins are guessed and epsilon is bounded by the code of recollect audit.

randomized response: each copy of a canary tells its coin rightly with probability e^eps / (1 + e^eps).
leaking: the same, but with probability delta a canary tells its coin for sure.
Gaussian: the number of copies that are in, plus Gaussian noise. Its epsilon at delta is that of Balle and Wang (2018).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from reporting import check_writable, input_errors_end_it, read_result, table
from scipy.optimize import brentq
from scipy.stats import norm

from recollect.canaries.design import Design
from recollect.canaries.guesses import guess_coins
from recollect.paper.origin import origin
from recollect.records import write_json

Errors = Callable[[np.ndarray, int, np.random.Generator], np.ndarray]  # of coins and copies; small errors say "in"


@dataclass(frozen=True)
class Mechanism:
    """A mechanism that leaks coins, with the epsilon that it has for one copy."""

    name: str
    epsilon: float
    delta: float
    errors: Errors


def randomized_response(epsilon: float) -> Mechanism:
    accuracy = 1 / (1 + np.exp(-epsilon))

    def errors(inside: np.ndarray, copies: int, generator: np.random.Generator) -> np.ndarray:
        answers = generator.random((copies, len(inside))) < np.where(inside, accuracy, 1 - accuracy)
        return -answers.sum(0).astype(float)

    return Mechanism("randomized response", epsilon, 1e-5, errors)


def leaking(epsilon: float, delta: float) -> Mechanism:
    honest = randomized_response(epsilon)

    def errors(inside: np.ndarray, copies: int, generator: np.random.Generator) -> np.ndarray:
        leaks = (generator.random((copies, len(inside))) < delta).any(0)
        certain = np.where(inside, -np.inf, np.inf)
        return np.where(leaks, certain, honest.errors(inside, copies, generator))

    return Mechanism("leaking", epsilon, delta, errors)


def gaussian(epsilon: float, delta: float = 1e-5) -> Mechanism:
    deviation = brentq(lambda sigma: gaussian_delta(sigma, epsilon) - delta, 0.02, 1000)

    def errors(inside: np.ndarray, copies: int, generator: np.random.Generator) -> np.ndarray:
        return -copies * inside + deviation * generator.standard_normal(len(inside))

    return Mechanism("Gaussian", epsilon, delta, errors)


def gaussian_delta(deviation: float, epsilon: float) -> float:
    """Delta of the Gaussian mechanism of sensitivity 1 (Balle and Wang 2018, Theorem 8)."""
    half, ratio = 1 / (2 * deviation), epsilon * deviation
    return float(norm.cdf(half - ratio) - np.exp(epsilon + norm.logcdf(-half - ratio)))


MECHANISMS = (
    randomized_response(0), randomized_response(0.5), randomized_response(1), randomized_response(2),
    randomized_response(4), leaking(1, 1e-3), gaussian(1), gaussian(4),
)  # fmt: skip
REPEATS = ((1,), (1, 4, 16))


def main(arguments: Sequence[str] | None = None) -> None:
    with input_errors_end_it():
        run(parse(arguments))


def run(options: argparse.Namespace) -> None:
    if options.tables:
        print(tables(read_result(options.tables, "rows", "audits")))
        return
    check_writable(options.out)
    generator = np.random.default_rng(options.seed)
    rows = [row_of(mechanism, repeats, options, generator) for mechanism in MECHANISMS for repeats in REPEATS]
    results = {
        **origin("cpu"), "count": options.count, "audits": options.audits,
        "seed": options.seed, "rows": rows,
    }  # fmt: skip
    if options.out:
        write_json(options.out, results)
    print(tables(results))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audits", type=int, default=10_000, help="simulated audits of each mechanism")
    parser.add_argument("--count", type=int, default=200, help="canaries of an audit")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--out", type=Path, help="write all numbers here, as JSON")
    parser.add_argument("--tables", type=Path, help="print the table of such a file and run nothing")
    return parser.parse_args(arguments)


def row_of(
    mechanism: Mechanism, repeats: tuple[int, ...], options: argparse.Namespace, generator: np.random.Generator
) -> dict[str, Any]:
    bounds = np.array([simulate(mechanism, repeats, options.count, generator) for _ in range(options.audits)])
    held = int((bounds <= mechanism.epsilon).sum())
    return {
        "mechanism": mechanism.name, "epsilon": mechanism.epsilon, "delta": mechanism.delta, "repeats": list(repeats),
        "held": held, "coverage": held / options.audits, "mean_bound": float(bounds.mean()),
        "largest_bound": float(bounds.max()),
    }  # fmt: skip


def simulate(mechanism: Mechanism, repeats: tuple[int, ...], count: int, generator: np.random.Generator) -> float:
    """Toss the coins of one audit, guess them, and bound epsilon for one copy."""
    copies, inside = np.resize(np.array(repeats), count), generator.random(count) < 0.5
    design, best = Design(mechanism.delta), 0.0
    for number in repeats:
        coins = inside[copies == number]
        errors = mechanism.errors(coins, number, generator)
        guesses = guess_coins(errors, coins, repeats=number, design=design, groups=len(repeats))
        best = max(best, *(guess.epsilon for guess in guesses))
    return best


def tables(results: dict[str, Any]) -> str:
    head = f"{results['audits']:,} audits a row, each of {results['count']} canaries; {results['date']}"
    heads = ["mechanism", "epsilon", "delta", "repeats", "bound held", "mean bound"]
    return "\n\n".join([head, table(heads, [shown(row) for row in results["rows"]])])


def shown(row: dict[str, Any]) -> list[str]:
    repeats = ", ".join(map(str, row["repeats"]))
    return [
        row["mechanism"], f"{row['epsilon']:g}", f"{row['delta']:g}", repeats, f"{row['coverage']:.2%}",
        f"{row['mean_bound']:.2f}",
    ]  # fmt: skip


if __name__ == "__main__":
    main()
