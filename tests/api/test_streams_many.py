"""Many who follow, and those who are slow: nobody slows anybody, and nobody misses anything."""

from __future__ import annotations

import asyncio
import copy
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast import Flow, Holdfast, Worker
from holdfast.api.app import ApiSettings
from holdfast.api.live.channel import RECENT_BYTES, RECENT_EVENTS, RunChannel
from holdfast.api.live.hub import hub_of
from holdfast.types.ids import RunId
from tests.api.conftest import Server, serving
from tests.api.live import asking, follow, numbers
from tests.api.test_sse import answer, started
from tests.deadlines import HANG
from tests.fleet.workers import until

pytestmark = pytest.mark.anyio


def loud(chunks: int, size: int) -> Flow:
    """Tells more than the buffers of a socket hold."""
    flow = Flow("loud", effect="pure")

    async def shout(s: Any, ctx: Any) -> dict[str, Any]:
        for number in range(chunks):
            ctx.emit({"number": number, "text": "x" * size}, kind="token")
            if number % 20 == 0:
                ctx.flush_chunks()
                await asyncio.sleep(0)
        return {}

    flow.node(id="shout")(shout)
    return flow


class Slow:
    """A client that asks for a stream and does not read it until it is told to."""

    def __init__(self, server: Server, run: str) -> None:
        self._server = server
        self._run = run

    async def __aenter__(self) -> Slow:
        host, port = "127.0.0.1", self._server.serving.port
        # A small window, so that the kernel takes in nothing that it has not read.
        small = socket.socket()
        small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        small.setblocking(False)
        await asyncio.get_running_loop().sock_connect(small, (host, port))
        self.reader, self.writer = await asyncio.open_connection(sock=small, limit=4096)
        token = f"Authorization: Bearer {self._server.token}"
        head = f"GET /v1/runs/{self._run}/stream HTTP/1.1\r\nHost: {host}:{port}\r\n{token}\r\n\r\n"
        self.writer.write(head.encode())
        assert b"200 OK" in await self.reader.readline()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self.writer.close()

    async def ids(self) -> list[int]:
        """Everything, until the stream ends, now as fast as others read."""
        small = self.writer.get_extra_info("socket")
        small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.reader._limit = 1 << 20  # type: ignore[attr-defined]
        found: list[int] = []
        ended = False
        buffer = b""
        while not ended:
            part = await self.reader.read(1 << 16)
            ended = not part or part.endswith(b"0\r\n\r\n")
            *lines, buffer = (buffer + part).split(b"\n")
            found += [int(line[4:]) for line in lines if line.startswith(b"id: ")]
        return found


@pytest.mark.covers("SERVER-LIVE-05")
async def test_slow_client_slows_neither_the_run_nor_others_and_misses_nothing(server: Server) -> None:
    flow = loud(2000, 4000)
    async with Worker(flow, on=server.hf, poll=0.05):
        run = await started(server, flow)
        async with Slow(server, run) as slow:
            async with follow(server.client, f"/v1/runs/{run}/stream") as source:
                sent = await source.rest()
            # The run is over and somebody else has seen it all, while the slow one has read one line.
            assert (await server.json("GET", f"/v1/runs/{run}"))["status"] == "completed"
            assert numbers(sent) == list(range(1, len(sent) + 1))
            assert len(sent) > 2000
            assert hub_of(server.hf).followed == 2, "its run, and the credentials of its tenant"
            async with asyncio.timeout(HANG):
                assert await slow.ids() == numbers(sent)


@pytest.mark.covers("SERVER-LIVE-05")
async def test_what_is_kept_of_a_run_has_a_bound(server: Server) -> None:
    flow = loud(1000, 2000)
    async with Worker(flow, on=server.hf, poll=0.05):
        run = await started(server, flow)
        service = await server.hf.service()
        hub = hub_of(server.hf)
        channel = hub.join(service, await service.get(run))
        try:
            async with follow(server.client, f"/v1/runs/{run}/stream") as source:
                await source.rest()
            assert channel.last > 1000
            kept = await channel.after(channel.floor)
            assert 0 < len(kept) <= RECENT_EVENTS
            assert sum(each.size for each in kept) <= RECENT_BYTES
        finally:
            hub.leave(channel)
    assert hub.followed == 0


async def crowd(server: Server, *, streams: int, runs: int) -> None:
    """`streams` clients follow `runs` runs through a question to their ends."""
    flow = asking()
    limits = httpx2.Limits(max_connections=None)
    headers = {"Authorization": f"Bearer {server.token}"}
    async with (
        httpx2.AsyncClient(
            base_url=server.serving.address, headers=headers, limits=limits, timeout=60
        ) as client,
        Worker(flow, on=server.hf, poll=0.05, concurrency=50),
    ):
        followed = [await started(server, flow) for _ in range(runs)]
        asked = asyncio.Semaphore(0)

        async def one(number: int) -> list[int]:
            seen: list[int] = []
            async with follow(client, f"/v1/runs/{followed[number % runs]}/stream") as source:
                async for each in source:
                    seen.append(each.number)
                    if each.type == "hold.opened":
                        asked.release()
            return seen

        tasks = [asyncio.create_task(one(number)) for number in range(streams)]
        async with asyncio.timeout(HANG):
            for _ in range(streams):
                await asked.acquire()
            await asyncio.gather(*(answer(server, run) for run in followed))
            found = await asyncio.gather(*tasks)
        for seen in found:
            assert seen == list(range(1, len(seen) + 1))
            assert len(seen) == len(found[0])


@pytest.mark.covers("SERVER-LIVE-07")
async def test_hundred_streams_at_once_each_see_everything_once(server: Server) -> None:
    await crowd(server, streams=100, runs=20)
    assert hub_of(server.hf).followed == 0


async def test_followers_that_vanish_leave_nothing_behind(server: Server) -> None:
    flow = asking()
    run = await started(server, flow)
    for _ in range(5):
        async with follow(server.client, f"/v1/runs/{run}/stream") as source:
            await source.until("run.created")
    store = await server.hf.open()
    assert await store.get_run(RunId(run)) is not None
    await until(lambda: not hub_of(server.hf).followed)


class Between:
    """The store, but something happens each time that a run's row was read."""

    def __init__(self, store: Any, happens: Callable[[], Awaitable[None]]) -> None:
        self._store = store
        self._happens = happens

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def get_run(self, run: RunId) -> Any:
        row = await self._store.get_run(run)
        await self._happens()
        return row


@pytest.mark.covers("SERVER-LIVE-01")
async def test_stream_ends_with_a_run_that_ended_while_it_was_read(server: Server, greeting: Flow) -> None:
    run = await started(server, greeting, name="Ada")
    service = await server.hf.service()

    async def finish() -> None:
        worker = Worker(greeting, on=server.hf)
        await worker.run_until_idle()
        await worker.close()

    behind = copy.copy(service)
    behind.store = Between(service.store, finish)  # pyright: ignore[reportAttributeAccessIssue]
    channel = RunChannel(behind, await service.get(run))
    channel.followers = 1
    channel.schedule_read()
    await until(lambda: channel.over is not None)
    assert channel.over == (await service.get(run)).event_seq


@pytest.mark.covers("SERVER-LIVE-01")
async def test_stream_ends_when_another_run_takes_its_place(tmp_path: Path) -> None:
    flow = asking()
    async with (
        Holdfast(f"sqlite:{tmp_path / 's.db'}") as hf,
        serving(hf, ApiSettings(heartbeat=0.1)) as server,
        Worker(flow, on=server.hf, poll=0.05),
    ):
        run = await started(server, flow)
        async with follow(server.client, f"/v1/runs/{run}/stream") as source:
            await source.until("hold.opened")
            await server.json("POST", f"/v1/runs/{run}/rewind", 201)
            await source.rest()
        assert (await server.json("GET", f"/v1/runs/{run}"))["status"] == "cancelled"
