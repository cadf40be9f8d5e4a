"""Formats of models, one a file: how each is recognised and opened."""

from recollect.models.formats.base import FORMATS, ModelFormat, ModelReference, find_format

__all__ = ["FORMATS", "ModelFormat", "ModelReference", "find_format"]
