from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import NotAStoreError, SchemaTooNewError, SettingsError, StoreUnavailableError
from holdfast.store.memory import MemoryStore
from holdfast.store.open import open_store
from holdfast.store.sql.sqlite import SqliteStore
from holdfast.store.sql.sqlite.migrate import migrations
from tests.unit.store.sqlite_files import names, plain, pragma

pytestmark = pytest.mark.anyio


async def test_memory_store_opens_when_its_address_is_given() -> None:
    assert isinstance(await open_store("memory:"), MemoryStore)


@pytest.mark.parametrize("form", ["sqlite:{}/runs.file", "{}/runs.db", "sqlite:{}/runs.db?sync=normal"])
async def test_sqlite_store_opens_when_a_path_is_given(tmp_path: Path, form: str) -> None:
    store = await open_store(form.format(tmp_path))
    assert isinstance(store, SqliteStore)
    await store.close()


@pytest.mark.parametrize(
    "address", ["", "runs", "mysql://x", "sqlite:", "sqlite::memory:", "memory", "c:runs.db", "memory:x"]
)
async def test_address_that_means_nothing_is_refused_with_the_forms(address: str) -> None:
    with pytest.raises(SettingsError, match=r"sqlite:PATH\?sync=normal"):
        await open_store(address)


@pytest.mark.parametrize(
    "query", ["sync=off", "sync=", "fsync=1", "busy_timeout=soon", "busy_timeout=-1", "path=x"]
)
async def test_setting_that_means_nothing_is_refused_before_a_file_is_made(
    tmp_path: Path, query: str
) -> None:
    with pytest.raises(SettingsError):
        await open_store(f"sqlite:{tmp_path}/runs.db?{query}")
    assert names(tmp_path) == []


async def test_memory_store_refuses_settings() -> None:
    with pytest.raises(SettingsError, match="sync"):
        await open_store("memory:", sync="normal")


@pytest.mark.parametrize(
    ("form", "level"), [("sqlite:{}", 2), ("sqlite:{}?sync=normal", 1), ("sqlite:{}?sync=full", 2)]
)
@pytest.mark.covers("CORE-STORE-04", "D-11")
async def test_commits_are_flushed_as_the_address_says(tmp_path: Path, form: str, level: int) -> None:
    store = await open_store(form.format(tmp_path / "runs.db"))
    assert isinstance(store, SqliteStore)
    assert store._writer.read_if_idle(lambda cur: cur.execute("PRAGMA synchronous").fetchall()) == [(level,)]
    await store.close()
    assert pragma(tmp_path / "runs.db", "journal_mode") == "wal"


@pytest.mark.covers("RS-MORE-3", "RS-DB-1")
@pytest.mark.parametrize("content", [b"hello", b"x" * 5000, b"SQLite format 3\0", b"\0" * 4096])
async def test_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "notes.db"
    file.write_bytes(content)
    with pytest.raises(NotAStoreError, match=r"notes\.db"):
        await open_store(str(file))
    assert file.read_bytes() == content
    assert names(tmp_path) == ["notes.db"]


@pytest.mark.parametrize("number", [0, 1, 7])
@pytest.mark.parametrize("mode", ["delete", "wal"])
async def test_database_of_somebody_else_is_refused_and_left_as_it_is(
    tmp_path: Path, mode: str, number: int
) -> None:
    file = tmp_path / "other.db"
    with plain(file) as conn:
        conn.execute(f"PRAGMA journal_mode = {mode}").fetchall()
        conn.execute("CREATE TABLE runs (id TEXT)")
        conn.execute(f"PRAGMA user_version = {number}")
    before = file.read_bytes()
    with pytest.raises(NotAStoreError):
        await open_store(str(file))
    assert file.read_bytes() == before


@pytest.mark.covers("R-40")
async def test_newer_schema_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    await (await open_store(str(file))).close()
    with plain(file) as conn:
        conn.execute("PRAGMA user_version = 999")
    before = file.read_bytes()
    with pytest.raises(SchemaTooNewError, match="999"):
        await open_store(str(file))
    assert file.read_bytes() == before


async def test_empty_file_becomes_a_store(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    file.touch()
    await (await open_store(str(file))).close()
    assert pragma(file, "user_version") == len(migrations())


@pytest.mark.covers("RS-DB-1", "R-44")
@pytest.mark.parametrize("place", ["missing/runs.db", "folder.db"])
async def test_path_that_cannot_be_opened_is_named_with_what_to_do(tmp_path: Path, place: str) -> None:
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(StoreUnavailableError, match=f"{place}.* folder exists"):
        await open_store(str(tmp_path / place))


@pytest.mark.covers("RS-DB-3")
async def test_closed_store_says_so_when_it_is_used(tmp_path: Path) -> None:
    store = await open_store(str(tmp_path / "runs.db"))
    assert isinstance(store, SqliteStore)
    await store.close()
    await store.close()
    with pytest.raises(StoreUnavailableError, match="closed"):
        await store.flows()
    with pytest.raises(StoreUnavailableError, match="closed"):
        await store.condemn_blobs(older_than=0, limit=1)
    with pytest.raises(StoreUnavailableError, match="closed"):
        await store.settle([])
    with pytest.raises(StoreUnavailableError, match="closed"):
        store.settle_now([])
    with pytest.raises(StoreUnavailableError, match="closed"):
        store.extend_now([], 1)
