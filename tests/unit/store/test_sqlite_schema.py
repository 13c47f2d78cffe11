from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from holdfast.store.open import open_store
from holdfast.store.sql.sqlite import migrate
from holdfast.store.sql.sqlite.connect import connect
from holdfast.types.status import RunStatus, may_follow
from tests.deadlines import HANG
from tests.unit.store.sqlite_files import plain, pragma

pytestmark = pytest.mark.anyio

SNAPSHOT = Path(__file__).with_name("sqlite_schema.sql")


async def _store_file(tmp_path: Path) -> Path:
    file = tmp_path / "runs.db"
    await (await open_store(str(file))).close()
    return file


def _schema(file: Path) -> str:
    with plain(file) as conn:
        statements = conn.execute(
            "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' "
            "ORDER BY type, name"
        ).fetchall()
    return "".join(f"{sql};\n\n" for (sql,) in statements)


@pytest.mark.covers("CORE-STORE-09")
async def test_schema_equals_the_snapshot_when_all_migrations_ran(tmp_path: Path) -> None:
    """After a change on purpose: a new migration, and `python -m tests.unit.store.test_sqlite_schema`."""
    assert _schema(await _store_file(tmp_path)) == SNAPSHOT.read_text("utf-8")


async def test_statements_are_compiled_once_whatever_is_bound_to_them(tmp_path: Path) -> None:
    """Otherwise SQLite makes new plans for many of them at every call, which takes longer than running."""
    conn = connect(migrate.SqliteSettings(path=str(await _store_file(tmp_path))))
    assert conn.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1) == 1
    conn.close()


async def test_each_migration_is_recorded_once_when_the_file_is_opened_again(tmp_path: Path) -> None:
    file = await _store_file(tmp_path)
    await (await open_store(str(file))).close()
    known = [(m.number, m.name) for m in migrate.migrations()]
    with plain(file) as conn:
        assert conn.execute("SELECT number, name FROM migrations ORDER BY number").fetchall() == known
    assert [number for number, _ in known] == list(range(1, len(known) + 1))
    assert pragma(file, "user_version") == len(known)


async def test_all_tables_are_strict(tmp_path: Path) -> None:
    with plain(await _store_file(tmp_path)) as conn:
        loose = conn.execute(
            "SELECT name FROM pragma_table_list WHERE type = 'table' AND NOT strict "
            "AND name NOT LIKE 'sqlite_%'"
        )
        assert loose.fetchall() == []


@pytest.mark.covers("CORE-WORK-12")
async def test_database_allows_the_transitions_of_the_table_and_no_other(tmp_path: Path) -> None:
    with plain(await _store_file(tmp_path)) as conn:
        for old, new in itertools.product(RunStatus, RunStatus):
            assert _change(conn, old, new) == may_follow(old, new), f"{old} to {new}"
        with pytest.raises(apsw.ConstraintError):
            conn.execute("UPDATE runs SET status = 'sleeping'")


def _change(conn: apsw.Connection, old: str, new: str) -> bool:
    run = f"{old}-{new}"
    conn.execute(
        "INSERT INTO runs (id, status, head, event_seq, updated_at, priority, lane, tenant, flow, version, "
        "code, created_at) VALUES (?, ?, 0, 0, 0, 0, '', '', '', '', '', 0)",
        (run, old),
    )
    try:
        conn.execute("UPDATE runs SET status = ? WHERE id = ?", (new, run))
    except apsw.ConstraintError:
        return False
    return True


async def test_migration_that_fails_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = migrate.migrations()
    bad = migrate.SqliteMigration(
        len(good) + 1, "bad", "CREATE TABLE half (x INTEGER); CREATE TABLE runs (x)"
    )
    file = await _store_file(tmp_path)
    before = _schema(file)
    monkeypatch.setattr(migrate, "migrations", lambda: [*good, bad])
    with pytest.raises(Exception, match="runs"):
        await open_store(str(file))
    assert (_schema(file), pragma(file, "user_version")) == (before, len(good))


async def test_later_migration_is_applied_to_a_file_of_today(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = migrate.migrations()
    more = migrate.SqliteMigration(len(good) + 1, "more", "CREATE TABLE more (x INTEGER) STRICT")
    file = await _store_file(tmp_path)
    monkeypatch.setattr(migrate, "migrations", lambda: [*good, more])
    await (await open_store(str(file))).close()
    assert "CREATE TABLE more" in _schema(file)
    assert pragma(file, "user_version") == more.number


async def test_store_opens_when_its_creator_died_before_wal_was_switched_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "runs.db"

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(migrate, "_switch_to_wal", die)
        with pytest.raises(KeyboardInterrupt):
            migrate.prepare(migrate.SqliteSettings(path=str(file)))
    assert pragma(file, "journal_mode") == "delete"
    await (await open_store(str(file))).close()
    assert pragma(file, "journal_mode") == "wal"


def test_one_schema_results_when_processes_create_the_file_at_once(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    script = (
        "import asyncio, sys; from holdfast.store.open import open_store\n"
        "async def main(): await (await open_store(sys.argv[1])).close()\n"
        "asyncio.run(main())"
    )
    creators = [subprocess.Popen([sys.executable, "-c", script, str(file)]) for _ in range(4)]
    assert [creator.wait(HANG) for creator in creators] == [0] * 4
    assert _schema(file) == SNAPSHOT.read_text("utf-8")


if __name__ == "__main__":
    import asyncio
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        SNAPSHOT.write_text(_schema(asyncio.run(_store_file(Path(folder)))), "utf-8")
