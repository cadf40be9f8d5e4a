"""Records to one HTML file that needs nothing else; it draws, and leaves the numbers to the records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.lazy_names import lazy_names

if TYPE_CHECKING:
    from recollect.report.page import write_report

__getattr__ = lazy_names(__name__, {"page": ["write_report"]})

__all__ = ["write_report"]
