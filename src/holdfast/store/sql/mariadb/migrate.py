"""Creates the tables or migrates them to the newest form; does not touch databases of other programs.

MariaDB commits each change of a table by itself. So every statement of a migration may be repeated, one
process at a time runs them (under a named lock of the server), and the number is noted after the last: a
process that dies in between leaves the rest to the next.
"""

from __future__ import annotations

import asyncio
import re
import time
from hashlib import sha256
from importlib import resources

import msgspec

from holdfast.errors import NotAStoreError, SchemaTooNewError, StoreBusyError
from holdfast.store.sql.mariadb.connect import MariadbConnection
from holdfast.telemetry import log

MAX_WAIT = 60.0
"""Seconds that a process waits for another that is changing the tables."""
_QUIET = 2.0

_TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = database()"
_NEWEST = "SELECT coalesce(max(number), 0) FROM @migrations"
_NOTE = """
INSERT INTO @migrations (number, name, applied_at) VALUES (?, ?, @now(NULL)) ON CONFLICT DO NOTHING"""
_END = re.compile(r";\n(?:\n|\Z)")
_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)


class MariadbMigration(msgspec.Struct, frozen=True):
    number: int
    name: str
    statements: tuple[str, ...]


def migrations() -> list[MariadbMigration]:
    """The numbered files of schema/, in order."""
    folder = resources.files("holdfast.store.sql.mariadb").joinpath("schema")
    found: list[MariadbMigration] = []
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".sql"):
            number, _, name = file.name.removesuffix(".sql").partition("_")
            found.append(MariadbMigration(int(number), name, _statements(file.read_text("utf-8"))))
    return found


def _statements(text: str) -> tuple[str, ...]:
    """A statement ends with a semicolon before an empty line."""
    parts = (_COMMENT.sub("", part).strip() for part in _END.split(text))
    return tuple(part for part in parts if part)


async def schema_number(conn: MariadbConnection, where: str) -> int:
    """The newest migration that is complete; 0 for an empty database. Raises NotAStoreError for a database
    with tables of another program, and SchemaTooNewError."""
    there = {name for (name,) in await conn.rows(_TABLES)}
    if "migrations" not in there:
        if there:
            raise NotAStoreError(
                f"the database {where} has tables of another program; it was not changed.",
                hint="Give an empty database.",
            )
        return 0
    found = await conn.row(_NEWEST)
    number = 0 if found is None else int(found[0])
    newest = migrations()[-1].number
    if number > newest:
        raise SchemaTooNewError(
            f"the schema of {where} has number {number}; this version of Holdfast knows numbers up to "
            f"{newest}.",
            hint="Update Holdfast here. The database was not changed.",
        )
    return number


async def bring_up(conn: MariadbConnection, where: str) -> None:
    """Create the tables, or add what this version needs. A second process waits, and finds everything done.
    Raises StoreBusyError after a minute."""
    if await schema_number(conn, where) >= migrations()[-1].number:
        return
    ((database,),) = await conn.rows("SELECT database()")
    lock = f"holdfast:{sha256(database.encode()).hexdigest()[:40]}"
    await _lock(conn, lock, where)
    try:
        number = await schema_number(conn, where)
        for each in migrations():
            if each.number > number:
                await _apply(conn, each)
    finally:
        # The session's end would release it too.
        await conn.row("SELECT RELEASE_LOCK(?)", lock)


async def _apply(conn: MariadbConnection, migration: MariadbMigration) -> None:
    if migration.number > 1:
        log.info("migrating the tables to %d (%s)", migration.number, migration.name)
    for text in migration.statements:
        await conn.send(text)
    await conn.run(_NOTE, migration.number, migration.name)


async def _lock(conn: MariadbConnection, name: str, where: str) -> None:
    began = logged = time.monotonic()
    while True:
        found = await conn.row("SELECT GET_LOCK(?, 1)", name)
        if found is not None and found[0] == 1:
            return
        waited = time.monotonic() - began
        if waited > MAX_WAIT:
            raise StoreBusyError(
                f"the database {where} could not be migrated within {MAX_WAIT:.0f} s: another process is "
                "changing it.",
                hint="Start again when it is done.",
            )
        if time.monotonic() - logged > _QUIET:
            logged = time.monotonic()
            log.warning("waiting for another process that changes the tables of %s", where)
        await asyncio.sleep(0.05)
