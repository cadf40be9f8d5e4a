"""What can be asked for, listed in the help. The lists come from the files of the registries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from typer.core import TyperCommand

from recollect.declared import Facts, declared
from recollect.errors import InputError
from recollect.mask_names import FILL_SUMMARIES, PAPER_MASK_SUMMARIES

SOURCE = "A set of images, such as photos?count=40&size=32. recollect data list shows all kinds."


def declared_methods() -> Mapping[str, Facts]:
    """List the methods, without torch unless another package registers one."""
    return declared("recollect.methods") or _imported("recollect.methods", "METHODS", "summary", "by_default")


def declared_degradations() -> Mapping[str, Facts]:
    """List the kinds of damage that are no masks."""
    package = "recollect.degradation"
    return declared(package) or _imported(package, "DEGRADATIONS", "summary", "example")


def declared_formats() -> Mapping[str, Facts]:
    """List the formats of models."""
    package, attributes = "recollect.models.formats", ("summary", "example", "listed", "suffixes")
    return declared(package, "ModelFormat") or _imported(package, "FORMATS", *attributes)


def declared_networks() -> Mapping[str, Facts]:
    """List the networks that can be trained."""
    return declared("recollect.networks") or _imported("recollect.networks", "NETWORKS", "summary")


def declared_denoising_networks() -> Mapping[str, Facts]:
    """List the networks of diffusion models that can be trained."""
    package = "recollect.diffusion.networks"
    return declared(package) or _imported(package, "DENOISING_NETWORKS", "summary")


def declared_experiments() -> Mapping[str, Facts]:
    """List the experiments of the paper."""
    package = "recollect.paper.experiments"
    return declared(package, "Experiment") or _imported(package, "EXPERIMENTS", "summary")


def declared_sources() -> Mapping[str, Facts]:
    """List where images can come from, without numpy unless another package registers a source."""
    return declared("recollect.sources", "Source") or _imported("recollect.sources", "SOURCES", "summary")


def _imported(package: str, registry: str, *attributes: str) -> dict[str, Facts]:
    """Import the members of a registry, and read what they say."""
    members = getattr(import_module(package), registry)
    return {name: {what: getattr(member, what) for what in attributes} for name, member in members.items()}


def methods() -> str:
    """List the methods and say which run by default."""
    members = declared_methods()
    default = ",".join(name for name, method in members.items() if method["by_default"])
    return f"Default: {default}." + _items(_summaries(members))


def degradations() -> str:
    """List the masks and the other kinds of damage."""
    masks = {
        **PAPER_MASK_SUMMARIES,
        "all": "these six",
        "random:30%": "this share of the pixels; random-each:30% draws for each image",
        "columns:age+3-5": "columns of rows or channels of signals, by name or number from 0",
        "FILE.png": "a black-and-white image; black pixels are erased",
    }
    return _items(masks | {damage["example"]: damage["summary"] for damage in declared_degradations().values()})


def fills() -> str:
    """List what erased pixels can hold."""
    return _items(FILL_SUMMARIES)


def model_formats() -> str:
    """List the kinds of models that can be opened."""
    formats = declared_formats().values()
    return _items({one["example"]: one["summary"] for one in formats if one.get("listed", True)})


def networks() -> str:
    """List the networks that can be trained."""
    return _items(_summaries(declared_networks()))


def denoising_networks() -> str:
    """List the networks of diffusion models that can be trained."""
    return _items(_summaries(declared_denoising_networks()))


def sources() -> str:
    """Name where images can come from; addresses are too long for a column of the help."""
    return f"One of {', '.join(declared_sources())}. recollect data list shows the address of each."


def fetchable_sources() -> str:
    """List the sources that can be downloaded."""
    from recollect.sources.download import fetchable

    return ", ".join(fetchable())


LISTINGS: Mapping[str, Callable[[], str]] = {
    "{methods}": methods,
    "{degradations}": degradations,
    "{fills}": fills,
    "{model_formats}": model_formats,
    "{networks}": networks,
    "{denoising_networks}": denoising_networks,
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


def _summaries(members: Mapping[str, Facts]) -> dict[str, str]:
    return {name: facts["summary"] for name, facts in members.items()}


def _items(summaries: Mapping[str, str]) -> str:
    """Write a Markdown list, with a line of its own before it."""
    return "\n\n" + "\n".join(f"- **{name}**: {summary}" for name, summary in summaries.items())
