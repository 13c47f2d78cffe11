"""Ours and the peers in turns, as ratios of one run: python -m bench.peers"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path

import msgspec

from bench.lines import Line, number, print_lines
from bench.peers import environment
from bench.peers.chart import draw
from bench.server import ABSENT, database, server

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
RESULTS = HERE.parent / "results"
PUBLISHED = ROOT / "docs" / "assets"
ROWS = ("A", "B", "C", "D", "E", "F")
# Rows on PostgreSQL, each measurement in a database of its own; the others make files.
ON_SERVER = ("D",)
PEERS = ("langgraph", "dbos", "burr", "agent_framework", "sayiir")
LIMIT = 900


class Figure(msgspec.Struct):
    row: str
    runtime: str
    unit: str
    value: float
    spread: float
    rounds: int
    commit_us: float
    ratio: float | None = None
    """How many times ours this is; ours was measured before and after it."""

    @property
    def ours(self) -> bool:
        return self.runtime.startswith("Holdfast")


class Target(msgspec.Struct, frozen=True):
    """`peer` must take at least `least` times what `mine` takes."""

    id: str
    row: str
    unit: str
    mine: str
    peer: str
    least: float


TARGETS = (
    Target("A-memory-langgraph", "A", "us a step", "Holdfast memory", "LangGraph memory", 13),
    Target("A-memory-burr", "A", "us a step", "Holdfast memory", "Burr none", 1),
    Target("A-strict-langgraph", "A", "us a step", "Holdfast sqlite strict", "LangGraph sqlite sync", 4),
    Target("A-barrier-langgraph", "A", "us a step", "Holdfast sqlite barrier", "LangGraph sqlite sync", 25),
    Target("D-langgraph", "D", "us a step", "Holdfast postgres barrier", "LangGraph postgres sync", 20),
    Target("D-dbos", "D", "us a step", "Holdfast postgres barrier", "DBOS postgres", 20),
    Target("F-langgraph", "F", "ms a person", "Holdfast sqlite", "LangGraph sqlite sync", 2.5),
)


class Comparison(msgspec.Struct):
    figures: list[Figure]
    absent: dict[str, str]
    lines: list[Line]


def compare(rows: Iterable[str], *, quick: bool = False, quiet: bool = False) -> Comparison:
    """Row by row: ours, a peer, ours again, the next peer. A peer that fails is named and fails nothing."""
    found: list[Figure] = []
    lines: list[Line] = []
    why = environment.make()
    absent: dict[str, str] = {peer: why for peer in PEERS if why}
    for row in rows:
        with server() if row in ON_SERVER else nullcontext() as on:
            if row in ON_SERVER and on is None:
                print(f"bench: row {row} is left out: {ABSENT}", file=sys.stderr)
                continue
            took = list(_row(row, absent, on, quick=quick))
        found += took
        result = [*_shown(row, took), *_judged(row, took)]
        print_lines(result, quiet=quiet)
        lines += result
    for peer, reason in absent.items():
        print(f"bench: {peer} is absent: {reason}", file=sys.stderr)
    return Comparison(found, absent, lines)


def _row(row: str, absent: dict[str, str], on: str | None, *, quick: bool) -> Iterator[Figure]:
    before, _ = _run_ours(row, on, quick)
    every = [before]
    for peer in PEERS:
        if peer in absent:
            continue
        took, error = _run([str(environment.PYTHON), f"{peer}_peer.py", row], HERE, on, quick)
        if error:
            absent[peer] = f"row {row}: {error}"
            continue
        if not took:
            continue  # a row that this runtime cannot do
        after, _ = _run_ours(row, on, quick)
        yield from _related(took, before, after)
        before = after
        every.append(after)
    yield from _middle(every)


def _run_ours(row: str, on: str | None, quick: bool) -> tuple[list[Figure], str]:
    found, error = _run([sys.executable, "-m", "bench.peers.holdfast_peer", row], ROOT, on, quick)
    if error:
        raise RuntimeError(f"our own row {row} failed: {error}")
    return found, error


def _run(command: list[str], place: Path, on: str | None, quick: bool) -> tuple[list[Figure], str]:
    """`on`: the server on which it gets a database."""
    given = {"HOLDFAST_BENCH_ROUNDS": "2" if quick else "5"}
    try:
        with database(on) if on else nullcontext("") as address:
            done = subprocess.run(
                command,
                cwd=place,
                env={**os.environ, **given, "HOLDFAST_BENCH_DATABASE": address},
                capture_output=True,
                text=True,
                timeout=LIMIT,
            )
    except subprocess.TimeoutExpired:
        return [], f"took over {LIMIT} s"
    if done.returncode:
        return [], (done.stderr.strip().splitlines() or ["it failed"])[-1][:200]
    read = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return [msgspec.json.decode(line, type=Figure) for line in read], ""


def _related(took: list[Figure], before: list[Figure], after: list[Figure]) -> Iterator[Figure]:
    for figure in took:
        mine = [one for one in [*before, *after] if _matches(one, figure)]
        if mine:
            ours = statistics.geometric_mean([max(one.value, 1e-9) for one in mine])
            figure.ratio = figure.value / ours
        yield figure


def _matches(mine: Figure, peer: Figure) -> bool:
    """The one of ours that promises as much: memory against what keeps nothing, strict against the rest."""
    if mine.unit != peer.unit:
        return False
    keeps_nothing = peer.runtime.endswith((" none", " memory"))
    if peer.row == "D":
        return mine.runtime == "Holdfast postgres strict"
    if peer.row != "A":
        return True
    return mine.runtime == ("Holdfast memory" if keeps_nothing else "Holdfast sqlite strict")


def _middle(every: list[list[Figure]]) -> Iterator[Figure]:
    """Ours, as the median of all the times that it was measured."""
    by_name: dict[tuple[str, str], list[Figure]] = {}
    for figure in (figure for took in every for figure in took):
        by_name.setdefault((figure.runtime, figure.unit), []).append(figure)
    for same in by_name.values():
        middle = msgspec.structs.replace(same[0], value=statistics.median([one.value for one in same]))
        yield msgspec.structs.replace(middle, rounds=sum(one.rounds for one in same))


def _shown(row: str, figures: list[Figure]) -> list[Line]:
    return [
        Line(
            row=row,
            name=figure.runtime,
            value=figure.value,
            unit=figure.unit,
            spread=figure.spread,
            note=f"{number(figure.ratio)}x ours" if figure.ratio is not None else "",
        )
        for figure in sorted(figures, key=lambda one: (one.unit, one.value))
    ]


def _judged(row: str, figures: list[Figure]) -> Iterator[Line]:
    values = {(one.runtime, one.unit): one.value for one in figures}
    for target in (target for target in TARGETS if target.row == row):
        peer, mine = values.get((target.peer, target.unit)), values.get((target.mine, target.unit))
        ratio = None if peer is None or not mine else peer / mine
        name = f"{target.peer} by {target.mine}, {target.unit}"
        yield Line(row=row, name=name, value=ratio, unit="x", least=target.least)


def report(found: Comparison, *, quick: bool) -> dict[str, object]:
    return {
        "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "peers": versions(),
        "absent": found.absent,
        "figures": [msgspec.structs.asdict(figure) for figure in found.figures],
        "targets": [
            {**msgspec.structs.asdict(line), "verdict": line.verdict} for line in found.lines if line.target
        ],
    }


def versions() -> dict[str, str]:
    """Of the peers, as their environment says."""
    names = [
        "langgraph",
        "langgraph-checkpoint-sqlite",
        "langgraph-checkpoint-postgres",
        "dbos",
        "apache-burr",
        "agent-framework-core",
    ]
    code = f"import json, importlib.metadata as m; print(json.dumps({{n: m.version(n) for n in {names}}}))"
    try:
        done = subprocess.run(
            [str(environment.PYTHON), "-c", code], capture_output=True, text=True, timeout=60
        )
        return dict(json.loads(done.stdout))
    except (OSError, ValueError):
        return {}


def write(found: Comparison, *, quick: bool, publish: bool) -> list[Path]:
    """JSON and a picture, for the next reader; `publish` puts them where the documentation shows them."""
    data = report(found, quick=quick)
    places = [RESULTS, *([PUBLISHED] if publish else [])]
    for place in places:
        place.mkdir(parents=True, exist_ok=True)
        (place / "benchmark.json").write_text(json.dumps(data, indent=1) + "\n")
        (place / "benchmark.svg").write_text(draw(data))
    return [place / "benchmark.svg" for place in places]


def arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers", description="The peers beside ours (bench/README.md)."
    )
    parser.add_argument("--rows", default=",".join(ROWS), help=f"some of {','.join(ROWS)}")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--publish", action="store_true", help="also into docs/assets, for the documentation")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    options = arguments(argv)
    rows = [name.strip().upper() for name in options.rows.split(",")]
    unknown = [name for name in rows if name not in ROWS]
    if unknown:
        print(f"no row {', '.join(unknown)}; there are {', '.join(ROWS)}", file=sys.stderr)
        return 2
    found = compare(rows, quick=options.quick)
    for path in write(found, quick=options.quick, publish=options.publish):
        print(f"Written to {path.relative_to(ROOT)} and .json beside it.")
    return 0
