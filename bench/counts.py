"""Row N: counts, which no noise can touch. Each is the difference between a longer run and a shorter one."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import apsw

from bench.flows import Count, Grow, Looped, count_up, grow, ring_of
from bench.lines import Line
from bench.measure import Plan, aimed, folder, stored
from bench.waits import answered
from holdfast import Flow, Holdfast

SHORT, LONG = 100, 300


def done(flow: Flow, steps: int, after: Callable[[int], None] | None = None) -> None:
    """A run of so many steps in a file of its own; `after` is told how much that stored."""

    async def run() -> None:
        async with Holdfast(f"sqlite:{place}/h.db") as hf:
            (await flow.run({"limit": steps}, on=hf)).expect()

    with folder() as place:
        asyncio.run(run())
        if after is not None:
            after(stored(place))


def calls_per_step(mode: str, short: int = SHORT, long: int = LONG) -> float:
    """Calls of Python and C functions in all threads."""
    flow = ring_of(1, mode)
    done(flow, short)
    return (_calls(flow, long) - _calls(flow, short)) / (long - short)


def _calls(flow: Flow, steps: int) -> int:
    with counted_calls() as counted:
        done(flow, steps)
    return counted()


def calls_for_a_person() -> int:
    """The same from a run's start over its pause and the answer to its end: the least of a few runs, because
    a heartbeat may fall into one, and the first ones fill caches."""

    async def run() -> int:
        async with Holdfast(f"sqlite:{place}/h.db") as hf:
            found: list[int] = []
            for _ in range(8):
                with counted_calls() as counted:
                    await answered(hf)
                found.append(counted())
            return min(found)

    with folder() as place:
        return asyncio.run(run())


@contextlib.contextmanager
def counted_calls() -> Iterator[Callable[[], int]]:
    seen = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal seen
        if event in {"call", "c_call"}:
            seen += 1

    before = sys.getprofile()
    threading.setprofile(count)
    sys.setprofile(count)
    try:
        yield lambda: seen
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


def commits_per_step(mode: str, short: int = SHORT, long: int = LONG) -> float:
    """Transactions that wrote something; with synchronous=FULL each is one flush of the log."""
    flow = ring_of(1, mode)
    done(flow, short)
    return (_commits(flow, long) - _commits(flow, short)) / (long - short)


def _commits(flow: Flow, steps: int) -> int:
    seen = 0

    def committing() -> bool:
        nonlocal seen
        seen += 1
        return False  # True would turn it into a rollback

    def opened(conn: apsw.Connection) -> None:
        conn.set_commit_hook(committing)

    apsw.connection_hooks.append(opened)
    try:
        done(flow, steps)
    finally:
        apsw.connection_hooks.remove(opened)
    return seen


def statements_for_a_person() -> int:
    """What SQLite is asked from a run's start over its pause and the answer to its end; its first run of a
    flow, which also stores the graph, is left out."""
    seen: list[str] = []

    def asked(_cursor: apsw.Cursor, sql: str, _values: object) -> bool:
        seen.append(sql)
        return True

    def opened(conn: apsw.Connection) -> None:
        conn.exec_trace = asked

    async def run() -> int:
        async with Holdfast(f"sqlite:{place}/h.db") as hf:
            await answered(hf)
            seen.clear()
            await answered(hf)
            return len(seen)

    apsw.connection_hooks.append(opened)
    try:
        with folder() as place:
            return asyncio.run(run())
    finally:
        apsw.connection_hooks.remove(opened)


def modules_for_a_flow(*unneeded: str) -> tuple[int, list[str]]:
    """How many modules of ours a program loads that has a flow, and which of the unneeded ones."""
    program = f"""import sys
from holdfast import Flow, Holdfast
print(sum(name.partition(".")[0] == "holdfast" for name in sys.modules))
print(*(name for name in {unneeded} if name in sys.modules))"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    number, loaded = done.stdout.splitlines()
    return int(number), loaded.split()


def flushes_per_step(mode: str) -> float | None:
    """fsync and fdatasync as the kernel sees them; None where there is no strace."""
    if shutil.which("strace") is None:
        return None
    return (_flushes(mode, LONG) - _flushes(mode, SHORT)) / (LONG - SHORT)


def _flushes(mode: str, steps: int) -> int:
    program = f"from bench.counts import done, ring_of; done(ring_of(1, {mode!r}), {steps})"
    command = ["strace", "-f", "-c", "-e", "trace=fsync,fdatasync", sys.executable, "-c", program]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    columns = [line.split() for line in output.splitlines() if line.endswith((" fsync", " fdatasync"))]
    return sum(int(row[3]) for row in columns)  # share, seconds, microseconds each, calls


def bytes_per_step(flow: Flow, short: int = 1_000, long: int = 5_000) -> float:
    """What a step leaves in the file."""
    sizes: list[int] = []
    for steps in (short, long):
        done(flow, steps, sizes.append)
    return (sizes[1] - sizes[0]) / (long - short)


def loop_among(nodes: int) -> Flow:
    """One node that loops, in a graph of so many."""
    return Looped("among", Count, count_up, after=nodes - 1).flow


def bytes_per_byte_appended(short: int = 200, long: int = 1_000) -> float:
    """Bytes stored for each byte of a list that grows by 1,000 bytes a step."""
    sizes: list[int] = []
    for steps in (short, long):
        done(Looped("grow", Grow, grow).flow, steps, sizes.append)
    return (sizes[1] - sizes[0]) / (long - short) / 1000


def row_n(_plan: Plan) -> list[Line]:
    lines: list[Line] = []
    for mode, calls, commits, flushes in (
        ("strict", "N-calls-strict", "N-commits-strict", "N-flushes-strict"),
        ("barrier", "N-calls-barrier", "N-commits-barrier", "N-flushes-barrier"),
    ):
        lines += [
            aimed("N", f"Python calls a step, SQLite {mode}", calls_per_step(mode), "calls", calls),
            aimed("N", f"commits a step, SQLite {mode}", commits_per_step(mode), "commits", commits),
            aimed(
                "N", f"flushes a step by strace, SQLite {mode}", flushes_per_step(mode), "flushes", flushes
            ),
        ]
    one = bytes_per_step(loop_among(1))
    hundred, ring = bytes_per_step(loop_among(100)), bytes_per_step(ring_of(100))
    return [
        *lines,
        aimed(
            "N", "stored for 1 KB appended, steps 200 to 1,000", bytes_per_byte_appended(), "KB", "N-stored"
        ),
        aimed("N", "statements for a person in the loop", statements_for_a_person(), "asked", "N-person"),
        aimed("N", "Python calls for a person in the loop", calls_for_a_person(), "calls", "N-person-calls"),
        aimed("N", "modules of a program with a flow", modules_for_a_flow()[0], "modules", "N-modules"),
        aimed("N", "stored a step, graph of 1 node", one, "bytes"),
        aimed("N", "stored a step, among 100 nodes by 1", hundred / one, "x", "N-among"),
        aimed("N", "stored a step, round of 100 nodes by 1", ring / one, "x", "N-round"),
    ]
