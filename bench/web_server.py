"""The server that the web app is measured with: SQLite, and the worker in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

import apsw
import msgspec

FLOWS = """
import asyncio
from time import monotonic
from itertools import pairwise
from holdfast import Flow

ask = Flow("ask", effect="pure")
ask.hold("decide", prompt="Refund {{input.number}}?", options=["refund", "reject"], assignee="user:local")

turns = Flow("turns", effect="pure", mode="barrier")

@turns.node
async def turn(s):
    return {"n": s["n"] + 1}

turns.loop(turn, turn, when="n < input.limit", max=20_000)

storm = Flow("storm", effect="pure", mode="barrier")
# Each has five events.
STEPS_A_SECOND = 200
began = []

@storm.node
async def gust(s):
    if s["n"] == 0:
        began[:] = [monotonic()]  # of this run: a second one would else hurry to make up for the time between
    ahead = s["n"] / STEPS_A_SECOND - (monotonic() - began[0])
    await asyncio.sleep(max(ahead, 0))
    return {"n": s["n"] + 1}

storm.loop(gust, gust, when="n < input.limit", max=100_000)

async def nothing():
    return {}

def wide(name, rows, columns):
    flow = Flow(name, effect="pure")
    first, last = flow.node(id="first")(nothing), flow.node(id="last")(nothing)
    for column in range(columns):
        found = [flow.node(id=f"n{column:02}-{row:02}")(nothing) for row in range(rows)]
        for before, after in pairwise([first, *found, last]):
            flow.edge(before, after)
    return flow

large = wide("large", 25, 40)
small = wide("small", 8, 6)
"""
# The hold that is there, many times.
_MORE_HOLDS = """
WITH RECURSIVE n (i) AS (SELECT ? UNION ALL SELECT i + 1 FROM n WHERE i < ?)
INSERT INTO holds (id, run_key, tenant, seq, node, scope, visit, ordinal, type, assignee, assignee_type,
                   assignee_value, priority, created_at, updated_at, request_hash, prompt, options, schema,
                   context, terms, tags)
SELECT printf('00000000-0000-4000-8000-%012d', i), run_key, tenant, seq, node, scope, visit, i, type,
       assignee, assignee_type, assignee_value, priority, created_at + i, updated_at, request_hash,
       'Refund claim ' || i || '?', options, schema, context, terms, tags
FROM n, (SELECT * FROM holds LIMIT 1)"""


class AppServer(msgspec.Struct):
    address: str
    token: str
    sign_in: str

    def api(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.address + path, data, headers, method=method)
        with build_opener(ProxyHandler({})).open(request, timeout=120) as answer:
            return json.load(answer)

    def ended(self, flow: str, given: dict[str, Any], *, seconds: float = 120) -> str:
        """A run, once it has ended."""
        run = str(self.api("POST", "/v1/runs", {"flow": flow, "input": given})["id"])
        deadline = monotonic() + seconds
        while self.api("GET", f"/v1/runs/{run}")["status"] not in ("completed", "failed"):
            if monotonic() > deadline:
                raise TimeoutError(f"the run of {flow} did not end")
            sleep(0.1)
        return run


@contextmanager
def app_server(place: Path) -> Iterator[AppServer]:
    (place / "flows.py").write_text(FLOWS)
    environment = {name: value for name, value in os.environ.items() if name != "HOLDFAST_SKIP_UI"}
    environment["HOLDFAST_STORE"] = f"sqlite:{place / 'web.db'}"
    flows = str(place / "flows.py")
    # The worker apart: steps do not take the time of requests.
    with _process(environment, "serve", flows, "--port", "0", "--json", "--no-worker") as server:
        assert server.stdout is not None
        told = json.loads(server.stdout.readline())
        with _process(environment, "worker", flows):
            yield AppServer(told["address"], told["token"], told["sign_in"])


@contextmanager
def _process(environment: dict[str, str], *arguments: str) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [sys.executable, "-m", "holdfast", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        text=True,
    )
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(20)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        if child.stdout is not None:
            child.stdout.close()


def add_holds(place: Path, count: int, *, beyond: int = 0) -> None:
    conn = apsw.Connection(str(place / "web.db"))
    conn.set_busy_timeout(30_000)
    conn.execute(_MORE_HOLDS, (beyond + 1, beyond + count))
    conn.close()
