"""Who works is known to the fleet, and no two live workers have one name."""

from __future__ import annotations

import asyncio
import os
import re
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast import Holdfast, RunSettings, Worker
from holdfast._version import __version__
from holdfast.errors import WorkerNameTakenError
from holdfast.types.clock import MICROS
from holdfast.types.fleet import WorkerRow
from holdfast.types.status import RunStatus
from tests.deadlines import HANG
from tests.fleet.workers import Crew, ended, go_on, settings, stop, until

pytestmark = [pytest.mark.anyio, pytest.mark.covers("FLEET-BAD-06")]


async def test_second_worker_of_a_live_name_is_refused_in_one_sentence(tmp_path: Path, address: str) -> None:
    with Crew(tmp_path, address) as crew:
        async with Holdfast(address) as hf:
            store = await hf.open()
            first = await crew.start("--name", "till", "--lane", "fast", "--concurrency", "4")
            (row,) = await store.workers()
            second = crew.spawn("--name", "till")
            code = await ended(second)
            assert [each.pid for each in await store.workers()] == [first.pid]
        assert first.poll() is None
    said = crew.said(second)
    assert code == 2
    where = f"pid {first.pid} on {re.escape(socket.gethostname())}"
    assert re.fullmatch(
        rf"holdfast: another worker has the name 'till': {where}, running since [-0-9]+ [:0-9]+ UTC\. "
        r"Give this one another name \(--name, or Worker\(name=\.\.\.\)\), or try again in \d+ s if that one "
        r"has ended\.\n",
        said,
    ), said
    assert (row.lanes, row.concurrency, row.release, row.draining) == (("fast",), 4, __version__, False)
    # Besides what every worker carries for agents that ask.
    assert set(row.versions.values()) == {"jobs", "asks", "ask-people"}
    assert abs(row.skew) < MICROS


async def test_restarted_worker_takes_its_name_at_once_when_the_process_before_it_is_dead(
    tmp_path: Path, address: str
) -> None:
    with Crew(tmp_path, address) as crew:
        first = await crew.start("--name", "till", "--lease", "60s")
        first.kill()
        await ended(first)
        # Within the time that a test has, and long before the announcement would lapse.
        second = await crew.start("--name", "till", "--lease", "60s")
        async with Holdfast(address) as hf:
            assert [row.pid for row in await (await hf.open()).workers()] == [second.pid]
    assert f"takes over from pid {first.pid}, which is gone" in crew.said(second)


async def test_worker_that_was_silent_ends_when_its_name_was_taken(tmp_path: Path, address: str) -> None:
    with Crew(tmp_path, address) as crew:
        async with Holdfast(address, settings=RunSettings(**settings())) as hf:
            service = await hf.service()
            first = await crew.start("--name", "till", "--lease", "2s")
            stop(first)

            async def is_silent() -> bool:
                return (await service.store.workers())[0].until <= service.store.now()

            await until(is_silent, "its announcement lapsed")
            second = await crew.start("--name", "till", "--lease", "2s")
            go_on(first)
            assert await ended(first) == 2
            row, _ = await service.create(crew.flow("jobs").program(), {"job": "j"})

            async def is_over() -> bool:
                return (await service.get(row.id)).status is RunStatus.completed

            await until(is_over, "the second works")
            assert [each.pid for each in await service.store.workers()] == [second.pid]
    assert "This one claims nothing more and stops." in crew.said(first)
    assert crew.ledger("act") == [("j", second.pid)]


def elsewhere(name: str, seen: int) -> WorkerRow:
    """On another machine: nobody here can tell whether it lives."""
    return WorkerRow(
        name=name, incarnation="other", host="afar", pid=os.getpid(), release="1", started_at=seen, place="?"
    )


async def test_name_of_a_worker_on_another_machine_is_free_when_that_one_stays_silent(address: str) -> None:
    async with Holdfast(address, settings=RunSettings(**settings())) as hf:
        store = await hf.open()
        await store.put_worker(elsewhere("till", store.now()), 2 * MICROS)
        began = store.now()
        async with Worker(on=hf, name="till"):
            waited = store.now() - began
            (row,) = await store.workers()
            assert row.host == socket.gethostname()
        assert await store.workers() == []
    assert MICROS < waited < 8 * MICROS


async def test_worker_is_refused_when_the_one_on_another_machine_is_heard_again(address: str) -> None:
    async with Holdfast(address, settings=RunSettings(**settings())) as hf:
        store = await hf.open()

        async def beat() -> None:
            while True:
                await store.put_worker(elsewhere("till", 5), 30 * MICROS)
                await asyncio.sleep(0.5)

        beating = asyncio.create_task(beat())
        try:
            await until(lambda: _any(store), "it is announced")
            worker = Worker(on=hf, name="till")
            with pytest.raises(WorkerNameTakenError, match="on afar"):
                async with asyncio.timeout(HANG), worker:
                    pass
        finally:
            beating.cancel()
            with suppress(asyncio.CancelledError):
                await beating
        assert [row.host for row in await store.workers()] == ["afar"]


async def test_two_workers_of_one_program_may_not_share_a_name(address: str) -> None:
    async with Holdfast(address) as hf:
        one, two = (Worker(on=hf, name="till") for _ in range(2))
        async with one:
            with pytest.raises(WorkerNameTakenError):
                async with two:
                    pass
        async with two:
            pass


async def _any(store) -> bool:
    return bool(await store.workers())
