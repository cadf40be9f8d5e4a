"""list, run, figure and all, as functions and as a plain command line that needs no other package."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from recollect.devices.precision import choose_device
from recollect.distributed.jobs import Budget
from recollect.errors import InputError, told
from recollect.paper import RESULTS, WORK
from recollect.paper.experiment import Experiment
from recollect.paper.experiments.catalogue import EXPERIMENTS, experiments_named
from recollect.paper.fit import Bench
from recollect.paper.render.document import fill
from recollect.paper.render.figures import draw, table_of
from recollect.paper.run import gather, out_of_reach, run
from recollect.paper.scales import FULL, SMALL, Scale, scale_named
from recollect.paper.store import Results

PAGE = Path("docs/reproduction.md")
UNFINISHED = 1


@dataclass(frozen=True)
class Options:
    """What every command of the paper takes."""

    scale: str = "small"
    data: str | None = None
    results: Path = RESULTS
    work: Path = WORK
    device: str | None = None
    on: str | None = None  # a Ray cluster
    worker_cpus: float = 1.0
    worker_gpus: float | None = None

    @property
    def sizes(self) -> Scale:
        return scale_named(self.scale, self.data)

    @property
    def bench(self) -> Bench:
        if self.data and not Path(self.data).is_dir():
            raise InputError(f"There is no folder {self.data}; --data is the folder that holds the real data sets.")
        place = choose_device(None if self.on else self.device)
        name = self.sizes.name
        return Bench(Results(self.results / name), self.work / name, self.data, place)


def run_command(names: str, options: Options, only: Sequence[str] = (), max_seconds: float | None = None) -> int:
    """Compute what has no record yet; 0 when all is there, 1 when the time was over before."""
    if max_seconds is not None and not max_seconds > 0:
        raise InputError(f"--max-seconds is a number of seconds, more than 0; got {max_seconds:g}.")
    budget = Budget() if max_seconds is None else Budget(max_seconds)
    chosen, scale, bench = experiments_named(names), options.sizes, options.bench
    if options.on is None:
        return 0 if run(chosen, scale, bench, only=only, budget=budget, tell=say) else UNFINISHED
    from recollect.distributed import crew_on

    with crew_on(options.on, options.device, options.worker_cpus, options.worker_gpus) as crew:
        there = torch.device(crew.device)
        done = run(chosen, scale, bench, only=only, budget=budget, tell=say, runner=crew, device=there)
    return 0 if done else UNFINISHED


def figure_command(names: str, options: Options) -> int:
    """Draw from records, and renew the tables of the reproduction page where it is at hand."""
    draw(experiments_named(names), options.sizes, options.bench, say)
    if PAGE.exists() and options.results == RESULTS:
        fill(PAGE, page_tables())
        say(f"tables renewed in {PAGE}")
    return 0


def all_command(options: Options, max_seconds: float | None = None) -> int:
    """Compute what is missing, then draw everything."""
    code = run_command("all", options, max_seconds=max_seconds)
    return figure_command("all", options) or code


def page_tables(results: Path = RESULTS) -> dict[str, str]:
    """Every table of both scales, from the records, by the name it has in the page."""
    tables: dict[str, str] = {}
    for scale in (SMALL, FULL):
        bench = Bench(Results(results / scale.name), WORK / scale.name, None, torch.device("cpu"))
        tables |= {f"{scale.name}-{e.id}": table_of(e, scale, bench) for e in EXPERIMENTS.values()}
    return tables


def list_command(options: Options) -> int:
    """Each experiment: what it shows, what of it is recorded and the seconds that took, whether pictures are taken."""
    bench, scale = options.bench, options.sizes
    say(f"scale {scale.name}, records in {bench.results.folder}")
    for experiment in EXPERIMENTS.values():
        work = gather([experiment], scale)
        cells = {cell.key: cell for some in work.values() for cell in some}.values()  # the generic ones are shared
        records = [record for cell in cells if (record := bench.results.best_of(cell))]
        missing = sum(bench.results.missing(cell) for cell in cells)
        trainings = [facts for fit in work if (facts := bench.results.training(fit))]
        spent = sum(record.seconds for record in records), sum(facts["seconds"] for facts in trainings)
        say(f"{experiment.id}: {experiment.shows} ({experiment.where})")
        parts = [
            f"{len(records)} of {len(cells)} cells ({spent[0]:.0f} s)",
            out_of_reach(len(cells) - len(records) - missing),
            f"{len(trainings)} of {len(work)} trainings ({spent[1]:.0f} s){_pictures(experiment, bench)}",
        ]
        say("  " + ", ".join(filter(None, parts)))
    return 0


def _pictures(experiment: Experiment, bench: Bench) -> str:
    """Pictures are no records: they lie in the work folder."""
    if experiment.pictures is None:
        return ""
    return f", pictures {'taken' if bench.pictures(experiment.id).exists() else 'not taken here'}"


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        return _main(arguments)
    except (InputError, KeyboardInterrupt) as ended:
        words, code = told(ended)
        sys.stderr.write(words + "\n")
        return code
    except BrokenPipeError:  # nobody reads any more, as after `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNFINISHED


def _main(arguments: Sequence[str] | None) -> int:
    asked = _parser().parse_args(arguments)
    options = Options(asked.scale, asked.data, asked.results, asked.work, asked.device)
    if asked.command in ("run", "all"):
        options = replace(options, on=asked.on, worker_cpus=asked.worker_cpus, worker_gpus=asked.worker_gpus)
    if asked.command == "run":
        return run_command(asked.names, options, asked.only or (), asked.max_seconds)
    if asked.command == "figure":
        return figure_command(asked.names, options)
    if asked.command == "all":
        return all_command(options, asked.max_seconds)
    return list_command(options)


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--scale", default="small", help="small (minutes on two cores) or full (the paper's sizes)")
    common.add_argument("--data", help="folder with tiny-imagenet-200.zip, svhn/ and cifar-10-batches-py/")
    common.add_argument("--results", type=Path, default=RESULTS, help="folder of the records")
    common.add_argument("--work", type=Path, default=WORK, help="folder of checkpoints and pictures")
    common.add_argument("--device", help="cpu or cuda; cuda where there is one")
    parser = argparse.ArgumentParser(prog="python -m recollect.paper", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", parents=[common], help="what there is, what is recorded and what is missing")
    running = commands.add_parser("run", parents=[common], help="compute what has no record yet")
    running.add_argument("names", metavar="NAME[,NAME]", help="experiments, or all")
    running.add_argument("--only", action="append", metavar="PATTERN", help="only trainings or cells like this")
    drawing = commands.add_parser("figure", parents=[common], help="draw figures and tables from records")
    drawing.add_argument("names", metavar="NAME[,NAME]", help="experiments, or all")
    everything = commands.add_parser("all", parents=[common], help="run and draw everything")
    for command in (running, everything):
        command.add_argument("--max-seconds", type=float, help="stop between two cells after this time")
        command.add_argument("--on", metavar="CLUSTER", help="ray, ray://HOST:PORT or HOST:PORT: a Ray cluster")
        command.add_argument("--worker-cpus", type=float, default=1.0, help="CPUs of each worker of the cluster")
        command.add_argument("--worker-gpus", type=float, help="GPUs of each worker; one by default, with cuda")
    return parser
