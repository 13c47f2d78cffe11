"""A failover behind one address: the new server lacks what was acknowledged last. Runs that lost history
stop, others go on, and the old server is refused when it comes back."""

from __future__ import annotations

import asyncio
import logging
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from holdfast import Flow, Holdfast, RunSettings, Worker
from holdfast.errors import HistoryLostError, StoreUnavailableError
from holdfast.runs.service import RunService
from holdfast.store.rows import ClaimRequest
from holdfast.store.sql.mariadb import MariadbStore
from holdfast.types.ids import RunId
from holdfast.types.status import RunStatus
from tests.deadlines import HANG
from tests.services import absent, mariadb
from tests.services.mariadb_server import MariadbServer, programs

pytestmark = [pytest.mark.anyio, pytest.mark.covers("MB-7", "FLEET-PG-08")]

FAST = RunSettings(lease_ttl=4.0, poll=0.05, hot_timer=0.0)


class MovingAddress:
    """Leads to one server, and later to another: what a cluster manager or a virtual address does."""

    def __init__(self, to: MariadbServer) -> None:
        self.to = to
        self.port = 0
        self._open: set[asyncio.StreamWriter] = set()

    def move(self, to: MariadbServer) -> None:
        self.to = to
        for each in self._open:
            each.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner, outer = await asyncio.open_connection("127.0.0.1", self.to.port)
        except OSError:
            writer.close()
            return
        self._open |= {writer, outer}
        await asyncio.gather(self._copy(reader, outer), self._copy(inner, writer))
        self._open -= {writer, outer}

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(1 << 16):
                target.write(data)
                await target.drain()
        target.close()


@asynccontextmanager
async def leading_to(server: MariadbServer) -> AsyncIterator[MovingAddress]:
    found = MovingAddress(server)
    listener = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    found.port = listener.sockets[0].getsockname()[1]
    yield found
    found.move(server)
    listener.close()


def flow_of(paid: list[str]) -> Flow:
    flow = Flow("refund", effect="external")

    async def pay(s: Any) -> dict[str, Any]:
        paid.append(s["name"])
        return {"done": True}

    ask = flow.hold("ask", prompt="Go?", options=["yes", "no"])
    flow.start(ask)
    flow.edge(ask, flow.node(id="pay", effect="external", idempotency_key="{{name}}")(pay))
    return flow


async def until(service: RunService, run: RunId, status: RunStatus) -> None:
    async with asyncio.timeout(HANG):
        while (await service.get(run)).status is not status:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def approve(service: RunService, run: RunId) -> None:
    (hold,) = await service.holds(run)
    await service.answer(hold.id, "yes")


def copied(first: MariadbServer, second: MariadbServer) -> None:
    subprocess.run(["cp", "-a", str(first.data), str(second.data)], check=True)


@pytest.fixture
def servers() -> Any:
    if programs() is None:
        absent("mariadb", "mariadbd is not installed")
    both = MariadbServer(), MariadbServer()
    yield both
    for each in both:
        each.remove()


async def test_run_stops_when_its_history_went_back_and_the_old_server_is_refused(
    servers: tuple[MariadbServer, MariadbServer], caplog: pytest.LogCaptureFixture
) -> None:
    first, second = servers
    await asyncio.to_thread(first.start)
    await asyncio.to_thread(mariadb.execute, "CREATE DATABASE runs", first.address)
    paid: list[str] = []
    flow = flow_of(paid)
    async with leading_to(first) as address:
        named = f"mariadb://root@127.0.0.1:{address.port}/runs?timeout=3&settling=3"
        async with Holdfast(named, settings=FAST) as hf:
            service = await hf.service()

            async def order(name: str) -> RunId:
                return (await service.create(flow.program(), {"name": name}))[0].id

            async with Worker(flow, on=hf, poll=0.05):
                approved, whole = await order("approved"), await order("whole")
                for run in (approved, whole):
                    await until(service, run, RunStatus.pending_input)
            begun = await order("begun")
            # The replica has come this far.
            await asyncio.to_thread(first.stop)
            await asyncio.to_thread(copied, first, second)
            await asyncio.to_thread(first.start)
            async with Worker(flow, on=hf, poll=0.05):
                await until(service, begun, RunStatus.pending_input)
                for run in (approved, begun):
                    await approve(service, run)
                    await until(service, run, RunStatus.completed)
            gone = await order("gone")
            read = (await service.store.feed(after=0, limit=1000))[-1]
            assert sorted(paid) == ["approved", "begun"]

            await asyncio.to_thread(first.kill)
            await asyncio.to_thread(second.start)
            address.move(second)
            # Somebody new, who knows of nothing and would go on with `begun` from its beginning at once.
            other = flow_of(paid)
            async with Holdfast(named, settings=FAST) as stranger, Worker(other, on=stranger, poll=0.05):
                for run in (approved, begun):
                    await until(service, run, RunStatus.failed)
                assert (await service.get(whole)).status is RunStatus.pending_input
                assert await service.store.get_run(gone) is None
                await approve(service, whole)
                await until(service, whole, RunStatus.completed)
            assert sorted(paid) == ["approved", "begun", "whole"]
            for run in (approved, begun):
                row = await service.get(run)
                assert (row.error or "").startswith("History lost: ")
                with pytest.raises(HistoryLostError):
                    await service.request_resume(run)
                assert await service.store.claim(ClaimRequest(worker="w", ttl=1, run=run)) == []
            # Whoever read the feed up to what was lost misses nothing of what comes now.
            result = await service.store.feed(after=read[0], limit=1000)
            assert {run for _, run, *_ in result} >= {approved, begun}
            await old_server_is_refused(hf, first, second, address)
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    for run in (approved, begun):
        assert any(f"run {run} stops. History lost: " in said for said in errors)
    assert any(f"run {gone}" in said and "is gone" in said for said in errors)


async def old_server_is_refused(
    hf: Holdfast, first: MariadbServer, second: MariadbServer, address: MovingAddress
) -> None:
    store = await hf.open()
    await asyncio.to_thread(first.start)
    address.move(first)
    with pytest.raises(StoreUnavailableError, match="it is an old primary"):
        await store.documents("t", "k", limit=1)
    address.move(second)
    assert await store.documents("t", "k", limit=1) == []


async def test_generation_is_noted_once_and_grows_with_each_other_server(
    store: MariadbStore, address: str
) -> None:
    """As the row shows it; a cluster in which every node writes has no failovers."""
    assert await store.documents("t", "k", limit=1) == []
    (row,) = await asyncio.to_thread(mariadb.execute, "SELECT * FROM primaries", address)
    assert (row[0], row[2], row[3]) == (1, 1, 0)
    await asyncio.to_thread(mariadb.execute, "UPDATE primaries SET server = 'galera'", address)
    primary = store._primary  # pyright: ignore[reportPrivateUsage]
    for server, expected in (("galera", 1), ("elsewhere:3306:1", 2), ("elsewhere:3306:1", 3)):
        await asyncio.to_thread(mariadb.execute, f"UPDATE primaries SET server = '{server}'", address)
        raw, generation = await primary.connect()
        assert generation == primary.generation == expected
        raw.close()
        assert primary.settling is (expected > 1)
