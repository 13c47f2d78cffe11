"""Which settings of the server weaken the promise that nothing acknowledged is lost, and which standbys have
a copy."""

from __future__ import annotations

from typing import Final

from holdfast.store.sql.postgres.connect import PostgresConnection
from holdfast.types.durability import Durability, Standby

_SETTINGS = """
SELECT name, setting FROM pg_settings
WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names')"""
# A role without the right to see them gets empty rows.
_STANDBYS = """
SELECT coalesce(nullif(application_name, ''), host(client_addr), 'without a name'), state, sync_state,
       pg_wal_lsn_diff(pg_current_wal_lsn(), flush_lsn)::bigint,
       (extract(epoch FROM flush_lag) * 1000000)::bigint
FROM pg_stat_replication WHERE NOT pg_is_in_recovery() ORDER BY 1"""

_FSYNC = "fsync is off: if the machine of the server fails, the whole database can be damaged"
_PAGES = "full_page_writes is off: if the machine of the server fails, what was being written can be damaged"
_COMMIT = "synchronous_commit is off: a crash loses what was acknowledged in the last moments"
_LOCAL = "synchronous_commit is local: no commit waits for the standbys that are named as synchronous"
_REMOTE = (
    "synchronous_commit is remote_write: a standby that fails with its primary can lose the last moments"
)

_WEAK: Final = {
    ("fsync", "off"): _FSYNC,
    ("full_page_writes", "off"): _PAGES,
    ("synchronous_commit", "off"): _COMMIT,
}
_WEAK_WITH_STANDBYS: Final = {"local": _LOCAL, "remote_write": _REMOTE}


async def durability(conn: PostgresConnection) -> Durability:
    settings = dict(await conn.rows(_SETTINGS))
    weak = [reason for (name, value), reason in _WEAK.items() if settings.get(name) == value]
    waits_for = settings.get("synchronous_standby_names", "")
    if waits_for and (reason := _WEAK_WITH_STANDBYS.get(settings.get("synchronous_commit", ""))):
        weak.append(reason)
    rows = await conn.rows(_STANDBYS)
    standbys = [
        Standby(name=name, state=state, sync=sync, lag_bytes=behind, lag=lag)
        for name, state, sync, behind, lag in rows
    ]
    hidden = any(standby.state is None for standby in standbys)
    return Durability(weak=weak, standbys=standbys, waits_for=waits_for, hidden=hidden)
