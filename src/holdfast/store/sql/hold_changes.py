"""The one compare-and-set that changes a hold, and everything that is written with it."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.hold_transitions import (
    change_messages,
    changed_row,
    refusal_of,
    require_blob,
    require_changeable,
)
from holdfast.store.sql import audit, outbox, queues
from holdfast.store.sql.connection import Conn
from holdfast.store.sql.hold_rows import COLUMNS, FROM, columns, hold_row
from holdfast.store.sql.run_inbox import add_events, put, put_with_events
from holdfast.store.sql.side_changes import refer
from holdfast.types.hold import ChangeRefusal, HoldChange, HoldKey, HoldRow, Note
from holdfast.types.ids import HoldId
from holdfast.types.queue_message import MessageRow
from holdfast.types.status import HoldStatus

# The run first, as a settle does it: otherwise the two could wait for each other.
_LOCK_RUN = """
SELECT key FROM @runs WHERE key = (SELECT run_key FROM @holds WHERE id = ?) FOR UPDATE"""
_LOCKED = f"SELECT holds.run_key, {COLUMNS} {FROM} WHERE holds.id = ? FOR UPDATE OF holds"
_KEY = "SELECT digest FROM @hold_keys WHERE hold = ? AND actor = ? AND key = ?"
_PUT_KEY = "INSERT INTO @hold_keys (hold, actor, key, digest) VALUES (?, ?, ?, ?)"
_LINK = "SELECT 1 FROM @hold_links WHERE jti = ?"
_PUT_LINK = "INSERT INTO @hold_links (jti, hold, at) VALUES (?, ?, ?)"
_NOTE = """
INSERT INTO @hold_notes (hold, kind, slot, person, at, until, body) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (hold, kind, slot) DO UPDATE SET person = excluded.person, at = excluded.at,
                                             until = excluded.until, body = excluded.body"""
_DROP_NOTE = "DELETE FROM @hold_notes WHERE hold = ? AND kind = ? AND slot = ?"
_STANDS = "SELECT 1 FROM @blobs WHERE digest = ? AND NOT condemned FOR SHARE"
_RELEASE_BLOBS = "DELETE FROM @blob_refs WHERE run_key = ? AND digest = ANY(?::bytea[])"
_NOTES = """
SELECT hold, kind, slot, person, at, until, body FROM @hold_notes
WHERE hold = ? AND (?::text[] IS NULL OR kind = ANY(?::text[])) ORDER BY number"""

_COUNT_NOTES = """
SELECT hold, count(*) FROM @hold_notes
WHERE hold = ANY(?::text[]) AND kind = ANY(?::text[]) GROUP BY hold"""


async def change(conn: Conn, now: int, change: HoldChange) -> HoldRow | ChangeRefusal:
    require_changeable(change)
    if conn.locks_rows:
        await conn.row(_LOCK_RUN, change.hold)
    found = await conn.row(_LOCKED, change.hold)
    if found is None:
        return ChangeRefusal.unknown
    key_, hold = found[0], hold_row(found[1:])
    # The key first: a request that is sent again finds the hold decided by itself, and that is no conflict.
    refusal = await _used_refusal(conn, change) or refusal_of(hold, change)
    if refusal is not None:
        return refusal
    after = changed_row(hold, change, now)
    if not await _change_message(conn, now, after, change):
        return ChangeRefusal.message_lost
    await _write(conn, hold, after, change)
    await _write_related(conn, now, change)
    await _refer(conn, key_, change)
    for message in (*change.outbox, *change_messages(hold, after)):
        await outbox.put(conn, now, hold.tenant, key_, message)
    await _write_messages(conn, now, key_, change)
    await audit.append(conn, hold.tenant, change.audit)
    return after


async def _change_message(conn: Conn, now: int, after: HoldRow, change: HoldChange) -> bool:
    """The message of a queue that asked the same question. False if it cannot be changed as asked."""
    if change.message is not None:
        return isinstance(await queues.change(conn, now, change.message, ()), MessageRow)
    if after.status is not HoldStatus.pending and after.message_id is not None and change.fields:
        await queues.end_of_holds(conn, now, [after.id], after.status)
    return True


async def _write_messages(conn: Conn, now: int, key: int, change: HoldChange) -> None:
    events = [event for event in (change.event, *change.more_events) if event is not None]
    if change.mail is not None and events:
        await put_with_events(conn, now, key, change.mail, events)
    elif change.mail is not None:
        await put(conn, now, key, *change.mail)
    elif events:
        await add_events(conn, key, events)


async def _used_refusal(conn: Conn, change: HoldChange) -> ChangeRefusal | None:
    asked = change.key
    if asked is not None and await key(conn, change.hold, asked.actor, asked.key) is not None:
        return ChangeRefusal.key_used
    if change.link is not None and await conn.row(_LINK, change.link) is not None:
        return ChangeRefusal.link_used
    return None


async def _write(conn: Conn, before: HoldRow, after: HoldRow, change: HoldChange) -> None:
    if not change.fields:
        return
    # In one order, so that the same act is the same statement; what stays as it is touches no index.
    names = sorted([name for name, value in change.fields.items() if getattr(before, name) != value])
    if before.status is HoldStatus.pending:
        names += ["version", "updated_at"]
    values = columns(names, [getattr(after, name) for name in names])
    if conn.keeps_shared and "terms" in names:
        names.append("shared")
        values.append(list(after.terms.also_for))
    if names:
        await conn.run(f"UPDATE @holds SET {' = ?, '.join(names)} = ? WHERE id = ?", *values, after.id)


async def _write_related(conn: Conn, now: int, change: HoldChange) -> None:
    for kind, slot in change.drop_notes:
        await conn.run(_DROP_NOTE, change.hold, kind, slot)
    for note in change.notes:
        values = (note.hold, note.kind, note.slot, note.person, note.at, note.until, note.body)
        await conn.run(_NOTE, *values)
    if change.link is not None:
        await conn.run(_PUT_LINK, change.link, change.hold, now)
    if change.key is not None:
        await conn.run(_PUT_KEY, change.hold, change.key.actor, change.key.key, change.key.digest)


async def _refer(conn: Conn, run: int, change: HoldChange) -> None:
    for digest in change.blobs:
        require_blob(digest, standing=await conn.row(_STANDS, digest) is not None)
    await refer(conn, run, change.blobs)
    if change.released_blobs:
        await conn.run(_RELEASE_BLOBS, run, list(change.released_blobs))


async def key(conn: Conn, hold: HoldId, actor: str, key: str) -> HoldKey | None:
    found = await conn.row(_KEY, hold, actor, key)
    return None if found is None else HoldKey(actor, key, found[0])


async def notes(conn: Conn, hold: HoldId, kinds: Sequence[str]) -> list[Note]:
    names = ("hold", "kind", "slot", "person", "at", "until", "body")
    wanted = list(kinds) or None
    found = await conn.rows(_NOTES, hold, wanted, wanted)
    return [Note(**dict(zip(names, values, strict=True))) for values in found]


async def count_notes(conn: Conn, holds: Sequence[HoldId], kinds: Sequence[str]) -> dict[HoldId, int]:
    found = await conn.rows(_COUNT_NOTES, list(holds), list(kinds))
    return {HoldId(hold): int(count) for hold, count in found}
