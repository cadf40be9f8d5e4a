"""Tasks of a sweep on a Ray cluster. Nothing else in the package imports Ray, which is an extra."""

from recollect.distributed.actors import Crew
from recollect.distributed.cluster import Each, crew_on

__all__ = ["Crew", "Each", "crew_on"]
