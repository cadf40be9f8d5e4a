"""Extract training images without a damaged copy: generate, and keep what is a training image."""

from recollect.extraction.capture_recapture import StoredImages, stored_images
from recollect.extraction.copies import Copies, find_copies
from recollect.extraction.extract import Extraction, extract

__all__ = ["Copies", "Extraction", "StoredImages", "extract", "find_copies", "stored_images"]
