"""Stores that cannot be opened or written: a typed error, the file as it was, and all works afterwards."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import Flow, Holdfast, RunSettings
from holdfast.errors import (
    NotAStoreError,
    SchemaTooNewError,
    SettingsError,
    StoreBusyError,
    StoreFullError,
    StoreUnavailableError,
)
from holdfast.runs.recorder import recorder
from holdfast.runs.recorder.queue import RunQueue
from holdfast.store.rows import RunFilter
from holdfast.types.status import RunStatus
from tests.bad_input.conftest import assert_intact, good_flow
from tests.bad_input.messages import assert_refused
from tests.cli.conftest import Cli, given
from tests.deadlines import HANG
from tests.unit.store.sqlite_files import locked, names, plain, pragma

pytestmark = pytest.mark.anyio

QUICK = RunSettings(lease_ttl=0.3, lease_margin=0.1, poll=0.05)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that failed is not tried again for seconds."""
    monkeypatch.setattr(recorder, "RETRY_DELAYS", (0.01,))
    monkeypatch.setattr(RunQueue, "may_wait", lambda *_: False)


def two_steps(between: Callable[[], None], ran: list[str]) -> Flow:
    flow = Flow("two", effect="pure", mode="strict")

    async def first(_s: Any) -> dict[str, Any]:
        ran.append("first")
        return {"first": 1}

    async def second(_s: Any) -> dict[str, Any]:
        ran.append("second")
        between()
        return {"second": os.urandom(300_000)}

    flow.node(id="first")(first)
    flow.node(id="second")(second)
    flow.edge("first", "second")
    return flow


async def goes_on(flow: Flow, hf: Holdfast) -> None:
    """With the run that was interrupted, as soon as its lease has lapsed."""
    service = await hf.service()
    (row,) = await service.list(RunFilter(flow="two"))
    assert row.status is RunStatus.running
    await asyncio.sleep(0.35)
    result = await flow.resume(row.id, on=hf)
    assert result.completed
    assert len(result.state["second"]) == 300_000


@pytest.mark.covers("CORE-BAD-16", "CORE-BAD-20")
@pytest.mark.usefixtures("impatient")
async def test_run_stops_and_goes_on_later_when_the_disk_is_full(tmp_path: Path) -> None:
    file = tmp_path / "full.db"
    ran: list[str] = []
    async with Holdfast(f"sqlite:{file}", settings=QUICK) as hf:
        store: Any = await hf.open()
        conn = store._writer._conn
        full = lambda: conn.execute("PRAGMA max_page_count = 1")  # noqa: E731
        flow = two_steps(lambda: full() if ran.count("second") == 1 else None, ran)
        with pytest.raises(StoreFullError) as caught:
            await flow.run({}, on=hf)
        assert_refused(caught.value, str(file), "disk is full", "Free some space")
        with pytest.raises(StoreFullError):
            await good_flow().run({"n": os.urandom(200_000)}, on=hf)
        conn.execute("PRAGMA max_page_count = 1000000")
        await goes_on(flow, hf)
        assert ran == ["first", "second", "second"]
        await assert_intact(hf, file)


FULL = """
import resource, sys
from holdfast.runs.recorder import queue, recorder
from holdfast.cli.main import main
recorder.RETRY_DELAYS = ()
queue.RunQueue.may_wait = lambda *_: False
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
main(sys.argv[1:])
"""

LARGE = """
import os
from holdfast import Flow
large = Flow("large", effect="pure")
@large.node
async def grow(s):
    return {"data": [os.urandom(50_000) for _ in range(40)]}
"""


@pytest.mark.covers("CORE-BAD-16", "CORE-BAD-20")
def test_command_line_tells_that_the_disk_is_full_without_a_traceback(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "large.py").write_text(LARGE)
    env = {**os.environ, "HOLDFAST_LEASE": "300ms"}
    said = subprocess.run(
        [sys.executable, "-c", FULL, "run", "large.py", "--store", "sqlite:large.db"],
        cwd=tmp_path, env=env, capture_output=True, text=True, timeout=HANG, check=False,
    )  # fmt: skip
    assert (said.returncode, "Traceback" in said.stderr) == (4, False), said.stderr
    assert "disk is full" in said.stderr
    assert pragma(tmp_path / "large.db", "integrity_check") == "ok"
    assert cli("resume", run_in(tmp_path / "large.db"), "large.py", "--store", "sqlite:large.db").code == 0


def run_in(file: Path) -> str:
    with plain(file) as conn:
        ((run,),) = conn.execute("SELECT id FROM runs")
    return str(run)


@pytest.mark.covers("CORE-BAD-17", "CORE-BAD-20")
@pytest.mark.usefixtures("impatient")
async def test_nothing_is_begun_when_somebody_keeps_the_database_locked(tmp_path: Path) -> None:
    file = tmp_path / "locked.db"
    async with Holdfast(f"sqlite:{file}?busy_timeout=0.05") as hf:
        await assert_intact(hf, file)
        before = await (await hf.service()).list(RunFilter())
        with locked(file):
            with pytest.raises(StoreBusyError) as caught:
                await good_flow().run({"n": 1}, on=hf)
            assert_refused(caught.value, str(file), "locked", "Try again")
            assert caught.value.retryable
            assert await (await hf.service()).list(RunFilter()) == before
        await assert_intact(hf, file)


@pytest.mark.covers("CORE-BAD-17")
@pytest.mark.usefixtures("impatient")
async def test_run_stops_and_goes_on_later_when_the_database_is_locked_in_between(tmp_path: Path) -> None:
    file = tmp_path / "locked.db"
    ran: list[str] = []
    holder: list[Any] = []

    def lock() -> None:
        if ran.count("second") == 1:
            holder.append(locked(file))
            holder[0].__enter__()

    async with Holdfast(f"sqlite:{file}?busy_timeout=0.05", settings=QUICK) as hf:
        flow = two_steps(lock, ran)
        with pytest.raises(StoreBusyError):
            await flow.run({}, on=hf)
        holder[0].__exit__(None, None, None)
        await goes_on(flow, hf)
        assert ran == ["first", "second", "second"]
        await assert_intact(hf, file)


@pytest.mark.covers("CORE-BAD-17")
async def test_run_loses_nothing_when_the_database_is_locked_for_a_moment(tmp_path: Path) -> None:
    file = tmp_path / "locked.db"
    ran: list[str] = []
    async with Holdfast(f"sqlite:{file}?busy_timeout=0.02") as hf:

        def lock() -> None:
            other = locked(file)
            other.__enter__()
            asyncio.get_running_loop().call_later(0.1, other.__exit__, None, None, None)

        result = await two_steps(lock, ran).run({}, on=hf)
        assert result.completed
        assert ran == ["first", "second"]
        await assert_intact(hf, file)


@pytest.mark.covers("CORE-BAD-17")
def test_command_line_tells_that_the_database_is_locked(cli: Cli, refund: str, tmp_path: Path) -> None:
    store = ("--store", "sqlite:l.db?busy_timeout=0.05")
    assert cli("run", refund, "--input", given(80), *store).code == 0
    with locked(tmp_path / "l.db"):
        said = cli("run", refund, "--input", given(80), *store)
    assert (said.code, "Traceback" in said.err) == (4, False)
    assert "is locked by another process" in said.err
    assert cli("run", refund, "--input", given(80), *store).code == 0


NO_STORES: dict[str, bytes] = {
    "text": b"dear diary\n" * 500,
    "nearly": b"SQLite format 3\0" + b"\0" * 4080,
    "picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20,
}


@pytest.mark.covers("CORE-BAD-18", "CORE-BAD-20")
@pytest.mark.parametrize("content", list(NO_STORES))
async def test_file_is_left_as_it_is_when_it_is_no_database(tmp_path: Path, content: str) -> None:
    file = tmp_path / "diary.db"
    file.write_bytes(NO_STORES[content])
    async with Holdfast(f"sqlite:{file}") as hf:
        with pytest.raises(NotAStoreError) as caught:
            await good_flow().run({"n": 1}, on=hf)
    assert_refused(caught.value, "diary.db", "not a Holdfast database", "new file")
    assert file.read_bytes() == NO_STORES[content]
    assert names(tmp_path) == ["diary.db"]


@pytest.mark.covers("CORE-BAD-19", "CORE-BAD-20")
async def test_file_is_left_as_it_is_when_its_schema_is_newer(tmp_path: Path) -> None:
    file = tmp_path / "newer.db"
    async with Holdfast(f"sqlite:{file}") as hf:
        assert (await good_flow().run({"n": 1}, on=hf)).completed
    with plain(file) as conn:
        ((number,),) = conn.execute("PRAGMA user_version").fetchall()
        conn.execute("PRAGMA user_version = 99")
    before = file.read_bytes()
    async with Holdfast(f"sqlite:{file}") as hf:
        with pytest.raises(SchemaTooNewError) as caught:
            await good_flow().run({"n": 1}, on=hf)
    assert_refused(caught.value, "schema 99", "Update Holdfast")
    assert file.read_bytes() == before
    with plain(file) as conn:
        conn.execute(f"PRAGMA user_version = {number}")
    async with Holdfast(f"sqlite:{file}") as hf:
        await assert_intact(hf, file)


@pytest.mark.covers("CORE-BAD-18", "CORE-BAD-19")
def test_command_line_leaves_foreign_and_newer_files_alone(cli: Cli, refund: str, tmp_path: Path) -> None:
    diary, newer = tmp_path / "diary.db", tmp_path / "newer.db"
    diary.write_bytes(NO_STORES["text"])
    cli("run", refund, "--input", given(80), "--store", "sqlite:newer.db")
    with plain(newer) as conn:
        conn.execute("PRAGMA user_version = 99")
    for file, part in ((diary, "not a Holdfast database"), (newer, "Update Holdfast")):
        before = file.read_bytes()
        for words in (("runs",), ("run", refund, "--input", given(80)), ("show", "abcd"), ("resume", "abcd")):
            said = cli(*words, "--store", f"sqlite:{file.name}")
            assert (said.code, "Traceback" in said.err) == (4, False), said
            assert part in said.err
        assert file.read_bytes() == before


ADDRESSES = [
    "nonsense",
    "postgresql",
    "sqlite:",
    "sqlite::memory:",
    "memory:?x=1",
    "http://example.org/",
    "sqlite:a.db?sync=never",
]


@pytest.mark.parametrize("address", ADDRESSES)
async def test_address_is_refused_with_the_forms_when_it_means_nothing(address: str, tmp_path: Path) -> None:
    async with Holdfast(address) as hf:
        with pytest.raises(SettingsError) as caught:
            await good_flow().run({"n": 1}, on=hf)
    assert_refused(caught.value, "memory:", "sqlite:PATH")


@pytest.mark.parametrize("address", ["nonsense", "sqlite:"])
def test_environment_is_refused_with_the_forms_when_it_means_nothing(
    cli: Cli, refund: str, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("HOLDFAST_STORE", address)
    said = cli("run", refund, "--input", given(80))
    assert (said.code, "Traceback" in said.err) == (2, False)
    assert "sqlite:PATH" in said.err
    flow = good_flow()
    with pytest.raises(SettingsError):
        flow.run_sync({"n": 1}, on=Holdfast())


async def test_empty_environment_means_the_default_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_STORE", "")
    async with Holdfast() as hf:
        assert (await good_flow().run({"n": 1}, on=hf)).completed
    assert (tmp_path / ".holdfast" / "holdfast.db").exists()


async def test_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    async with Holdfast(f"sqlite:{tmp_path / 'file' / 'runs.db'}") as hf:
        with pytest.raises(StoreUnavailableError) as caught:
            await good_flow().run({"n": 1}, on=hf)
    assert_refused(caught.value, "runs.db", "address")


async def test_large_values_are_found_when_the_same_file_is_named_in_another_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = os.urandom(2_000_000)
    flow = Flow("keeper", effect="pure")
    flow.node(id="keep")(lambda s: {"data": data})
    flow.hold("approve", prompt="?", options=["yes"])
    flow.edge("keep", "approve")
    async with Holdfast("sqlite:keep.db") as hf:
        run = (await flow.run({}, on=hf)).run_id
    async with Holdfast("keep.db") as hf:
        service = await hf.service()
        await service.answer((await service.holds(run))[0].id, "yes")
        assert (await flow.resume(run, on=hf)).state["data"] == data
