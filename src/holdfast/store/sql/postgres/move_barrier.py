"""Keeps writers away from a schema that is being moved: triggers, which cost nothing while there are none.

Creating one waits for the transactions that write to its table, and every later writer meets it, in any
session and from any version: so everything acknowledged is there, and nothing is added after it.
"""

from __future__ import annotations

from holdfast.store.copy import NOT_COPIED, MoveMark, MovePhase, require_state
from holdfast.store.sql.postgres.connect import PostgresConnection, statement

# `busy` is true only inside the transactions that fill the schema: no other transaction ever sees it.
_MAKE = (
    """
CREATE TABLE IF NOT EXISTS @moved (
    state text NOT NULL,
    token text NOT NULL,
    peer text NOT NULL,
    at bigint NOT NULL,
    anew boolean NOT NULL,
    busy boolean NOT NULL DEFAULT false
)""",
    """
CREATE TABLE IF NOT EXISTS @moved_tables (
    name text COLLATE "C" PRIMARY KEY,
    after bytea,
    rows bigint NOT NULL,
    done boolean NOT NULL
)""",
    """
CREATE OR REPLACE FUNCTION @moved() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    mark record;
BEGIN
    SELECT state, peer, busy INTO mark FROM @moved;
    IF mark.busy THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'holdfast-move % %', mark.state, mark.peer USING ERRCODE = 'check_violation';
END
$$""",
)
_TABLES = """
SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = ? AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY c.relname COLLATE "C\""""
_TRIGGERS = """
SELECT t.tgname, c.relname FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = ? AND NOT t.tgisinternal AND NOT c.relispartition
AND t.tgname IN ('moved', 'moved_claims', 'moved_starts', 'moved_presence')"""
_UNGUARDED = frozenset(NOT_COPIED) - {"workers"}
# No worker can claim a run. A worker without work gets the error when it renews its registration.
_CLAIMS = (
    """
CREATE TRIGGER moved_claims BEFORE UPDATE OF worker ON @runs FOR EACH ROW
WHEN (NEW.worker IS NOT NULL AND (OLD.worker IS NULL OR OLD.term <> NEW.term)) EXECUTE FUNCTION @moved()""",
    """
CREATE TRIGGER moved_starts BEFORE INSERT ON @runs FOR EACH ROW
WHEN (NEW.worker IS NOT NULL) EXECUTE FUNCTION @moved()""",
    """
CREATE TRIGGER moved_presence BEFORE INSERT OR UPDATE ON @workers FOR EACH STATEMENT
EXECUTE FUNCTION @moved()""",
)
_GUARD = """
CREATE TRIGGER moved BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON @{table}
FOR EACH STATEMENT EXECUTE FUNCTION @moved()"""
# A run that is taken away from its worker by a move does not count as a death.
_FENCE = """
UPDATE @runs SET term = term + 1, worker = NULL, lease_until = NULL, ready_at = @now(NULL),
                 updated_at = @now(NULL),
                 status = CASE WHEN status IN ('pending', 'waiting', 'pending_input') THEN status
                               ELSE 'resumable' END
WHERE lease_until > @now(NULL)"""


async def tables(conn: PostgresConnection) -> list[str]:
    return [name for (name,) in await conn.rows(_TABLES, conn.schema)]


async def read_mark(conn: PostgresConnection) -> MoveMark | None:
    if "moved" not in await tables(conn):
        return None
    found = await conn.row("SELECT state, token, peer, at, anew FROM @moved")
    if found is None:
        return None
    state, token, peer, at, anew = found
    return MoveMark(state=state, token=token, peer=peer, at=at, anew=anew)


async def write_mark(conn: PostgresConnection, mark: MoveMark) -> None:
    for sql in _MAKE:
        await conn.run(sql)
    await conn.run("DELETE FROM @moved")
    await conn.run(
        "INSERT INTO @moved (state, token, peer, at, anew) VALUES (?, ?, ?, ?, ?)",
        mark.state, mark.token, mark.peer, mark.at, mark.anew,
    )  # fmt: skip


async def set_state(conn: PostgresConnection, state: MovePhase) -> None:
    await conn.run("UPDATE @moved SET state = ?", state)


async def lock(conn: PostgresConnection) -> None:
    """All tables at once, in one order: waits for running writers."""
    names = [f"@{table}" for table in await tables(conn) if table not in _UNGUARDED]
    await conn.raw.execute(
        statement(f"LOCK TABLE {', '.join(names)} IN SHARE ROW EXCLUSIVE MODE", conn.schema)
    )


async def stop_claims(conn: PostgresConnection, mark: MoveMark) -> None:
    require_state(await read_mark(conn), None)
    await write_mark(conn, mark)
    await unguard(conn)
    for sql in _CLAIMS:
        await conn.run(sql)


async def fence(conn: PostgresConnection) -> None:
    await conn.run(_FENCE)


async def guard(conn: PostgresConnection) -> None:
    """Every table refuses every change; on a target, those of other processes."""
    await unguard(conn)
    for table in await tables(conn):
        if table not in _UNGUARDED:
            await conn.run(_GUARD.format(table=table))


async def unguard(conn: PostgresConnection) -> None:
    for name, table in await conn.rows(_TRIGGERS, conn.schema):
        await conn.run(f"DROP TRIGGER {name} ON @{table}")


async def forget(conn: PostgresConnection) -> None:
    await unguard(conn)
    await conn.run("DROP FUNCTION IF EXISTS @moved()")
    await conn.run("DROP TABLE IF EXISTS @moved")
    await conn.run("DROP TABLE IF EXISTS @moved_tables")


async def clear(conn: PostgresConnection) -> None:
    """Deletes every row, of the audit too: it is a copy that was never in use. What the schema records about
    itself (its migrations, the servers that it was found on) stays."""
    require_state(await read_mark(conn), "filling")
    await unguard(conn)
    await conn.run("ALTER TABLE @audit DISABLE TRIGGER USER")
    names = [f"@{table}" for table in await tables(conn) if table not in _UNGUARDED]
    # Independent of the number of rows: it takes moments, within the statement timeout.
    await conn.run(f"TRUNCATE {', '.join(names)}")
    await conn.run("ALTER TABLE @audit ENABLE TRIGGER USER")
    await forget(conn)
