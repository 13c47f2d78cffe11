"""Creates a schema or migrates it to the newest form; does not touch schemas of other programs.

A schema in use gets the first halves of migrations, which only add: code of the last release keeps working
beside this one. Their numbers are in `halves` until the second halves have run (`finish`); older code reads
only `migrations`, and is refused from then on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from zlib import crc32

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from holdfast.errors import NotAStoreError, SchemaTooNewError, StoreBusyError, StoreUnavailableError
from holdfast.store.sql.postgres.address import PostgresSettings
from holdfast.store.sql.postgres.connect import PostgresConnection, statement
from holdfast.store.sql.postgres.migration_files import (
    RELEASED,
    WHOLE,
    MigrationState,
    PostgresMigration,
    concurrent_statements,
    creation_sql,
    index_of,
    migrations,
    transactional_sql,
)
from holdfast.store.sql.postgres.servers import PostgresServers
from holdfast.store.sql.postgres.session import IDLE
from holdfast.telemetry import log

__all__ = [
    "OLDEST_SERVER",
    "MigrationState",
    "PostgresMigration",
    "bring_up",
    "finish",
    "migration_state",
    "migrations",
]

OLDEST_SERVER = 150000

LOCK_TIMEOUT = 1.0
"""Seconds that a change waits for a lock on a table: later statements wait behind it. Then it gives up for a
while."""
MAX_WAIT = 60.0
"""Seconds over which it is retried."""
_QUIET = 2.0
_BUILDING = 86_400.0  # seconds for one index

_THERE = "SELECT tablename FROM pg_tables WHERE schemaname = ?"
_EXISTS = "SELECT 1 FROM pg_namespace WHERE nspname = ?"
_NEWEST = "SELECT coalesce(max(number), 0) FROM @migrations"
_BEGUN = "SELECT number, whole FROM @halves ORDER BY number"
_NOTE = "INSERT INTO @migrations (number, name, applied_at) VALUES (?, ?, @now(NULL))"
_HALVES = """
CREATE TABLE IF NOT EXISTS @halves (
    number bigint PRIMARY KEY,
    name text NOT NULL,
    applied_at bigint NOT NULL,
    -- False while an index of it is still to be built.
    whole boolean NOT NULL
)"""
_NOTE_HALF = "INSERT INTO @halves (number, name, applied_at, whole) VALUES (?, ?, @now(NULL), ?)"
_VALID = """
SELECT i.indisvalid FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = ? AND c.relname = ?"""
# Never the form that waits: a waiting statement has a snapshot, and building an index waits for all
# snapshots.
_TAKE = "SELECT pg_try_advisory_xact_lock(?)"


async def migration_state(conn: PostgresConnection, where: str) -> MigrationState:
    """The state of the schema; all zero for a new one. Raises NotAStoreError for a schema with tables of
    another program, and SchemaTooNewError."""
    there = {name for (name,) in await conn.rows(_THERE, conn.schema)}
    if "migrations" not in there:
        if there:
            raise _foreign(conn.schema, where)
        return MigrationState()
    found = await conn.row(_NEWEST)
    number = 0 if found is None else int(found[0])
    newest = migrations()[-1].number
    if number > newest:
        raise SchemaTooNewError(
            f"the schema {conn.schema} of {where} has number {number}; this version of Holdfast "
            f"knows numbers up to {newest}.",
            hint="Update Holdfast here. The database was not changed.",
        )
    rows = await conn.rows(_BEGUN) if "halves" in there else []
    building = tuple(n for n, whole in rows if not whole and n <= newest)
    return MigrationState(number, tuple(n for n, _ in rows), building)


async def bring_up(settings: PostgresSettings, conn: PostgresConnection) -> MigrationState:
    """Create the schema, or add what this version needs; one process at a time, a second one finds everything
    done. Never waits long for a lock on a table, so that a running fleet is not stopped; retried for a
    minute, then raises StoreBusyError."""
    now = await migration_state(conn, settings.shown)
    newest = migrations()[-1].number
    if now.expanded < newest or now.building:
        _refuse_unfinished(now, settings)
        try:
            await _one_at_a_time(settings, conn, _expand_next)
        except asyncpg.InsufficientPrivilegeError as error:
            if now.expanded == 0:
                raise
            raise StoreUnavailableError(
                f"the schema {conn.schema} of {settings.shown} has number {now.expanded}, this version of "
                f"Holdfast needs {newest}, and this user may not change it: {error}.",
                hint="Let the owner of its tables run `holdfast migrate` of this version, then start again.",
            ) from error
        now = await migration_state(conn, settings.shown)
    return now


async def finish(settings: PostgresSettings, conn: PostgresConnection) -> list[PostgresMigration]:
    """Run the second halves of what was begun; returns their numbers. The caller made sure that no older code
    is running: it is refused from now on."""
    before = set((await migration_state(conn, settings.shown)).begun)
    newest = migrations()[-1].number
    if any(number > newest for number in before):
        raise SchemaTooNewError(
            f"the upgrade of the schema {conn.schema} of {settings.shown} to {max(before)} was begun by a "
            f"newer version of Holdfast; this one knows numbers up to {newest}.",
            hint="Finish it with that version.",
        )
    await _one_at_a_time(settings, conn, _finish_next)
    after = set((await migration_state(conn, settings.shown)).begun)
    return [each for each in migrations() if each.number in before - after]


# ---------------------------------------------------------------------- one after another

_Step = Callable[[PostgresSettings, PostgresConnection, Any], Awaitable[bool]]
"""Does the next change, inside a transaction that has the lock; False: nothing is left. Its last argument
runs statements outside of it."""


async def _one_at_a_time(settings: PostgresSettings, conn: PostgresConnection, step: _Step) -> None:
    began = time.monotonic()
    result = began
    while True:
        try:
            more = await _locked(settings, conn, step)
        except asyncpg.LockNotAvailableError as error:
            more, why = None, str(error)
            todo = "Look for long transactions (pg_stat_activity), then start again. No change is half done."
        else:
            why = "another process is changing it"
            todo = "Start again when it is done: building an index may take long."
        if more is False:
            return
        if more is True:
            began = result = time.monotonic()
            continue
        waited = time.monotonic() - began
        if waited > MAX_WAIT:
            raise StoreBusyError(
                f"the schema {conn.schema} of {settings.shown} could not be migrated within "
                f"{MAX_WAIT:.0f} s: {why}.",
                hint=todo,
            )
        if time.monotonic() - result > _QUIET:
            result = time.monotonic()
            log.warning("waiting to change the schema %s for %.0f s: %s", conn.schema, waited, why)
        await asyncio.sleep(min(0.05 + waited / 10, LOCK_TIMEOUT))


async def _locked(settings: PostgresSettings, conn: PostgresConnection, step: _Step) -> bool | None:
    """None if another process has the lock."""
    raw: Any = conn.raw
    async with raw.transaction():
        await raw.execute(f"SET LOCAL lock_timeout = '{int(LOCK_TIMEOUT * 1000)}ms'")
        # The transaction is idle while an index is built outside, and the server may be set to end idle ones.
        await raw.execute(f"SET LOCAL {IDLE} = 0")
        found = await conn.row(_TAKE, _lock_number(conn.schema))
        if found is None or not found[0]:
            return None
        return await step(settings, conn, _Outside(settings, conn))


async def _expand_next(settings: PostgresSettings, conn: PostgresConnection, outside: _Outside) -> bool:
    present = await migration_state(conn, settings.shown)
    known = migrations()
    if present.expanded == 0:
        await _create(conn, known)
        return False
    if present.building:
        (half,) = [each for each in known if each.number == present.building[0]]
        await outside.run(concurrent_statements(half.sql))
        await conn.run("UPDATE @halves SET whole = true WHERE number = ?", half.number)
        return True
    left = [each for each in known if each.number > present.expanded]
    if not left:
        return False
    log.info("migrating the schema %s from %d to %d", conn.schema, present.expanded, left[0].number)
    await _expand(conn, left[0])
    return True


async def _create(conn: PostgresConnection, known: Sequence[PostgresMigration]) -> None:
    if await conn.row(_EXISTS, conn.schema) is None:
        await conn.raw.execute(f'CREATE SCHEMA "{conn.schema}"')
    for each in known:
        await _execute(conn, creation_sql(each.sql))
        await _execute(conn, creation_sql(each.post))
        await conn.run(_NOTE, each.number, each.name)
    await _execute(conn, _HALVES)


async def _expand(conn: PostgresConnection, half: PostgresMigration) -> None:
    await _execute(conn, transactional_sql(half.sql))
    if half.number <= WHOLE:
        await conn.run(_NOTE, half.number, half.name)
        return
    await _execute(conn, _HALVES)
    await conn.run(_NOTE_HALF, half.number, half.name, not concurrent_statements(half.sql))


async def _finish_next(settings: PostgresSettings, conn: PostgresConnection, outside: _Outside) -> bool:
    present = await migration_state(conn, settings.shown)
    if not present.begun:
        return False
    (half,) = [each for each in migrations() if each.number == present.begun[0]]
    # Outside first: changes inside keep their locks until the end.
    await outside.run(concurrent_statements(half.post))
    await _execute(conn, transactional_sql(half.post))
    await conn.run(_NOTE, half.number, half.name)
    await conn.run("DELETE FROM @halves WHERE number = ?", half.number)
    return True


async def _execute(conn: PostgresConnection, sql: str) -> None:
    # A text of comments only is not sent: asyncpg cannot read the reply to it.
    if any(line.strip() and not line.lstrip().startswith("--") for line in sql.splitlines()):
        await conn.raw.execute(statement(sql, conn.schema))


class _Outside:
    """Statements on a separate connection, while the transaction that has the lock stays open."""

    def __init__(self, settings: PostgresSettings, inside: PostgresConnection) -> None:
        self.settings = settings
        self.inside = inside

    async def run(self, statements: Sequence[str]) -> None:
        if not statements:
            return
        # What the driver fetched keeps its snapshot until the next statement; a plain one releases it.
        await self.inside.raw.execute("SELECT 1")
        raw = await PostgresServers(self.settings).connect(pooled=True)
        try:
            conn = PostgresConnection(raw, self.settings.schema)
            for text in statements:
                if await self._is_to_do(conn, text):
                    log.info("running outside a transaction: %s", text)
                    await raw.execute(statement(text, conn.schema), timeout=_BUILDING)
        finally:
            await raw.close(timeout=self.settings.timeout)

    async def _is_to_do(self, conn: PostgresConnection, text: str) -> bool:
        """An interrupted build leaves an invalid index behind."""
        name = index_of(text)
        found = None if name is None else await conn.row(_VALID, conn.schema, name)
        if found is not None and not found[0]:
            drop = f"DROP INDEX CONCURRENTLY IF EXISTS @{name}"
            await conn.raw.execute(statement(drop, conn.schema))
        return found is None or not found[0]


def _lock_number(schema: str) -> int:
    # One number for each schema: stores in the same database do not wait for each other's migrations.
    return 0x48464442 << 32 | crc32(schema.encode())


def _refuse_unfinished(now: MigrationState, settings: PostgresSettings) -> None:
    """Code of the release before the last may be running, and it was not tested with the next changes."""
    left = [number for number in now.begun if number <= RELEASED]
    if left:
        raise StoreUnavailableError(
            f"an earlier upgrade of the schema {settings.schema} of {settings.shown} is not finished "
            f"(number {left[0]}), and this version would add more.",
            hint="Run `holdfast migrate --finish` when no worker of the version before it is left.",
        )


def _foreign(schema: str, where: str) -> NotAStoreError:
    return NotAStoreError(
        f"the schema {schema} of {where} has tables of another program; it was not changed.",
        hint="Give another schema with ?schema=, or an empty database.",
    )
