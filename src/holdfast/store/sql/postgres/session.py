"""A connection and its identity: which server, of which cluster, on which timeline."""

from __future__ import annotations

import logging
import time
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import msgspec

from holdfast.errors import StoreUnavailableError
from holdfast.store.sql.postgres.address import PostgresSettings
from holdfast.store.sql.postgres.older_sessions import session_name

_WHO = """
SELECT current_setting('transaction_read_only') = 'on', (SELECT system_identifier FROM pg_control_system()),
       CASE WHEN pg_is_in_recovery() THEN 0
            ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint END"""

_driver: Any = asyncpg  # half annotated


def _is_unexpected(record: logging.LogRecord) -> bool:
    """Whether asyncio's report is more than a cancelled connection attempt (another server was faster, or a
    timeout). When such a connection ends, asyncio logs an ERROR that has no consequence."""
    error = record.exc_info[1] if record.exc_info else None
    return not (isinstance(error, ConnectionError) and str(error) == "unexpected connection_lost() call")


logging.getLogger("asyncio").addFilter(_is_unexpected)


class PostgresServer(msgspec.Struct, frozen=True):
    dsn: str
    name: str
    only: bool = False


class ServerIdentity(msgspec.Struct):
    """The server that a connection leads to."""

    server: PostgresServer
    reads_only: bool = False
    system: int = 0  # the cluster's id: the same for a primary and all its standbys
    timeline: int = 0
    asked_at: float = 0.0


class PostgresSession(asyncpg.Connection):  # pyright: ignore[reportUntypedBaseClass]
    __slots__ = ("who",)


def servers_of(settings: PostgresSettings) -> list[PostgresServer]:
    """One for each host of the address. An address without hosts is left to the driver."""
    parts = urlsplit(settings.dsn)
    who, at, places = parts.netloc.rpartition("@")
    if "," not in places:
        return [PostgresServer(settings.dsn, places or "of the address", only=True)]
    return [
        PostgresServer(urlunsplit((parts.scheme, f"{who}{at}{place}", parts.path, parts.query, "")), place)
        for place in places.split(",")
    ]


async def connect(server: PostgresServer, settings: PostgresSettings, *, pooled: bool) -> Any:
    """Raises the driver's errors."""
    given = options(settings, pooled=pooled)
    if server.only:
        # It may stand for several servers all the same (`?host=one,two`): then the driver looks for the
        # primary.
        given["target_session_attrs"] = "read-write"
    session = await _driver.connect(server.dsn, connection_class=PostgresSession, **given)
    try:
        session.who = ServerIdentity(server)
        await identify(session, settings)
    except BaseException:
        session.terminate()
        raise
    return session


async def identify(session: Any, settings: PostgresSettings) -> None:
    """Behind a pooler each transaction may use another server, so the identity is checked again regularly."""
    found = await session.fetchrow(_WHO, timeout=settings.timeout)
    who: ServerIdentity = session.who
    who.reads_only, who.system, who.timeline = found
    who.asked_at = time.monotonic()


IDLE = "idle_in_transaction_session_timeout"
"""A process that is stopped or cut off during a transaction keeps its locks for as long as the server
believes it is alive, and everything that needs the same limit or audit chain would wait. So the server ends
such a transaction earlier."""


def idle_timeout_statement(settings: PostgresSettings) -> str:
    """For one transaction, if nothing can be set for a session."""
    return f"SET LOCAL {IDLE} = {int(settings.silence * 1000)}"


def options(settings: PostgresSettings, *, pooled: bool) -> dict[str, Any]:
    session = {} if pooled else {IDLE: str(int(settings.silence * 1000))}
    return {
        "timeout": settings.timeout,
        "command_timeout": settings.statement_timeout,
        # A prepared statement belongs to a session, and behind a pooler the next call may use another one.
        "statement_cache_size": 0 if pooled else 256,
        "max_cacheable_statement_size": 64 << 10,
        "server_settings": {"application_name": session_name(settings.dsn), **session},
    }


NoPrimaryError = asyncpg.exceptions.TargetServerAttributeNotMatched


def no_primary_error() -> BaseException:
    return NoPrimaryError("none of the servers accepts writes")


def old_primary_error(who: ServerIdentity, seen: int) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"the server {who.server.name} accepts writes, but it is an old primary: it is on timeline "
        f"{who.timeline}, and timeline {seen} was seen. Nothing is written to it.",
        hint="Stop it, or make it a standby of the new primary (pg_rewind); give all servers in the address. "
        "After an intended restore, restart the process.",
    )


def other_cluster_error(who: ServerIdentity, ours: int) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"the server {who.server.name} belongs to another cluster ({who.system}) than the one that this "
        f"store is on ({ours}). Nothing is written to it.",
        hint="Correct the address. After an intended move to a new cluster, restart the process.",
    )
