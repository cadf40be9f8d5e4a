"""Watch a training: audit a small sample every few epochs, and say when memorization begins."""

from typing import TYPE_CHECKING

from recollect.callbacks.memorization_monitor import MemorizationMonitor, SampleAudit
from recollect.lazy_names import lazy_names

if TYPE_CHECKING:
    from recollect.callbacks.lightning_callback import MemorizationCallback

__getattr__ = lazy_names(__name__, {"lightning_callback": ["MemorizationCallback"]})

__all__ = ["MemorizationCallback", "MemorizationMonitor", "SampleAudit"]
