"""Other people's autoencoders: files or objects of the usual kinds, adapted to images in [0, 1]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.lazy_names import lazy_names

if TYPE_CHECKING:
    from recollect.models.adapt import Adapted
    from recollect.models.adaptation import Adaptation, stated_parts
    from recollect.models.opening import at_most, open_model
    from recollect.models.portable import PortableModel
    from recollect.models.probe import Probe, probe_model
    from recollect.models.source_code import source_hash
    from recollect.models.value_range import Scaling

__getattr__ = lazy_names(
    __name__,
    {
        "adapt": ["Adapted"],
        "adaptation": ["Adaptation", "stated_parts"],
        "opening": ["at_most", "open_model"],
        "portable": ["PortableModel"],
        "probe": ["Probe", "probe_model"],
        "source_code": ["source_hash"],
        "value_range": ["Scaling"],
    },
)

__all__ = [
    "Adaptation", "Adapted", "PortableModel", "Probe", "Scaling", "at_most", "open_model", "probe_model", "source_hash",
    "stated_parts",
]  # fmt: skip
