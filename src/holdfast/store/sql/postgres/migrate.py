"""Makes a schema ours, and brings it to the newest form; leaves schemas that are not ours untouched."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from zlib import crc32

import msgspec

from holdfast.errors import NotAStoreError, SchemaTooNewError
from holdfast.store.sql.postgres.connect import Conn, statement

OLDEST_SERVER = 150000

_PRESENT = "SELECT 1 FROM pg_tables WHERE schemaname = ? AND tablename = 'migrations'"
_ANY = "SELECT 1 FROM pg_tables WHERE schemaname = ? LIMIT 1"
_EXISTS = "SELECT 1 FROM pg_namespace WHERE nspname = ?"
_NEWEST = "SELECT coalesce(max(number), 0) FROM @migrations"
_NOTE = "INSERT INTO @migrations (number, name, applied_at) VALUES (?, ?, @now(NULL))"


class Migration(msgspec.Struct, frozen=True):
    number: int
    name: str
    sql: str


def migrations() -> list[Migration]:
    """The numbered files of schema/, in order."""
    return sorted(_read_migrations(), key=lambda m: m.number)


def _read_migrations() -> Iterator[Migration]:
    for file in resources.files("holdfast.store.sql.postgres").joinpath("schema").iterdir():
        if file.name.endswith(".sql"):
            number, _, name = file.name.removesuffix(".sql").partition("_")
            yield Migration(int(number), name, file.read_text("utf-8"))


async def schema_number(conn: Conn, where: str) -> int:
    """Of the newest migration there; 0 for a new schema.

    Raises NotAStoreError for one with tables of somebody else, and SchemaTooNewError."""
    if await conn.row(_PRESENT, conn.schema) is None:
        if await conn.row(_ANY, conn.schema) is not None:
            raise _foreign(conn.schema, where)
        return 0
    found = await conn.row(_NEWEST)
    number = 0 if found is None else int(found[0])
    newest = migrations()[-1].number
    if number > newest:
        raise SchemaTooNewError(
            f"The schema {conn.schema} of {where} has number {number}, this version of Holdfast knows those "
            f"up to {newest}.",
            hint="Update Holdfast here; the database was left as it is.",
        )
    return number


async def migrate(conn: Conn, where: str) -> None:
    """Inside one transaction, under a lock that others who open the store wait for: whoever comes second
    finds everything done."""
    await conn.run("SELECT pg_advisory_xact_lock(?)", _lock_number(conn.schema))
    present = await schema_number(conn, where)
    if await conn.row(_EXISTS, conn.schema) is None:
        await conn.raw.execute(f'CREATE SCHEMA "{conn.schema}"')
    for migration in migrations()[present:]:
        await conn.raw.execute(statement(migration.sql, conn.schema))
        await conn.run(_NOTE, migration.number, migration.name)


def _lock_number(schema: str) -> int:
    return 0x48464442 << 32 | crc32(schema.encode())


def _foreign(schema: str, where: str) -> NotAStoreError:
    return NotAStoreError(
        f"The schema {schema} of {where} has tables that are not Holdfast's; it was left as it is.",
        hint="Give another one with ?schema=, or an empty database.",
    )
