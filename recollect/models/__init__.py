"""Other people's autoencoders: files or objects of the usual kinds, adapted to images in [0, 1]."""

from recollect.models.adapt import Adaptation, Adapted, stated_parts
from recollect.models.open_model import at_most, open_model
from recollect.models.portable import PortableModel
from recollect.models.probe import Probe, probe_model
from recollect.models.source_code import source_hash
from recollect.models.value_range import Scaling

__all__ = [
    "Adaptation", "Adapted", "PortableModel", "Probe", "Scaling", "at_most", "open_model", "probe_model", "source_hash",
    "stated_parts",
]  # fmt: skip
