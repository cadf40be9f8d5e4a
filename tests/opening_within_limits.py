"""Open the files of a list in this process; print for each what it cost and what was said. Run by test_hostile_files.

A line is printed before each file, so that a file that never returns is known by its name. CPU seconds are limited, not
seconds of the clock: a busy machine changes nothing.
"""

import json
import resource
import sys
import time
from functools import partial
from typing import Any

SECONDS = 5
SPARE = 4 * 2**30  # bytes of address space beyond the start; keeps a failing test from taking the machine along


def peak() -> int:
    """The most megabytes that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def limit_memory() -> None:
    with open("/proc/self/statm") as file:  # noqa: PTH123
        pages = int(file.read().split()[0])
    most = pages * resource.getpagesize() + SPARE
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def limit_time() -> None:
    used = int(time.process_time()) + SECONDS + 2
    resource.setrlimit(resource.RLIMIT_CPU, (used, resource.RLIM_INFINITY))


def open_one(how: str, what: str, options: dict[str, Any]) -> str:
    """The sentence of the refusal; empty where the file opens."""
    from recollect import InputError, load
    from recollect.auditing.plan import read_plan
    from recollect.diffusion import open_denoiser
    from recollect.models import open_model
    from recollect.records import read_record

    openers: dict[str, Any] = {"model": open_model, "images": load, "prior": open_denoiser, "record": read_record}
    openers["plan"] = partial(read_plan, known=["train", "gamma", "fail_above", "threshold"])
    try:
        openers[how](what, **options)
    except InputError as error:
        return str(error)
    return ""


def say(*words: Any) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def main() -> None:
    with open(sys.argv[1]) as file:  # noqa: PTH123
        tasks, preload = json.load(file)
    for task in preload:  # what honest files import
        assert open_one(*task[1:]) == "", task
    start = peak()
    limit_memory()
    for name, *task in tasks:
        say("opening", name)
        limit_time()
        began = time.process_time()
        sentence = open_one(*task)
        say("opened", name, time.process_time() - began, peak() - start, sentence)


if __name__ == "__main__":
    main()
