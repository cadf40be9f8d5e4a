"""The paper's experiments, one figure or table a file; a new file with an `Experiment` adds one."""

from recollect.errors import InputError
from recollect.paper.experiment import Experiment
from recollect.registry import Registry

EXPERIMENTS: Registry[Experiment] = Registry("experiment", "recollect.paper.experiments", Experiment)


def experiments_named(names: str) -> list[Experiment]:
    """Find experiments by their names, separated by commas; "all" means every one."""
    if names == "all":
        return list(EXPERIMENTS.values())
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted:
        raise InputError(f"Name at least one experiment: {', '.join(EXPERIMENTS)}.")
    return [EXPERIMENTS[name] for name in wanted]
