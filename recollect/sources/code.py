"""Images that code of the user's own holds or returns: package.module:name.

This imports the code that the user names: name only code that you trust. No file can name code.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.errors import InputError
from recollect.sources.address import Address
from recollect.sources.base import Catalogue, Source
from recollect.user_code import call, can_be_found, find_code, names_code

if TYPE_CHECKING:
    from recollect.images import Images


def list_images(_path: Path, address: Address) -> Catalogue:
    """List the images of an object, or of what a function returns."""
    images = _images(address.path)
    return Catalogue(images.ids, lambda positions, _progress: images[positions].stored.numpy(), columns=images.columns)


def _images(text: str) -> Images:
    from recollect.images import Images

    if not names_code(text):
        raise InputError(f"{text!r} names no code; write package.module:name, a set of images or a function of one.")
    held = find_code(text)
    if _is_function(held):
        held = call(held, text, returns="images")
    try:
        return Images.of(held)
    except InputError as error:
        raise InputError(f"{text}: {error}") from None


def _is_function(held: Any) -> bool:
    """Return whether something is to be called; a dataset may be callable too."""
    return isinstance(held, type) or (callable(held) and not hasattr(held, "__getitem__"))


def _claims(location: str) -> bool:
    return names_code(location) and can_be_found(location)


SOURCE = Source(
    name="code",
    summary="a Dataset, array or list in code of your own, or a function that returns one: package.module:name",
    example="code:my_code:dataset",
    open=list_images,
    path="package.module:name",
    claims=_claims,
    runs_code=True,
    order=70,
)
