"""Methods that estimate an image from its damaged form; none sees the truth unless it is handed in."""

from recollect.methods.admm import KnownMask, admm
from recollect.methods.biharmonic import Biharmonic
from recollect.methods.blind import Blind
from recollect.methods.ddnm import DDNM
from recollect.methods.iterate import Iterate
from recollect.methods.refined import Refined
from recollect.methods.zero_rule import ZeroRule

__all__ = ["DDNM", "Biharmonic", "Blind", "Iterate", "KnownMask", "Refined", "ZeroRule", "admm"]
