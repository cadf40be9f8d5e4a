"""The same numbers, faster: optional, and deletable as a folder.

One module of the engine imports this package, and does without it where it is missing.
"""

from recollect.accelerate.accelerator import Accelerator
from recollect.accelerate.fused_admm import FusedAdmm

__all__ = ["Accelerator", "FusedAdmm"]
