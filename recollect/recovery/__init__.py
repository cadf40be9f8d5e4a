"""Methods that estimate an image from its degraded form; none of them can see the truth unless it is handed in."""

from recollect.recovery.admm import KnownMask, admm
from recollect.recovery.biharmonic import Biharmonic
from recollect.recovery.blind import Blind
from recollect.recovery.ddnm import DDNM
from recollect.recovery.iterate import Iterate
from recollect.recovery.own_products import library_products
from recollect.recovery.ready import products_of
from recollect.recovery.recovery import Progress, Recovery, Snapshot, Stop, Trace
from recollect.recovery.refined import Refined
from recollect.recovery.zero_rule import ZeroRule

__all__ = [
    "DDNM",
    "Biharmonic",
    "Blind",
    "Iterate",
    "KnownMask",
    "Progress",
    "Recovery",
    "Refined",
    "Snapshot",
    "Stop",
    "Trace",
    "ZeroRule",
    "admm",
    "library_products",
    "products_of",
]
