"""Several processes on one file, and processes that die."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from holdfast.store.open import open_store
from holdfast.testing.conformance.kit import StoreKit
from holdfast.types.lease import Lease
from tests.deadlines import HANG

pytestmark = pytest.mark.anyio

PREAMBLE = """
import asyncio, os, sys
from holdfast.errors import *
from holdfast.store.open import open_store
from holdfast.store.protocols import ClaimRequest
from holdfast.testing.conformance.kit import StoreKit
from holdfast.types.record import *
kit = StoreKit(lambda clock: open_store(sys.argv[1], clock=clock))
async def append(lease, first, last):
    for seq in range(first, last + 1):
        answers = kit.store.settle_now([RunBatch(lease, [kit.record(seq)])])
        answer = answers[0] if answers else await kit.settle(lease, kit.record(seq))
        assert answer.refusal is None, answer
        print(seq, flush=True)
"""


def _start(script: str, file: Path, *args: str, **env: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PREAMBLE + textwrap.dedent(script), str(file), *args]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **env})


APPEND = """
async def main():
    await kit.start()
    await append(Lease(sys.argv[2], int(sys.argv[3]), 1, "worker-1"), 1, int(sys.argv[4]))
    await kit.stop()
asyncio.run(main())
"""


def _append(file: Path, lease: Lease, count: int, **env: str) -> subprocess.Popen[str]:
    return _start(APPEND, file, lease.run, str(lease.key), str(count), **env)


async def test_processes_append_to_their_runs_at_once_and_nothing_is_lost(kit: StoreKit, file: Path) -> None:
    leases = [await kit.claimed() for _ in range(3)]
    writers = [_append(file, lease, 100) for lease in leases]
    for writer in writers:
        writer.communicate(timeout=HANG)
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    for lease in leases:
        assert [record.seq for record in await kit.store.read(lease.run)] == list(range(101))
    feed = await kit.store.feed(after=0, limit=1000)
    assert len(feed) == 303
    assert [position for position, *_ in feed] == sorted({position for position, *_ in feed})


async def test_what_was_acknowledged_is_there_when_the_writer_is_killed(kit: StoreKit, file: Path) -> None:
    lease = await kit.claimed()
    await kit.store.close()
    writer = _append(file, lease, 100_000)
    assert writer.stdout is not None
    shown = [writer.stdout.readline() for _ in range(50)]
    writer.kill()
    with writer.stdout:  # not communicate(): it would pass over lines that readline has buffered
        shown += writer.stdout.readlines()
    writer.wait(HANG)
    acknowledged = int(shown[-1])
    await kit.start()
    records = await kit.store.read(lease.run)
    assert [record.seq for record in records] == list(range((await kit.row(lease.run)).head + 1))
    assert acknowledged <= records[-1].seq <= acknowledged + 1


async def test_nothing_is_written_when_the_process_dies_inside_a_settle(kit: StoreKit, file: Path) -> None:
    lease = await kit.claimed()
    writer = _append(file, lease, 5, HOLDFAST_CRASH="inside_settle:3")
    shown, _ = writer.communicate(timeout=HANG)
    assert (writer.returncode, shown.split()) == (137, ["1", "2"])
    assert (await kit.row(lease.run)).head == 2
    await kit.written(lease, kit.record(3))


async def test_nothing_is_pruned_when_the_process_dies_inside_prune(kit: StoreKit, file: Path) -> None:
    lease = await kit.claimed()
    await kit.written(lease, kit.record(1), kit.record(2))
    script = """
    async def main():
        await kit.start()
        await kit.store.prune(sys.argv[2], horizon=2, replace=None)
    asyncio.run(main())
    """
    pruner = _start(script, file, lease.run, HOLDFAST_CRASH="inside_prune")
    pruner.communicate(timeout=HANG)
    assert pruner.returncode == 137
    assert [record.seq for record in await kit.store.read(lease.run)] == [0, 1, 2]
    assert await kit.store.prune(lease.run, horizon=2, replace=None) == 2


@pytest.mark.covers("D-11")
async def test_waiting_store_notices_when_another_process_writes(kit: StoreKit, file: Path) -> None:
    assert not await kit.store.wait_change(0.12)
    waiting = asyncio.ensure_future(kit.store.wait_change(30))
    script = """
    async def main():
        await kit.start()
        await kit.created()
        await kit.stop()
    asyncio.run(main())
    """
    writer = _start(script, file)
    assert await waiting
    writer.communicate(timeout=HANG)


@pytest.mark.covers("RS-MORE-4")
async def test_settle_says_full_and_keeps_what_was_acknowledged_when_the_file_cannot_grow(
    kit: StoreKit, file: Path
) -> None:
    lease = await kit.claimed()
    await kit.store.close()
    script = """
    import resource
    async def main():
        await kit.start()
        lease = Lease(sys.argv[2], int(sys.argv[3]), 1, "worker-1")
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))
        seq = 0
        try:
            while True:
                await kit.written(lease, kit.record(seq + 1, payload=b"x" * 5000))
                seq += 1
        except StoreFullError:
            pass
        assert (await kit.row(lease.run)).head == seq > 3
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        await kit.written(lease, kit.record(seq + 1, payload=b"x" * 5000))
        print(seq + 1)
        await kit.stop()
    asyncio.run(main())
    """
    writer = _start(script, file, lease.run, str(lease.key))
    shown, _ = writer.communicate(timeout=HANG)
    assert writer.returncode == 0
    await kit.start()
    assert (await kit.row(lease.run)).head == int(shown)


async def test_forked_child_is_asked_to_open_its_own_and_the_parent_goes_on(file: Path) -> None:
    script = """
    async def main():
        await kit.start()
        lease = await kit.claimed()
        await kit.written(lease, kit.record(1))
        await kit.store.extend([lease], 10)
        child = os.fork()
        if child == 0:
            try:
                kit.store.settle_now([RunBatch(lease, [kit.record(2)])])
            except StoreUnavailableError:
                try:
                    kit.store.extend_now([lease], 1)
                except StoreUnavailableError:
                    os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        await kit.written(lease, kit.record(2))
        await kit.stop()
        print(lease.run)
    asyncio.run(main())
    """
    parent = _start(script, file)
    run, _ = parent.communicate(timeout=HANG)
    assert parent.returncode == 0
    store = await open_store(str(file))
    assert len(await store.read(run.strip())) == 3  # type: ignore[arg-type]
    await store.close()
