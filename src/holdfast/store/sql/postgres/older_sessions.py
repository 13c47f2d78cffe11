"""Sessions of older versions: the name of each of our sessions says which schema it knows."""

from __future__ import annotations

from functools import cache
from urllib.parse import parse_qsl, urlsplit

from holdfast._version import __version__
from holdfast.store.sql.postgres.connect import PostgresConnection
from holdfast.store.sql.postgres.migration_files import migrations

# Versions from before workers were registered gave their sessions no name. The last query of a session shows
# whether it uses this schema: our statements name it in quotes, people and tools rarely do.
_SESSIONS = """
SELECT pid, application_name, coalesce(host(client_addr), 'this machine') FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
  AND (position(? IN query) > 0 OR position(? IN query) > 0)
  AND coalesce((regexp_match(application_name, 'holdfast [^ ]+ schema ([0-9]+)'))[1]::bigint, 0) < ?
ORDER BY pid"""
_LEASES = """
SELECT DISTINCT worker FROM @runs AS runs WHERE worker IS NOT NULL AND lease_until > @now(?::bigint)
  AND NOT EXISTS (SELECT 1 FROM @workers AS workers WHERE workers.name = runs.worker)
ORDER BY worker"""


@cache
def _own_name() -> str:
    return f"holdfast {__version__} schema {migrations()[-1].number}"


def session_name(dsn: str) -> str:
    """The address may name its sessions already: then both names are kept."""
    given = dict(parse_qsl(urlsplit(dsn).query)).get("application_name")
    return _own_name() if not given else f"{given[:20]} {_own_name()}"


async def older_sessions(conn: PostgresConnection, knows: int) -> list[str]:
    """Sessions whose code does not know that number."""
    schema = conn.schema
    rows = await conn.rows(_SESSIONS, f'"{schema}".', f'"holdfast_{schema}"', knows)
    return [f"session {pid} ({name or 'without a name'}) from {host}" for pid, name, host in rows]


async def unregistered_workers(conn: PostgresConnection, now: int | None) -> list[str]:
    """Workers that have runs and are not registered. Behind a pooler, where session names say little, this is
    how older versions are found."""
    return [worker for (worker,) in await conn.rows(_LEASES, now)]
