from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from holdfast.errors import StoreBusyError, StoreError, StoreFullError
from holdfast.store.sql.sqlite import SqliteStore
from holdfast.store.sql.sqlite.connect import SqliteSettings, connect
from holdfast.store.sql.sqlite.settle import settle
from holdfast.telemetry import arm, disarm
from holdfast.testing.conformance.kit import TTL, StoreKit
from holdfast.testing.crashpoints import Crash
from holdfast.types.lease import Lease
from holdfast.types.record import RunBatch, Side
from holdfast.types.status import RunStatus
from tests.deadlines import HANG
from tests.unit.store.sqlite_files import locked, plain

pytestmark = pytest.mark.anyio


def _sqlite(kit: StoreKit) -> SqliteStore:
    assert isinstance(kit.store, SqliteStore)
    return kit.store


def _batch(kit: StoreKit, lease: Lease, seq: int = 1, **given: object) -> list[RunBatch]:
    return [RunBatch(lease, [kit.record(seq, **given)])]


async def _heads(kit: StoreKit, *leases: Lease) -> list[int]:
    return [(await kit.row(lease.run)).head for lease in leases]


def _counting(kit: StoreKit) -> list[str]:
    """The COMMITs of the writing connection from now on."""
    commits: list[str] = []

    def trace(_cursor: apsw.Cursor, sql: str, _bindings: object) -> bool:
        if sql == "COMMIT":
            commits.append(sql)
        return True

    _sqlite(kit)._writer._conn.exec_trace = trace  # type: ignore[attr-defined]
    return commits


@pytest.mark.covers("CORE-STORE-04", "D-11")
async def test_settle_now_answers_none_and_writes_nothing_when_another_process_is_writing(
    kit: StoreKit, file: Path
) -> None:
    lease = await kit.claimed()
    with locked(file):
        assert _sqlite(kit).settle_now(_batch(kit, lease)) is None
    assert await _heads(kit, lease) == [0]
    answers = _sqlite(kit).settle_now(_batch(kit, lease))
    assert answers is not None
    assert answers[0].refusal is None


@pytest.mark.covers("CORE-STORE-04")
async def test_settle_waits_until_another_process_has_written(kit: StoreKit, file: Path) -> None:
    lease = await kit.claimed()
    with locked(file) as other:
        settling = asyncio.ensure_future(kit.settle(lease, kit.record(1)))
        for _ in range(5):
            await asyncio.sleep(0.005)  # the loop is free while the thread waits
        assert not settling.done()
        assert _sqlite(kit).settle_now(_batch(kit, lease)) is None
        other.execute("COMMIT")
        assert (await settling).refusal is None


@pytest.mark.covers("RS-DB-4")
async def test_writes_give_up_with_busy_when_another_process_keeps_the_lock(
    kit: StoreKit, file: Path
) -> None:
    lease = await kit.claimed()
    with locked(file):
        with pytest.raises(StoreBusyError):
            await kit.settle(lease, kit.record(1))
        with pytest.raises(StoreBusyError):
            await kit.created()
        with pytest.raises(StoreBusyError):
            await kit.store.extend([lease], TTL)
        assert await _heads(kit, lease) == [0], "readers never wait"
    await kit.written(lease, kit.record(1))


@pytest.mark.covers("CORE-STORE-04")
async def test_settles_that_queued_meanwhile_share_one_commit(kit: StoreKit, file: Path) -> None:
    leases = [await kit.claimed() for _ in range(12)]
    commits = _counting(kit)
    with locked(file) as other:
        settling = [asyncio.ensure_future(kit.settle(lease, kit.record(1))) for lease in leases]
        await asyncio.sleep(0.01)
        other.execute("COMMIT")
        answers = await asyncio.gather(*settling)
    assert [answer.refusal for answer in answers] == [None] * 12
    assert len(commits) <= 2, "the first that the thread took, and all the rest"


async def test_creates_made_together_share_commits(kit: StoreKit) -> None:
    await kit.claimed()
    commits = _counting(kit)
    rows = await asyncio.gather(*(kit.created() for _ in range(50)))
    assert len({row.key for row in rows}) == 50
    assert len(commits) < 25


async def test_one_wrong_write_fails_alone_when_it_was_grouped_with_others(kit: StoreKit, file: Path) -> None:
    good, bad, also_good = [await kit.claimed() for _ in range(3)]
    with locked(file) as other:
        settling = [
            asyncio.ensure_future(kit.settle(good, kit.record(1))),
            asyncio.ensure_future(kit.settle(bad, kit.record(1, side=Side(status=RunStatus.pending)))),
            asyncio.ensure_future(kit.settle(bad, kit.record(1, node="\ud800"))),
            asyncio.ensure_future(kit.settle(also_good, kit.record(1))),
        ]
        await asyncio.sleep(0.01)
        other.execute("COMMIT")
        first, second, third, fourth = await asyncio.gather(*settling, return_exceptions=True)
    assert isinstance(second, StoreError)
    assert isinstance(third, UnicodeEncodeError)
    assert await _heads(kit, good, bad, also_good) == [1, 0, 1]
    assert [getattr(answer, "refusal", "raised") for answer in (first, fourth)] == [None, None]


async def test_cancelled_caller_leaves_the_writer_at_work(kit: StoreKit, file: Path) -> None:
    lease = await kit.claimed()
    with locked(file) as other:
        settling = asyncio.ensure_future(kit.settle(lease, kit.record(1)))
        await asyncio.sleep(0.01)
        settling.cancel()
        other.execute("COMMIT")
    await kit.written(lease, kit.record(1), kit.record(2))
    assert await _heads(kit, lease) == [2]


@pytest.mark.covers("RS-MORE-4", "RS-DB-4")
async def test_settle_has_written_nothing_when_the_disk_is_full_and_goes_on_when_there_is_room(
    kit: StoreKit,
) -> None:
    lease = await kit.claimed()
    conn = _sqlite(kit)._writer._conn
    conn.execute("PRAGMA max_page_count = 1")  # SQLite takes the present size as the least
    big = kit.record(1, payload=b"x" * 400_000)
    for _ in range(2):
        with pytest.raises(StoreFullError):
            await kit.settle(lease, big)
        with pytest.raises(StoreFullError):
            _sqlite(kit).settle_now([RunBatch(lease, [big])])
    assert await _heads(kit, lease) == [0]
    assert [record.seq for record in await kit.store.read(lease.run)] == [0]
    conn.execute("PRAGMA max_page_count = 1000000")
    await kit.written(lease, big)


async def test_nothing_is_written_when_it_fails_between_the_inserts_and_the_commit(kit: StoreKit) -> None:
    lease = await kit.claimed()

    def fail() -> None:
        raise apsw.IOError("the disk went away")

    arm("inside_settle", fail)
    try:
        with pytest.raises(StoreError, match="disk"):
            _sqlite(kit).settle_now(_batch(kit, lease))
    finally:
        disarm()
    assert await _heads(kit, lease) == [0]
    await kit.written(lease, kit.record(1))


async def test_a_write_that_cannot_be_caught_reaches_its_caller_and_later_writes_are_done(
    kit: StoreKit,
) -> None:
    def end(_cur: apsw.Cursor, _now: int) -> None:
        raise Crash("inside_settle")

    writer = _sqlite(kit)._writer
    with pytest.raises(Crash):
        await asyncio.wait_for(writer.submit(end), HANG)
    assert await asyncio.wait_for(writer.submit(lambda _cur, _now: 7), HANG) == 7


async def test_store_works_when_used_from_one_event_loop_after_another(kit: StoreKit) -> None:
    lease = await kit.claimed()

    def in_a_loop_of_its_own(act: Callable[[], object]) -> None:
        thread = threading.Thread(target=act)
        thread.start()
        thread.join()

    for seq in range(1, 4):
        in_a_loop_of_its_own(lambda seq=seq: asyncio.run(kit.written(lease, kit.record(seq))))
        in_a_loop_of_its_own(lambda: asyncio.run(kit.created()))
    assert await _heads(kit, lease) == [3]


async def test_store_works_when_two_loops_in_two_threads_use_it_at_once(kit: StoreKit) -> None:
    leases = [await kit.claimed() for _ in range(4)]

    async def work(lease: Lease) -> None:
        for seq in range(1, 41):
            if _sqlite(kit).settle_now(_batch(kit, lease, seq)) is None:
                await kit.written(lease, kit.record(seq))
            await kit.store.send(lease.run, "note", b"%d" % seq)
            assert (await kit.row(lease.run)).head == seq

    await asyncio.gather(*(asyncio.to_thread(asyncio.run, work(lease)) for lease in leases))
    assert await _heads(kit, *leases) == [40] * 4
    assert [(await kit.store.pending(lease.run))[0] for lease in leases] == [40] * 4


@pytest.mark.covers("D-11")
async def test_extend_now_works_from_a_thread_while_the_writer_is_in_use(kit: StoreKit) -> None:
    lease = await kit.claimed()
    writer = _sqlite(kit)._writer
    with writer._in_use:  # the writing connection is taken, its lock on the file is not
        assert await asyncio.to_thread(_sqlite(kit).extend_now, [lease], 5 * TTL) == [True]
    assert (await kit.row(lease.run)).lease_until == kit.clock.now() + 5 * TTL


async def test_queued_writes_are_finished_when_the_store_closes(kit: StoreKit, file: Path) -> None:
    lease = await kit.claimed()
    store = await kit.another()
    with locked(file) as other:
        settling = asyncio.ensure_future(store.settle(_batch(kit, lease)))
        await asyncio.sleep(0.01)
        closing = asyncio.ensure_future(store.close())
        await asyncio.sleep(0.01)
        other.execute("COMMIT")
        await closing
    assert (await settling)[0].refusal is None
    assert await _heads(kit, lease) == [1]


async def test_settle_of_one_record_takes_few_calls(kit: StoreKit) -> None:
    """The whole product has 300 calls a step; the store's part must stay small."""
    import cProfile
    import gc
    import pstats

    lease = await kit.claimed()
    _sqlite(kit).settle_now(_batch(kit, lease))  # the first one reserves space in the log
    batch = _batch(kit, lease, 2)
    profile = cProfile.Profile()
    gc.disable()  # what others left behind would be counted
    try:
        profile.enable()
        _sqlite(kit).settle_now(batch)
        profile.disable()
    finally:
        gc.enable()
    assert pstats.Stats(profile).total_calls <= 37  # type: ignore[attr-defined]


async def test_plain_settle_runs_few_statements(kit: StoreKit, file: Path) -> None:
    lease = await kit.claimed()
    statements: list[str] = []
    with plain(file) as conn:

        def trace(_cursor: apsw.Cursor, sql: str, _bindings: object) -> bool:
            statements.append(sql.split()[0])
            return True

        conn.exec_trace = trace
        cur = conn.cursor()
        cur.execute("BEGIN IMMEDIATE")
        settle(cur, 1, _batch(kit, lease))  # type: ignore[arg-type]
        cur.execute("COMMIT")
    assert statements == ["BEGIN", "UPDATE", "INSERT", "INSERT", "COMMIT"]


async def test_claim_is_not_flushed_by_itself_and_everything_else_is(kit: StoreKit) -> None:
    """Whatever is done under a claim comes after it in the log, and is flushed with it."""
    levels, text = ["full"], list[str]()

    def trace(_cursor: apsw.Cursor, sql: str, _bindings: object) -> bool:
        if "synchronous" in sql.lower():
            levels.append("normal" if "normal" in sql else "full")
        if sql == "COMMIT":
            text.append(levels[-1])
        return True

    writer = _sqlite(kit)._writer
    writer._conn.exec_trace = trace  # type: ignore[attr-defined]
    lease = await kit.claimed()
    await kit.written(lease, kit.record(1))
    assert text == ["full", "normal", "full"], "created, claimed, settled"
    assert writer._conn.execute("PRAGMA synchronous").fetchall() == [(2,)]


@pytest.mark.parametrize("page_size", [1024, 4096])
def test_log_is_folded_into_the_file_after_4_mb_whatever_the_size_of_its_pages(
    tmp_path: Path, page_size: int
) -> None:
    file = tmp_path / "pages.db"
    with plain(file) as conn:
        conn.execute(f"PRAGMA page_size = {page_size}; PRAGMA journal_mode = WAL; CREATE TABLE t (x)")
    opened = connect(SqliteSettings(path=str(file)))
    ((pages,),) = opened.execute("PRAGMA wal_autocheckpoint").fetchall()
    opened.close()
    assert pages * page_size == 4 << 20


@pytest.mark.covers("CORE-STORE-04")
async def test_the_log_grows_by_pieces_and_what_two_processes_wrote_is_whole_after_a_crash(
    kit: StoreKit, file: Path, tmp_path: Path
) -> None:
    lease, log_file, sizes = await kit.claimed(), Path(f"{file}-wal"), set[int]()
    other = connect(SqliteSettings(path=str(file)))
    other.execute("CREATE TABLE others (seq INTEGER PRIMARY KEY)")
    for seq in range(1, 201):
        assert _sqlite(kit).settle_now(_batch(kit, lease, seq)) is not None
        other.execute("INSERT INTO others VALUES (?)", (seq,))
        sizes.add(os.stat(log_file).st_size)  # noqa: PTH116
    for name in (file.name, log_file.name):
        shutil.copy(tmp_path / name, tmp_path / f"crashed-{name}")
    crashed = connect(SqliteSettings(path=str(tmp_path / f"crashed-{file.name}")))

    assert len(sizes) < 20
    assert crashed.execute("SELECT max(seq), count(*) FROM others").fetchall() == [(200, 200)]
    assert crashed.execute("SELECT count(*) FROM journal").fetchall() == [(201,)]
    assert crashed.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    other.close()
    crashed.close()
