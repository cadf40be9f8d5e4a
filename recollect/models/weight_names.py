"""Match the names of weights in a file with a network's own: training code often puts a prefix before all of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn

from recollect.errors import InputError
from recollect.models.wording import option

NAMED = 3  # weights that a sentence names

log = logging.getLogger(__name__).warning


def fit_names(weights: Mapping[str, Tensor], network: nn.Module, path: Path, prefix: str | None) -> dict[str, Tensor]:
    """Strip the prefix under which a file holds all weights of a network; say what was stripped and left out.

    Lightning saves a network as `model.*` or after its attribute, DataParallel as `module.*`, and torch.compile as
    `_orig_mod.*`. Names that fit no network stay as they are: loading them says what does not fit.
    """
    own = list(network.state_dict())
    if prefix is None and set(own) == set(weights):
        return dict(weights)
    prefixes = [prefix] if prefix is not None else _prefixes(weights, own)
    if len(prefixes) > 1:
        listed, example = ", ".join(prefixes), option("weights_key", prefixes[0])
        raise InputError(f"{path} holds the network more than once ({listed}); say which, for example {example}.")
    if not prefixes:
        return dict(weights)
    chosen = prefixes[0]
    log(_sentence(path, chosen, [name for name in weights if not name.startswith(chosen)]))
    return {name.removeprefix(chosen): value for name, value in weights.items() if name.startswith(chosen)}


def _prefixes(weights: Mapping[str, Tensor], own: list[str]) -> list[str]:
    """List the prefixes under which a file has exactly the names of a network."""
    candidates = {name.removesuffix(own[0]) for name in weights if own and name.endswith(f".{own[0]}")}
    return sorted(prefix for prefix in candidates if _names_under(prefix, weights) == set(own))


def _names_under(prefix: str, weights: Mapping[str, Tensor]) -> set[str]:
    return {name.removeprefix(prefix) for name in weights if name.startswith(prefix)}


def _sentence(path: Path, prefix: str, others: list[str]) -> str:
    sentence = f"The prefix {prefix!r} was stripped from the names of the weights in {path}."
    if not others:
        return sentence
    more = ", ..." if len(others) > NAMED else ""
    return f"{sentence} Not used: {', '.join(others[:NAMED])}{more}."
