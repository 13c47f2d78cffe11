"""`python -m tests.fleet.torture --minutes 5 --seed 7 --report report.md`."""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from pathlib import Path

from tests.fleet.torture.report import markdown, write
from tests.fleet.torture.run import Plan, torture


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fleet.torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long faults strike")
    parser.add_argument("--runs", type=int, help="how many runs; without: 90 for each minute")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, help="for the same acts again; without: another each time")
    parser.add_argument("--report", type=Path, help="Markdown there, JSON beside it")
    parser.add_argument("--keep", type=Path, help="ledger and logs go into this folder and stay")
    given = parser.parse_args()
    seed = random.SystemRandom().randrange(10_000) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    runs = given.runs or max(30, int(90 * given.minutes))
    plan = Plan(seed=seed, runs=runs, seconds=given.minutes * 60, workers=given.workers)
    with tempfile.TemporaryDirectory(prefix="holdfast-torture-") as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        outcome = asyncio.run(torture(plan, folder))
    print(markdown(outcome))
    if given.report is not None:
        write(outcome, given.report)
        print(f"report: {given.report}")
    return bool(outcome.findings)


if __name__ == "__main__":
    sys.exit(main())
