"""Row S: `holdfast serve` as a process, with its worker and SQLite, under mixed requests."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bench import targets
from bench.lines import Line
from bench.load import SHARES, Outcome, measure, table
from bench.measure import Plan
from bench.wire import Wire

RATE = 500.0
SECONDS = 60.0
PEOPLE = 20
_TICKS = os.sysconf("SC_CLK_TCK")

FLOWS = """
from holdfast import Flow

load = Flow("load", effect="pure")

@load.node
async def check(s):
    return {"checked": True}

@load.node
async def pay(s):
    return {"paid": s["amount"]}

ask = load.hold("ask", prompt="Pay {{amount}}?", options=["approve", "reject"], assignee="role:approver")
load.edge(check, ask)
load.edge(ask, pay)
"""


class RunningServer(msgspec.Struct):
    address: str
    token: str
    pid: int
    people: list[str] = []


@contextmanager
def running_server(*options: str, store: str | None = None) -> Iterator[RunningServer]:
    """A server with people who have tokens."""
    with tempfile.TemporaryDirectory(prefix="holdfast-load-") as folder:
        flows = Path(folder) / "flows.py"
        flows.write_text(FLOWS)
        command = [sys.executable, "-m", "holdfast", "serve", str(flows), "--port", "0", "--json", *options]
        environment = {**os.environ, "HOLDFAST_STORE": store or f"sqlite:{folder}/s.db"}
        errors = Path(folder) / "errors.txt"
        with errors.open("w") as to:
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=to, env=environment)
        try:
            assert child.stdout is not None
            line = child.stdout.readline()
            if not line:
                raise RuntimeError(f"the server did not start: {errors.read_text()[-2000:]}")
            reply = json.loads(line)
            found = RunningServer(reply["address"], reply["token"], child.pid)
            found.people = asyncio.run(_people(found))
            yield found
        finally:
            child.terminate()
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            if child.stdout is not None:
                child.stdout.close()


async def _people(server: RunningServer) -> list[str]:
    wire = Wire(server.address)
    tokens: list[str] = []
    for number in range(PEOPLE):
        body = msgspec.json.encode({"subject": f"user:p{number}@load", "roles": ["operator", "approver"]})
        answer = await wire.ask("POST", "/v1/tokens", server.token, body)
        if answer.status != 201:
            raise RuntimeError(f"no token: {answer}")
        tokens.append(msgspec.json.decode(answer.body)["token"])
    wire.close()
    return tokens


def row_s(plan: Plan) -> list[Line]:
    with running_server() as server:
        before = cpu_of(server.pid)
        seconds = 10.0 if plan.quick else SECONDS
        outcome = asyncio.run(measure(server.address, server.people, RATE, seconds))
        cores = (cpu_of(server.pid) - before) / outcome.seconds
    print(table(outcome), file=sys.stderr)
    return list(_lines(outcome, cores))


def _lines(outcome: Outcome, cores: float) -> Iterator[Line]:
    whole = outcome.all
    wrong = str(dict(whole.wrong))[:200] if whole.wrong else ""
    yield _line("requests a second", len(whole.seconds) / outcome.seconds, "1/s", identity="S-rate")
    yield _line("decisions a second", outcome.decided / outcome.seconds, "1/s")
    yield _line("requests that went wrong", sum(whole.wrong.values()), "", identity="S-errors", note=wrong)
    for share in SHARES:
        within = whole.percentile(share) * 1000
        identity = "S-p99" if share == 99 else ""
        yield _line(f"a request, {share:g} of a hundred within", within, "ms", identity=identity)
    yield _line("a request, the slowest", max(whole.seconds) * 1000, "ms")
    late = f"the generator was up to {outcome.late * 1000:.0f} ms late, which counts"
    yield _line("cores that the server used", cores, "", note=late)


def _line(name: str, value: float, unit: str, *, identity: str = "", note: str = "") -> Line:
    most, least = targets.target(identity).most, targets.target(identity).least
    return Line(row="S", name=name, id=identity, value=value, unit=unit, most=most, least=least, note=note)


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
