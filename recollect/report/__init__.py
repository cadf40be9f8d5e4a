"""Records to one HTML file that needs nothing else; it draws, and leaves the numbers to the records."""

from recollect.report.page import write_report

__all__ = ["write_report"]
