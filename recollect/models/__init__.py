"""Opening other people's autoencoders: files or objects of the usual kinds, adapted to images in [0, 1]."""

from recollect.models.adapter import Adaptation, Adapted
from recollect.models.carried import Carried
from recollect.models.opening import open_model
from recollect.models.probing import Probe, probe_model
from recollect.models.scaling import Scaling

__all__ = ["Adaptation", "Adapted", "Carried", "Probe", "Scaling", "open_model", "probe_model"]
