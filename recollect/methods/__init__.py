"""Methods that estimate an image from its damaged form; none sees the truth unless it is handed in."""

from recollect.methods.admm import admm
from recollect.methods.base import Method
from recollect.methods.biharmonic import Biharmonic
from recollect.methods.blind import Blind
from recollect.methods.ddnm import DDNM
from recollect.methods.ddnm_of_model import DDNMOfModel
from recollect.methods.iterate import Iterate
from recollect.methods.known_mask import KnownMask, KnownMaskLong
from recollect.methods.refined import Refined
from recollect.methods.zero_rule import ZeroRule
from recollect.registry import Registry

METHODS: Registry[type[Method]] = Registry("method", "recollect.methods", Method)

__all__ = [
    "DDNM",
    "METHODS",
    "Biharmonic",
    "Blind",
    "DDNMOfModel",
    "Iterate",
    "KnownMask",
    "KnownMaskLong",
    "Method",
    "Refined",
    "ZeroRule",
    "admm",
]
