"""Row W: how much more gets done with more worker processes, on one PostgreSQL server.

Two kinds of work. Steps that do nothing show what a step costs the machine: workers and server share its
cores here, so this ends where the cores do. Steps that wait 20 ms, as for a model or another service, show
what workers are for: each carries ten runs at once, and every further worker adds as much as the first, until
the machine or the database is the limit. Beside each figure stands whose CPU time it took.

A worker is `python -m bench.fleet ADDRESS KIND`: it opens the store, says so, and begins at a line on stdin.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec

from bench.flows import Count, count_up
from bench.lines import Line
from bench.measure import Plan, line
from bench.server import ABSENT, database, server
from holdfast import Flow, Holdfast, Worker

STEPS = 10
AT_ONCE = 10  # runs that a worker carries
PAUSE = 0.02
FLEETS = {"busy": (1, 2, 3, 4), "waiting": (1, 2, 4, 8)}
DESCRIPTIONS = {"busy": "steps that do nothing", "waiting": f"steps that wait {PAUSE * 1000:.0f} ms"}
_TICKS = os.sysconf("SC_CLK_TCK")


class FleetMeasurement(msgspec.Struct):
    seconds: float
    workers_cpu: float
    server_cpu: float
    memory: int  # bytes of the largest worker
    connections: int  # of all workers
    stored: int  # bytes of the database


def flow_of(kind: str) -> Flow:
    flow = Flow(f"fleet-{kind}", state=Count, effect="pure")

    async def wait(state: Count) -> dict[str, Any]:
        await asyncio.sleep(PAUSE)
        return {"n": state.n + 1}

    flow.chain(*(flow.node(id=f"n{i}")(count_up if kind == "busy" else wait) for i in range(STEPS)))
    return flow


def row_w(plan: Plan) -> list[Line]:
    with server() as found:
        if found is None:
            return [Line(row="W", name="workers, not measured", value=None, unit="", note=ABSENT)]
        return [*_fleets(plan, found, "busy"), *_fleets(plan, found, "waiting")]


def _fleets(plan: Plan, on: str, kind: str) -> Iterator[Line]:
    first, workers, runs, rounds = 0.0, 0, 0, list[FleetMeasurement]()
    for workers in FLEETS[kind]:
        runs = _enough(kind, workers, quick=plan.quick)
        rounds = [measured(on, kind, workers, runs) for _ in range(2 if plan.quick else 3)]
        speeds = [runs * STEPS / took.seconds for took in rounds]
        cores = sum(t.workers_cpu for t in rounds), sum(t.server_cpu for t in rounds)
        whole = sum(t.seconds for t in rounds)
        target = "W-speed" if (kind, workers) == ("busy", 2) else ""
        result = line("W", f"{workers} workers, {DESCRIPTIONS[kind]}", speeds, "steps/s", target=target)
        first = first or (result.value or 0.0)
        result.note = (
            f"{(result.value or 0) / first:.2f}x one worker; cores: workers {cores[0] / whole:.2f}, "
            f"server {cores[1] / whole:.2f}"
        )
        yield result
    yield from _needs(kind, rounds, workers, runs)


def _needs(kind: str, rounds: list[FleetMeasurement], workers: int, runs: int) -> Iterator[Line]:
    """What the largest fleet took, for whoever plans one."""
    said = DESCRIPTIONS[kind]
    each = [took.connections / workers for took in rounds]
    cpu = [
        (took.workers_cpu * 1e6 / (runs * STEPS), took.server_cpu * 1e6 / (runs * STEPS)) for took in rounds
    ]
    yield line("W", f"a worker's memory, {said}", [took.memory / (1 << 20) for took in rounds], "MB")
    yield line("W", f"a worker's connections, {said}", each, "")
    yield line("W", f"a worker's CPU, {said}", [own for own, _ in cpu], "us a step")
    stored = [took.stored / (runs * STEPS) for took in rounds]
    targets = ("W-server", "W-stored") if kind == "busy" else ("", "")
    yield line("W", f"the server's CPU, {said}", [its for _, its in cpu], "us a step", target=targets[0])
    yield line("W", f"stored, {said}", stored, "B a step", target=targets[1])


def _enough(kind: str, workers: int, *, quick: bool) -> int:
    """Runs for a few seconds of work."""
    seconds = 1.5 if quick else 4
    speed = 4_000 if kind == "busy" else min(workers * AT_ONCE / PAUSE, 6_000)
    return int(seconds * speed / STEPS)


def measured(on: str, kind: str, workers: int, runs: int) -> FleetMeasurement:
    """From the word to begin until every run has ended."""
    with database(on) as address, _workers(address, kind, workers) as processes:
        asyncio.run(_create(address, kind, runs))
        cpu, before = [_cpu(p.pid) for p in processes], _server_cpu()
        began = perf_counter()
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        asyncio.run(_ended(address, runs))
        seconds = perf_counter() - began
        spent = sum(_cpu(p.pid) for p in processes) - sum(cpu)
        memory = max(_memory(p.pid) for p in processes)
        connections, stored = asyncio.run(_of_server(address))
        return FleetMeasurement(seconds, spent, _server_cpu() - before, memory, connections, stored)


@contextmanager
def _workers(address: str, kind: str, count: int) -> Iterator[list[subprocess.Popen[str]]]:
    command = [sys.executable, "-m", "bench.fleet", address, kind]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            if process.stdout.readline().strip() != "ready":
                raise RuntimeError("a worker of the benchmark did not start")
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


async def _create(address: str, kind: str, runs: int) -> None:
    program = flow_of(kind).program()
    async with Holdfast(address) as hf:
        service = await hf.service()
        for first in range(0, runs, 100):
            await asyncio.gather(
                *(service.create(program, {"limit": 0}) for _ in range(min(100, runs - first)))
            )
        await _analyze(address)


async def _analyze(address: str) -> None:
    connection = await _connected(address)
    await connection.execute("ANALYZE")
    await connection.close()


async def _ended(address: str, runs: int) -> None:
    connection = await _connected(address)
    try:
        while True:
            done: int = await connection.fetchval(
                "SELECT count(*) FROM holdfast.runs WHERE status = 'completed'"
            )
            if done >= runs:
                return
            await asyncio.sleep(0.02)
    finally:
        await connection.close()


async def _of_server(address: str) -> tuple[int, int]:
    """(connections beside this one, bytes of the database)."""
    connection = await _connected(address)
    found = await connection.fetchrow(
        "SELECT (SELECT count(*) - 1 FROM pg_stat_activity WHERE datname = current_database()), "
        "pg_database_size(current_database())"
    )
    await connection.close()
    return int(found[0]), int(found[1])


async def _connected(address: str) -> Any:
    import asyncpg  # pyright: ignore[reportMissingTypeStubs]

    driver: Any = asyncpg
    return await driver.connect(address)


def _cpu(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _memory(pid: int) -> int:
    """Resident."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _server_cpu() -> float:
    """Of every process of a PostgreSQL server of this machine; a parent counts those that ended."""
    total = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        if name.startswith("postgres"):
            fields = rest.split()
            total += sum(int(fields[i]) for i in (11, 12, 13, 14)) / _TICKS
    return total


async def serve(address: str, kind: str) -> None:
    async with Holdfast(address) as hf:
        worker = Worker(flow_of(kind), on=hf, concurrency=200 if kind == "busy" else AT_ONCE)
        await hf.open()
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        await worker.serve()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2]))
