"""Tasks of a sweep on a Ray cluster. Nothing else in the package imports Ray, which is an extra."""

from recollect.on_ray.connecting import Each, crew_on
from recollect.on_ray.crew import Crew

__all__ = ["Crew", "Each", "crew_on"]
