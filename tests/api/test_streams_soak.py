"""A thousand streams of one server process, over a worker process on PostgreSQL. What it costs is printed."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import time
from pathlib import Path

import pytest

from tests.api.tenants import Serving, Town
from tests.services import postgres

pytestmark = [pytest.mark.anyio, pytest.mark.soak]
STREAMS = 1000


class Listener:
    """A client as small as can be: the numbers that it sees, and when the last came."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.asked = asyncio.Event()
        self.at = 0.0

    async def listen(self, server: Serving, token: str, run: str) -> None:
        host, _, port = server.address.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        head = f"GET /v1/runs/{run}/stream HTTP/1.1\r\nHost: {host}:{port}\r\n"
        writer.write(f"{head}Authorization: Bearer {token}\r\n\r\n".encode())
        while not (line := await reader.readline()).startswith(b"0\r\n"):
            assert line, "the connection broke"
            if line.startswith(b"id: "):
                self.seen.append(int(line[4:]))
                self.at = time.monotonic()
            elif line.startswith(b"event: hold.opened"):
                self.asked.set()
        writer.close()


def memory(process: int) -> int:
    """KiB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def cpu(process: int) -> float:
    """Seconds."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.covers("SERVER-LIVE-07", "SERVER-PROOF-05")
@pytest.mark.parametrize("runs", [1, 200, STREAMS])
async def test_thousand_streams_of_one_server_each_see_everything_once(tmp_path: Path, runs: int) -> None:
    store = postgres.with_setting(postgres.database(), schema=f"t_{secrets.token_hex(4)}")
    async with Town(tmp_path, store) as town:
        server, _ = await asyncio.gather(town.serve(), town.start("--concurrency", "100"))
        pid = server.process.pid
        # It asks as it is created, so that all of them wait at once, whatever the worker can hold.
        followed = [await server.start("asks") for _ in range(runs)]
        before = memory(pid)
        listeners = [Listener() for _ in range(STREAMS)]
        tasks = [
            asyncio.create_task(each.listen(server, town.tokens["dana"], followed[number % runs]))
            for number, each in enumerate(listeners)
        ]
        async with asyncio.timeout(120):
            await asyncio.gather(*(each.asked.wait() for each in listeners))
        grown = memory(pid) - before
        used, began = cpu(pid), time.monotonic()
        await asyncio.sleep(10)
        idle = (cpu(pid) - used) / (time.monotonic() - began)
        late: list[float] = []
        for run in followed:
            await server.json("POST", f"/runs/{run}/input", json={"content": "yes"})
            late.append(time.monotonic())
        async with asyncio.timeout(120):
            await asyncio.gather(*tasks)
        whole = {run: (await server.json("GET", f"/v1/runs/{run}"))["event_seq"] for run in followed}
        lags = sorted(each.at - late[number % runs] for number, each in enumerate(listeners))
    for number, each in enumerate(listeners):
        assert each.seen == list(range(1, whole[followed[number % runs]] + 1))
    shown = {
        "runs": runs,
        "kib_per_stream": round(grown / STREAMS, 1),
        "idle_cpu": round(idle, 3),
        "answer_to_last_event_s": {"p50": round(lags[len(lags) // 2], 3), "max": round(lags[-1], 3)},
    }
    print(json.dumps(shown))
