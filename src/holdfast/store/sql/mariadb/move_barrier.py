"""Keeps writers away from a database that is being moved: triggers, which cost nothing while there are none.

MariaDB changes one table at a time: all are locked meanwhile, and the mark names the new state only when the
last trigger is there. A process that dies in between is continued by the next.
"""

from __future__ import annotations

from holdfast.store.copy import NOT_COPIED, MoveMark, MovePhase, require_state
from holdfast.store.sql.mariadb.connect import MariadbConnection

# `busy` is true only inside the transactions that fill the database: no other transaction ever sees it.
_MAKE = (
    """
CREATE TABLE IF NOT EXISTS moved (
    state varchar(20) NOT NULL,
    token varchar(255) NOT NULL,
    peer varchar(1000) NOT NULL,
    at bigint NOT NULL,
    anew boolean NOT NULL,
    busy boolean NOT NULL DEFAULT false
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin""",
    """
CREATE TABLE IF NOT EXISTS moved_tables (
    name varchar(255) PRIMARY KEY,
    after longblob,
    `rows` bigint NOT NULL,
    done boolean NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin""",
)
_TABLES = """
SELECT table_name FROM information_schema.tables
WHERE table_schema = database() AND table_type = 'BASE TABLE' ORDER BY table_name"""
_TRIGGERS = """
SELECT trigger_name FROM information_schema.triggers
WHERE trigger_schema = database() AND trigger_name LIKE 'moved\\_%'"""
_UNGUARDED = frozenset(NOT_COPIED) - {"workers", "blob_parts"}
_REFUSE = """
    IF {when} AND (SELECT NOT busy FROM moved) THEN
        SET @message = (SELECT left(concat('holdfast-move ', state, ' ', peer), 500) FROM moved);
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = @message;
    END IF;"""
# No worker can claim a run. A worker without work gets the error when it renews its registration.
_CLAIMS = {
    ("UPDATE", "runs"): "NEW.worker IS NOT NULL AND (OLD.worker IS NULL OR OLD.term <> NEW.term)",
    ("INSERT", "runs"): "NEW.worker IS NOT NULL",
    ("INSERT", "workers"): "true",
    ("UPDATE", "workers"): "true",
}
_GUARD = (
    "CREATE OR REPLACE TRIGGER moved_{verb}_{table} BEFORE {verb} ON {table} FOR EACH ROW BEGIN{refuse} END"
)
# A run that is taken away from its worker by a move does not count as a death.
_FENCE = """
UPDATE @runs SET term = term + 1, worker = NULL, lease_until = NULL, ready_at = @now(NULL),
                 updated_at = @now(NULL),
                 status = CASE WHEN status IN ('pending', 'waiting', 'pending_input') THEN status
                               ELSE 'resumable' END
WHERE lease_until > @now(NULL)"""


async def tables(conn: MariadbConnection) -> list[str]:
    return [name for (name,) in await conn.rows(_TABLES)]


async def read_mark(conn: MariadbConnection) -> MoveMark | None:
    if "moved" not in await tables(conn):
        return None
    found = await conn.row("SELECT state, token, peer, at, anew FROM @moved")
    if found is None:
        return None
    state, token, peer, at, anew = found
    return MoveMark(state=state, token=token, peer=peer, at=at, anew=bool(anew))


async def make(conn: MariadbConnection) -> None:
    """The tables of a mark: before all are locked."""
    for sql in _MAKE:
        await conn.send(sql)


async def write_mark(conn: MariadbConnection, mark: MoveMark) -> None:
    await conn.run("DELETE FROM @moved")
    await conn.run(
        "INSERT INTO @moved (state, token, peer, at, anew) VALUES (?, ?, ?, ?, ?)",
        mark.state, mark.token, mark.peer, mark.at, mark.anew,
    )  # fmt: skip


async def set_state(conn: MariadbConnection, state: MovePhase) -> None:
    await conn.run("UPDATE @moved SET state = ?", state)


async def lock(conn: MariadbConnection) -> None:
    """All tables at once: waits for running writers."""
    names = await tables(conn)
    await conn.send(f"LOCK TABLES {', '.join(f'`{name}` WRITE' for name in names)}")


async def stop_claims(conn: MariadbConnection, mark: MoveMark) -> None:
    require_state(await read_mark(conn), None)
    await write_mark(conn, mark)
    await unguard(conn)
    for (verb, table), when in _CLAIMS.items():
        await _guard(conn, verb, table, when)


async def fence(conn: MariadbConnection) -> None:
    await conn.run(_FENCE)


async def guard(conn: MariadbConnection) -> None:
    """Every table refuses every change; on a target, those of other processes."""
    for table in await tables(conn):
        if table not in _UNGUARDED:
            for verb in ("INSERT", "UPDATE", "DELETE"):
                await _guard(conn, verb, table, "true")


async def _guard(conn: MariadbConnection, verb: str, table: str, when: str) -> None:
    await conn.send(_GUARD.format(verb=verb, table=table, refuse=_REFUSE.format(when=when)))


async def unguard(conn: MariadbConnection) -> None:
    for (name,) in await conn.rows(_TRIGGERS):
        await conn.send(f"DROP TRIGGER IF EXISTS `{name}`")


async def forget(conn: MariadbConnection) -> None:
    await unguard(conn)
    await conn.send("DROP TABLE IF EXISTS moved_tables")
    await conn.send("DROP TABLE IF EXISTS moved")


async def clear(conn: MariadbConnection) -> None:
    """Deletes every row, of the audit too: it is a copy that was never in use."""
    require_state(await read_mark(conn), "filling")
    await unguard(conn)
    for table in await tables(conn):
        # TRUNCATE asks no trigger, and begins to count anew.
        if table not in _UNGUARDED or table == "hold_shares":
            await conn.send(f"TRUNCATE `{table}`")
    await conn.run("DELETE FROM @feed_head")
    await forget(conn)
