"""What can be asked for, listed in the help. The lists come from the registries: a new member shows up by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from typer.core import TyperCommand

from recollect.errors import InputError

SOURCE = "A set of images: SOURCE[:PATH][?count=N&per-class=N&seed=N&size=N&resize=N&grey=1&part=train|control]."


def methods() -> str:
    """List the methods and say which run by default."""
    from recollect.methods import METHODS

    default = ",".join(name for name, method in METHODS.items() if method.by_default)
    return f"Default: {default}." + _items({name: method.summary for name, method in METHODS.items()})


def degradations() -> str:
    """List the masks and the other kinds of damage."""
    from recollect.degradation import DEGRADATIONS, PAPER_MASKS

    masks = {
        ", ".join(PAPER_MASKS): "masks; all stands for these six",
        "random:30%": "this share of the pixels; random-each:30% draws for each image",
        "columns:age+3-5": "columns of rows or channels of signals, by name or number from 0",
        "FILE.png": "a black-and-white image; black pixels are erased",
    }
    return _items(masks | {damage.example: damage.summary for damage in DEGRADATIONS.values()})


def model_formats() -> str:
    """List the kinds of models that can be opened."""
    from recollect.models.formats import FORMATS

    return _items(
        {model_format.example: model_format.summary for model_format in FORMATS.values() if model_format.listed}
    )


def networks() -> str:
    """List the networks that can be trained."""
    from recollect.networks import NETWORKS

    return _items({name: network.summary for name, network in NETWORKS.items()})


def sources() -> str:
    """List where images can come from."""
    from recollect.sources import SOURCES

    return _items({source.example: source.summary for source in SOURCES.values()})


def fetchable_sources() -> str:
    """List the sources that can be downloaded."""
    from recollect.sources.download import fetchable

    return ", ".join(fetchable())


LISTINGS: Mapping[str, Callable[[], str]] = {
    "{methods}": methods,
    "{degradations}": degradations,
    "{model_formats}": model_formats,
    "{networks}": networks,
    "{sources}": sources,
    "{fetchable_sources}": fetchable_sources,
}


class ListingCommand(TyperCommand):
    """A command whose help has lists in it; they are made when the help is shown, since that imports packages."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for parameter in self.params:
            parameter.help = filled(getattr(parameter, "help", None) or "")  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


def filled(text: str) -> str:
    """Replace the names of lists by the lists."""
    for name, listing in LISTINGS.items():
        if name in text:
            text = text.replace(name, _or_why_not(listing))
    return text


def _or_why_not(listing: Callable[[], str]) -> str:
    try:
        return listing()
    except InputError as error:  # another package registers a member that cannot be loaded
        return str(error)


def _items(summaries: Mapping[str, str]) -> str:
    """Write a Markdown list, with a line of its own before it."""
    return "\n\n" + "\n".join(f"- **{name}**: {summary}" for name, summary in summaries.items())
