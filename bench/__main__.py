"""python -m bench [--only A,B] [--quick] [--json] [--peers no|only] [--publish]"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import apsw
import msgspec

from bench.agents import row_k
from bench.counts import row_n
from bench.fleet import row_w
from bench.graphs import row_g
from bench.growth import row_b, row_e
from bench.inbox import row_h
from bench.lines import HEADING, Line, print_lines
from bench.mariadb import row_m
from bench.measure import Plan
from bench.models import row_l
from bench.objects import row_o
from bench.peers import compare
from bench.pipelines import row_t
from bench.postgres import row_p
from bench.queues import row_q
from bench.savers import row_y
from bench.serving import row_s
from bench.start import row_i
from bench.steps import row_a, row_c, row_d
from bench.streams import row_r
from bench.telemetry import row_x
from bench.temporal import row_j
from bench.waits import row_f, row_v
from bench.web import row_u

ROWS: dict[str, Callable[[Plan], list[Line]]] = {
    "A": row_a,
    "B": row_b,
    "C": row_c,
    "D": row_d,
    "E": row_e,
    "F": row_f,
    "G": row_g,
    "H": row_h,
    "N": row_n,
    "I": row_i,
    "P": row_p,
    "M": row_m,
    "O": row_o,
    "V": row_v,
    "Q": row_q,
    "T": row_t,
    "W": row_w,
    "X": row_x,
    "J": row_j,
    "Y": row_y,
    "K": row_k,
    "L": row_l,
    "R": row_r,
    "S": row_s,
    "U": row_u,
}
RESULTS = Path(__file__).parent / "results" / "latest.json"


def main() -> int:
    options = arguments()
    wanted = [name.strip().upper() for name in options.only.split(",")] if options.only else list(ROWS)
    unknown = [name for name in wanted if name not in ROWS]
    if unknown:
        print(f"no row {', '.join(unknown)}; there are {', '.join(ROWS)}", file=sys.stderr)
        return 2
    lines = [] if options.peers == "only" else measured(wanted, Plan(options.quick), quiet=options.json)
    report = describe(lines, quick=options.quick)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")
    if options.json:
        print(RESULTS.read_text())
    else:
        print(summary(lines))
    compared = [row for row in wanted if row in compare.ROWS]
    if options.peers != "no" and compared and not options.json:
        beside_peers(compared, quick=options.quick, publish=options.publish)
    return 0


def beside_peers(rows: list[str], *, quick: bool, publish: bool) -> None:
    print("\nBeside the peers: ours was measured before and after each of them.", flush=True)
    found = compare.compare(rows, quick=quick)
    places = compare.write(found, quick=quick, publish=publish)
    print(f"{summary([one for one in found.lines if one.target])} The plot: {places[-1]}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="The core's benchmark (bench/README.md)."
    )
    parser.add_argument("--only", metavar="ROWS", help=f"some of {','.join(ROWS)}")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument(
        "--json", action="store_true", help="JSON on standard output, the table on standard error"
    )
    parser.add_argument(
        "--peers",
        choices=["yes", "no", "only"],
        default="yes",
        help="also other runtimes, installed into .peers",
    )
    parser.add_argument("--publish", action="store_true", help="put the comparison into docs/assets")
    return parser.parse_args()


def measured(wanted: list[str], plan: Plan, *, quiet: bool) -> list[Line]:
    lines: list[Line] = []
    print(HEADING, file=sys.stderr if quiet else sys.stdout)
    for name in wanted:
        began = perf_counter()
        try:
            found = ROWS[name](plan)
        except Exception as error:  # one broken row must not hide the others
            traceback.print_exc()
            found = [
                Line(row=name, name="could not be measured", value=None, unit="", note=repr(error)[:200])
            ]
        found[-1].note += f"  ({perf_counter() - began:.1f} s)"
        print_lines(found, quiet=quiet)
        lines += found
    return lines


def summary(lines: list[Line]) -> str:
    verdicts = [line.verdict for line in lines]
    missed, absent = verdicts.count("MISSED"), verdicts.count("absent")
    counts = f"{verdicts.count('ok')} targets met, {missed} missed, {absent} not measured"
    return f"{counts}. Written to {RESULTS.name}."


def describe(lines: list[Line], *, quick: bool) -> dict[str, Any]:
    return {
        "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "lines": [{**msgspec.structs.asdict(line), "verdict": line.verdict} for line in lines],
    }


if __name__ == "__main__":
    sys.exit(main())
