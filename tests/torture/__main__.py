"""make torture: kill, fuzz, edit and starve for a stated time; every failure is kept with the seed that repeats it."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

from recollect.records import write_json
from tests.torture.runner import SCENARIOS, Draw, Run, sample
from tests.torture.summary import RECORD, summarize, text_table, update_page


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, help="random by default, and printed")
    parser.add_argument("--out", type=Path, default=Path("torture"), help="folder of failures and the summary")
    parser.add_argument("--repeat", metavar="SCENARIO:SEED", help="repeat one trial")
    parser.add_argument("--sample", action="store_true", help="try the few that make test tries")
    parser.add_argument("--record", action="store_true", help="write results/torture.json and results/torture.md")
    parser.add_argument("--scenarios", nargs="+", choices=list(SCENARIOS), default=list(SCENARIOS))
    options = parser.parse_args()
    out = options.out.absolute()
    shutil.rmtree(out / "shared", ignore_errors=True)
    seed = int.from_bytes(os.urandom(4), "little") if options.seed is None else options.seed
    run = Run(out, lambda line: print(line, flush=True), options.scenarios)
    began = time.monotonic()
    print(f"seed {seed}; failures are kept in {out / 'failures'}", flush=True)
    try:
        if options.sample:
            run.outcomes += sample(out)
        elif options.repeat:
            scenario, _, number = options.repeat.partition(":")
            run.again(Draw(scenario, int(number)))
        else:
            run.for_minutes(options.minutes, seed)
    except KeyboardInterrupt:
        print("interrupted: a summary of what was tried", flush=True)
    summary = summarize(run.outcomes, seed=seed, minutes=options.minutes, seconds=time.monotonic() - began)
    write_json(out / "summary.json", summary)
    print(text_table(summary))
    if options.record:
        write_json(RECORD, summary)
        update_page()
    return int(summary["total"]["failures"] > 0)


if __name__ == "__main__":
    sys.exit(main())
