"""The state of the file, for `holdfast doctor`. Reads only."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.store.rows import StoreFacts
from holdfast.store.sql.blobs import UNUSED
from holdfast.store.sql.sqlite.connect import Cursor, row, rows
from holdfast.types.ids import RunId

_MANY = 1000
_LAPSED = "SELECT id FROM runs WHERE worker IS NOT NULL AND lease_until <= ? ORDER BY lease_until LIMIT ?"
_UNUSED = UNUSED.replace("@", "")
_BLOBS = f"SELECT count(*), coalesce(sum(condemned), 0), coalesce(sum({_UNUSED}), 0) FROM blobs"
_MISSING = """
SELECT digest FROM (
    SELECT digest FROM blob_refs UNION
    SELECT blob_digest FROM graph_values WHERE blob_digest IS NOT NULL) AS used
WHERE NOT EXISTS (SELECT 1 FROM blobs WHERE blobs.digest = used.digest) LIMIT ?"""
_AT = "SELECT digest FROM blobs WHERE place = ? AND condemned = 0"
_IN_USE = f"AND NOT ({_UNUSED}) LIMIT 1"


def examine(cur: Cursor, now: int, exists: Callable[[bytes], bool] | None) -> StoreFacts:
    """`exists`: whether the file of a blob exists; None: skips everything that takes long."""
    problems: list[str] = []
    missing = [digest for (digest,) in rows(cur, _MISSING, (_MANY,))]
    if exists is not None:
        problems = [text for (text,) in rows(cur, "PRAGMA quick_check(20)") if text != "ok"]
        missing += [digest for (digest,) in rows(cur, _AT, ("file",)) if not exists(digest)]
    blobs = row(cur, _BLOBS) or (0, 0, 0)
    return StoreFacts(
        schema=_number(cur, "PRAGMA user_version"),
        size=_number(cur, "PRAGMA page_count") * _number(cur, "PRAGMA page_size"),
        problems=problems,
        lapsed=[RunId(run) for (run,) in rows(cur, _LAPSED, (now, _MANY))],
        blobs=blobs[0],
        condemned=blobs[1],
        unreferenced=blobs[2],
        missing=missing,
        outside=[digest for (digest,) in rows(cur, _AT if exists else f"{_AT} {_IN_USE}", ("elsewhere",))],
    )


def _number(cur: Cursor, sql: str) -> int:
    found = row(cur, sql)
    return 0 if found is None else int(found[0])
