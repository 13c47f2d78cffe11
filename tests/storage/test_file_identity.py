"""A SQLite file that is removed, replaced, emptied or older than it was is noticed."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio
import apsw
import pytest

from holdfast import Flow, Holdfast, Worker
from holdfast.errors import StoreReplacedError
from holdfast.store.open import open_store
from holdfast.store.protocols import Store
from holdfast.store.rows import ClaimRequest
from holdfast.store.sql.sqlite.identity import LOG_BEGINS, FileIdentity
from holdfast.testing.conformance.kit import StoreKit
from tests.deadlines import HANG
from tests.fleet.test_doctor_fleet import findings

pytestmark = pytest.mark.anyio


def removed(file: Path) -> None:
    file.unlink()


def moved_away(file: Path) -> None:
    file.rename(file.with_suffix(".old"))


def replaced_by_a_copy(file: Path) -> None:
    shutil.copy(file, file.with_suffix(".copy"))
    file.with_suffix(".copy").replace(file)


def replaced_by_nothing(file: Path) -> None:
    file.unlink()
    file.touch()


def emptied(file: Path) -> None:
    os.truncate(file, 0)


def folder_replaced(file: Path) -> None:
    file.parent.rename(file.parent.with_name("old"))
    shutil.copytree(file.parent.with_name("old"), file.parent)


def log_removed(file: Path) -> None:
    Path(f"{file}-wal").unlink()


def log_replaced(file: Path) -> None:
    wal = Path(f"{file}-wal")
    shutil.copy(wal, f"{file}-wal.copy")
    Path(f"{file}-wal.copy").replace(wal)


def log_emptied(file: Path) -> None:
    os.truncate(f"{file}-wal", 0)


def index_removed(file: Path) -> None:
    Path(f"{file}-shm").unlink()


def index_replaced(file: Path) -> None:
    index = Path(f"{file}-shm")
    shutil.copy(index, f"{file}-shm.copy")
    Path(f"{file}-shm.copy").replace(index)


def cut_off(file: Path) -> None:
    with contextlib.closing(apsw.Connection(str(file))) as other:
        other.execute("PRAGMA wal_checkpoint(PASSIVE)")
    os.truncate(file, file.stat().st_size // 2)


def log_cut_off(file: Path) -> None:
    os.truncate(f"{file}-wal", 4096 + 32)


def log_size(file: Path) -> int:
    return Path(f"{file}-wal").stat().st_size


def mark_of(file: Path) -> Path:
    return file.with_name(f"{file.name}-mark")


FAULTS = [
    removed,
    moved_away,
    replaced_by_a_copy,
    replaced_by_nothing,
    emptied,
    folder_replaced,
    log_removed,
    log_replaced,
    log_emptied,
    index_removed,
    index_replaced,
    cut_off,
    log_cut_off,
]


async def create(kit: StoreKit) -> None:
    await kit.created()


async def settle(kit: StoreKit) -> None:
    await kit.written(kit.lease, kit.record(1))  # type: ignore[attr-defined]


async def settle_now(kit: StoreKit) -> None:
    from holdfast.types.record import RunBatch

    kit.store.settle_now([RunBatch(kit.lease, [kit.record(1)])])  # type: ignore[attr-defined]


async def claim(kit: StoreKit) -> None:
    await kit.store.claim(ClaimRequest(worker="w", ttl=1000))


async def extend(kit: StoreKit) -> None:
    await kit.store.extend([kit.lease], 1000)  # type: ignore[attr-defined]


async def send(kit: StoreKit) -> None:
    await kit.store.send(kit.lease.run, "note", b"{}")  # type: ignore[attr-defined]


WRITES = [create, settle, settle_now, claim, extend, send]


@pytest.mark.covers("SAFE-STORE-01")
@pytest.mark.parametrize("write", WRITES, ids=lambda each: each.__name__)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda each: each.__name__)
async def test_write_is_not_acknowledged_when_the_file_is_not_in_its_place(
    tmp_path: Path, fault: Callable[[Path], None], write: Callable[..., object]
) -> None:
    (tmp_path / "here").mkdir()
    file = tmp_path / "here" / "h.db"

    async def opened(clock: object) -> Store:
        return await open_store(str(file), clock=clock)  # type: ignore[arg-type]

    kit = StoreKit(opened)
    await kit.start()
    try:
        kit.lease = await kit.claimed()  # type: ignore[attr-defined]
        await kit.created()
        fault(file)
        with pytest.raises(StoreReplacedError, match="while this process used it") as caught:
            await write(kit)  # type: ignore[misc]
        assert (caught.value.code, caught.value.status) == ("store_replaced", 503)
    finally:
        await kit.stop()


def no_statx(*_given: object, **_named: object) -> object:
    raise OSError("no C library to load")


@pytest.mark.covers("SAFE-STORE-01")
@pytest.mark.parametrize("fault", FAULTS[:-2], ids=lambda each: each.__name__)  # these need real files
async def test_file_that_is_not_in_its_place_is_noticed_without_statx_too(
    tmp_path: Path, fault: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctypes.CDLL", no_statx)
    (tmp_path / "here").mkdir()
    file = tmp_path / "here" / "h.db"
    for each in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
        each.write_bytes(LOG_BEGINS[0])
    identity = FileIdentity(str(file))
    identity.check_error(apsw.CorruptError("malformed"))
    fault(file)
    with pytest.raises(StoreReplacedError):
        identity.check_error(apsw.CorruptError("malformed"))
    identity.close()


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "statx"), reason="the C library has no statx")
def test_check_asks_for_no_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux gives a file whose times were asked for a new one with each write, and a flush takes longer."""
    file, log = tmp_path / "h.db", tmp_path / "h.db-wal"
    file.write_bytes(b"some")
    log.write_bytes(b"more")
    Path(f"{file}-shm").touch()
    identity = FileIdentity(str(file))
    with monkeypatch.context() as patch:
        patch.setattr("os.stat", None)
        identity.check()
    identity.close()
    assert identity.log_size == 4
    assert identity._file == (os.major(file.stat().st_dev), os.minor(file.stat().st_dev), file.stat().st_ino)


@pytest.mark.covers("SAFE-STORE-01")
async def test_log_that_a_checkpoint_of_another_process_emptied_is_written_anew(tmp_path: Path) -> None:
    file = tmp_path / "h.db"
    kit = StoreKit(lambda clock: open_store(str(file), clock=clock))
    await kit.start()
    try:
        await kit.created()
        for write in (create, create, claim):
            with contextlib.closing(apsw.Connection(str(file))) as other:
                other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            assert log_size(file) == 0
            await write(kit)
    finally:
        await kit.stop()


@pytest.mark.covers("SAFE-STORE-01")
async def test_checkpoint_between_a_commit_and_its_check_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, check, emptied = tmp_path / "h.db", FileIdentity.check_files, list[int]()

    def check_late(identity: FileIdentity) -> None:
        if not emptied:
            with contextlib.closing(apsw.Connection(str(file))) as other:
                other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            emptied.append(log_size(file))
        check(identity)

    kit = StoreKit(lambda clock: open_store(str(file), clock=clock))
    await kit.start()
    try:
        await kit.created()
        monkeypatch.setattr(FileIdentity, "check_files", check_late)
        await kit.created()
        assert emptied == [0]
    finally:
        await kit.stop()


@pytest.mark.covers("SAFE-STORE-01")
async def test_store_whose_log_was_emptied_keeps_what_its_file_has(tmp_path: Path) -> None:
    """SQLite takes the zeros in the log for pages; written back, they would damage the file."""
    file = tmp_path / "h.db"
    await with_history(file, runs=3)
    kit = StoreKit(lambda clock: open_store(str(file), clock=clock))
    await kit.start()
    for _ in range(5):
        await kit.created()
    log_emptied(file)
    with pytest.raises(StoreReplacedError, match="wal was emptied"):
        await kit.created()
    with pytest.raises(StoreReplacedError, match="wal was emptied"):
        await kit.created()
    await kit.stop()
    with contextlib.closing(apsw.Connection(str(file))) as other:
        assert other.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert other.execute("SELECT count(*) FROM runs").fetchall() == [(3,)]


WRITES_ON: Final = """
import sys, apsw
other = apsw.Connection(sys.argv[1])
other.execute("UPDATE runs SET priority = priority")
print("wrote", flush=True)
sys.stdin.read()
"""


@pytest.mark.covers("SAFE-STORE-01")
async def test_process_whose_index_of_the_log_was_removed_writes_nothing_over_that_of_another(
    tmp_path: Path,
) -> None:
    """The index has the locks: by two of them, both write to the same places of the log."""
    file = tmp_path / "h.db"
    kit = StoreKit(lambda clock: open_store(str(file), clock=clock))
    await kit.start()
    for _ in range(5):
        await kit.created()
    index_removed(file)
    command = [sys.executable, "-c", WRITES_ON, str(file)]
    async with await anyio.open_process(command) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert (await other.stdout.receive()).startswith(b"wrote")
        for _ in range(5):
            with pytest.raises(StoreReplacedError, match="shm was replaced"):
                await kit.created()
        await kit.stop()
        await other.stdin.aclose()
        await other.wait()
    with contextlib.closing(apsw.Connection(str(file))) as found:
        assert found.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert found.execute("SELECT count(*) FROM runs").fetchall() == [(5,)]


@pytest.mark.covers("SAFE-STORE-01")
async def test_file_and_log_may_become_shorter(tmp_path: Path) -> None:
    file = tmp_path / "h.db"
    await with_history(file, runs=200)
    kit = StoreKit(lambda clock: open_store(str(file), clock=clock))
    await kit.start()
    try:
        await kit.created()
        before = file.stat().st_size
        with contextlib.closing(apsw.Connection(str(file))) as other:
            other.execute("DELETE FROM events; DELETE FROM journal; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
        assert file.stat().st_size < before
        for _ in range(3):
            await kit.created()
    finally:
        await kit.stop()


@pytest.mark.covers("SAFE-STORE-01")
@pytest.mark.parametrize("fault", FAULTS, ids=lambda each: each.__name__)
async def test_file_that_is_opened_by_a_link_is_noticed_as_well(
    tmp_path: Path, fault: Callable[[Path], None]
) -> None:
    (tmp_path / "here").mkdir()
    file, link = tmp_path / "here" / "h.db", tmp_path / "link.db"
    await with_history(file)
    link.symlink_to(file)
    kit = StoreKit(lambda clock: open_store(str(link), clock=clock))
    await kit.start()
    try:
        await kit.created()
        fault(file)
        with pytest.raises(StoreReplacedError):
            await kit.created()
    finally:
        await kit.stop()


@pytest.mark.covers("SAFE-STORE-01")
async def test_link_that_names_another_file_is_noticed(tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    for each in ("old", "new"):
        await with_history(tmp_path / f"{each}.db")
    link.symlink_to(tmp_path / "old.db")
    kit = StoreKit(lambda clock: open_store(str(link), clock=clock))
    await kit.start()
    try:
        await kit.created()
        link.unlink()
        link.symlink_to(tmp_path / "new.db")
        with pytest.raises(StoreReplacedError, match="replaced by another"):
            await kit.created()
    finally:
        await kit.stop()


async def test_large_values_are_found_by_a_link_and_by_the_file(tmp_path: Path) -> None:
    file, link = tmp_path / "h.db", tmp_path / "link.db"
    await with_history(file)
    link.symlink_to(file)
    for first, second in ((link, file), (file, link)):
        async with Holdfast(f"sqlite:{first}") as hf:
            run = await one_step().run({"text": os.urandom(3 << 20).hex()}, on=hf)
        async with Holdfast(f"sqlite:{second}") as hf:
            found = await (await hf.service()).latest(run.run_id)
            assert found.state == run.state


async def test_handler_may_change_the_folder_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    flow = Flow("f", effect="pure")

    @flow.node
    async def first(s: dict) -> dict:
        os.chdir(tmp_path / "other")
        return {}

    @flow.node
    async def second(s: dict) -> dict:
        return {"text": os.urandom(3 << 20).hex()}

    flow.edge(first, second)
    async with Holdfast("sqlite:h.db") as hf:
        assert (await flow.run({}, on=hf)).status == "completed"
    assert list((tmp_path / "other").iterdir()) == []
    assert (tmp_path / "h.db-blobs").is_dir()


@pytest.mark.covers("SAFE-STORE-01")
@pytest.mark.parametrize("fault", [removed, log_emptied], ids=lambda each: each.__name__)
async def test_worker_stops_when_its_file_is_gone(tmp_path: Path, fault: Callable[[Path], None]) -> None:
    flow, file = one_step(), tmp_path / "h.db"
    async with Holdfast(f"sqlite:{file}") as hf:
        service = await hf.service()
        worker = Worker(flow, on=hf, poll=0.01)
        await worker.run_until_idle()
        fault(file)
        with pytest.raises(StoreReplacedError):
            await service.create(flow.program(), {})
        with pytest.raises(StoreReplacedError):
            await worker.serve()


# ---------------------------------------------------------------------- while no process had it open


def one_step() -> Flow:
    flow = Flow("f", effect="pure")

    @flow.node
    async def node(s: dict) -> dict:
        return {}

    return flow


async def with_history(file: Path, runs: int = 1) -> None:
    flow = one_step()
    async with Holdfast(f"sqlite:{file}") as hf:
        for _ in range(runs):
            await flow.run({}, on=hf)


def older_backup(file: Path) -> None:
    shutil.copy(file.with_suffix(".backup"), file)


@pytest.mark.covers("SAFE-STORE-02")
@pytest.mark.parametrize("noticed_by", ["another process", "itself"])
async def test_worker_stops_when_an_older_backup_is_copied_into_its_file(
    tmp_path: Path, noticed_by: str
) -> None:
    """Everything was in the file, nothing in its log."""
    file = tmp_path / "h.db"
    await with_history(file)
    shutil.copy(file, file.with_suffix(".backup"))
    await with_history(file, runs=2)
    async with Holdfast(f"sqlite:{file}") as hf:
        worker = Worker(one_step(), on=hf)
        store = await hf.open()
        if noticed_by == "itself":
            store._save_mark()
            mark_of(file).unlink()
        with contextlib.closing(apsw.Connection(str(file))) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        older_backup(file)
        with pytest.raises(StoreReplacedError, match="was overwritten"):
            async with asyncio.timeout(HANG):
                await worker.serve()
    if noticed_by == "another process":
        assert (await findings(f"sqlite:{file}"))["file"]["state"] == "fail"


def emptied_while_closed(file: Path) -> None:
    os.truncate(file, 0)


def other_store(file: Path) -> None:
    shutil.copy(file.with_suffix(".other"), file)


@pytest.mark.covers("SAFE-STORE-02")
@pytest.mark.parametrize("fault", [older_backup, emptied_while_closed, other_store], ids=lambda f: f.__name__)
async def test_doctor_says_that_the_file_went_back_until_its_mark_is_deleted(
    tmp_path: Path, fault: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "h.db"
    await with_history(file)
    shutil.copy(file, file.with_suffix(".backup"))
    await with_history(file)
    await with_history(tmp_path / "other.db", runs=9)
    shutil.copy(tmp_path / "other.db", file.with_suffix(".other"))
    assert (await findings(f"sqlite:{file}"))["file"]["state"] == "ok"
    fault(file)
    for _twice in range(2):
        found = (await findings(f"sqlite:{file}"))["file"]
        assert found["state"] == "fail"
        assert "h.db-mark" in found["todo"]
    assert "went back" in caplog.text
    mark_of(file).unlink()
    assert (await findings(f"sqlite:{file}"))["file"]["state"] == "ok"


@pytest.mark.covers("SAFE-STORE-02")
async def test_doctor_says_that_a_write_ahead_log_was_deleted_after_a_crash(tmp_path: Path) -> None:
    """The process died: its last commits were in the log alone."""
    live, file = tmp_path / "live.db", tmp_path / "h.db"
    await with_history(live)
    store = await open_store(str(live))
    kit = StoreKit(lambda _clock: _given(store))
    await kit.start()
    await kit.created()
    store._save_mark()  # as a worker does with each heartbeat
    for ending in ("", "-mark"):  # what is left of it without its log
        shutil.copy(f"{live}{ending}", f"{file}{ending}")
    await store.close()
    found = (await findings(f"sqlite:{file}"))["file"]
    assert (found["state"], "had 2 before" in found["said"]) == ("fail", True)


async def _given(store: Store) -> Store:
    return store


@pytest.mark.covers("SAFE-STORE-02")
async def test_file_that_was_deleted_on_purpose_begins_anew(tmp_path: Path) -> None:
    file = tmp_path / "h.db"
    await with_history(file, runs=3)
    file.unlink()
    await with_history(file)
    assert (await findings(f"sqlite:{file}"))["file"]["state"] == "ok"
    mark = json.loads(mark_of(file).read_bytes())
    assert mark["position"]["runs"] == 1


async def test_store_opens_where_no_mark_can_be_written_or_read(tmp_path: Path) -> None:
    file = tmp_path / "h.db"
    mark_of(file).mkdir()
    await with_history(file)
    assert (await findings(f"sqlite:{file}"))["file"]["state"] == "ok"
