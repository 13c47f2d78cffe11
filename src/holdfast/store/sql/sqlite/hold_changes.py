"""The one compare-and-set that changes a hold, and everything that is written with it."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.hold_rules import changed_row, refusal_of, require_blob, require_changeable
from holdfast.store.sql.sqlite import audit, outbox
from holdfast.store.sql.sqlite.connect import Cursor, row, rows
from holdfast.store.sql.sqlite.holds import WITH_KEY, hold_row
from holdfast.store.sql.sqlite.inbox import add_events, put, put_with_events
from holdfast.store.sql.sqlite.run_holds import JSON_FIELDS, column
from holdfast.types.hold import ChangeRefusal, HoldChange, HoldKey, HoldRow, Note
from holdfast.types.ids import HoldId
from holdfast.types.status import HoldStatus

_KEY = "SELECT digest FROM hold_keys WHERE hold = ? AND actor = ? AND key = ?"
_PUT_KEY = "INSERT INTO hold_keys (hold, actor, key, digest) VALUES (?, ?, ?, ?)"
_LINK = "SELECT 1 FROM hold_links WHERE jti = ?"
_PUT_LINK = "INSERT INTO hold_links (jti, hold, at) VALUES (?, ?, ?)"
_NOTE = """
INSERT INTO hold_notes (hold, kind, slot, person, at, until, body) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (hold, kind, slot) DO UPDATE SET person = excluded.person, at = excluded.at,
                                             until = excluded.until, body = excluded.body"""
_STANDS = "SELECT 1 FROM blobs WHERE digest = ? AND NOT condemned"
_REFER = "INSERT INTO blob_refs (run_key, digest) VALUES (?, ?) ON CONFLICT DO NOTHING"
_DROP_REFERENCE = "DELETE FROM blob_refs WHERE run_key = ? AND digest = ?"
_DROP_NOTE = "DELETE FROM hold_notes WHERE hold = ? AND kind = ? AND slot = ?"
_NOTES = "SELECT hold, kind, slot, person, at, until, body FROM hold_notes WHERE hold = ?{of} ORDER BY number"


def change(cur: Cursor, now: int, change: HoldChange) -> HoldRow | ChangeRefusal:
    require_changeable(change)
    found = row(cur, WITH_KEY, (change.hold,))
    if found is None:
        return ChangeRefusal.unknown
    key, hold = found[0], hold_row(found[1:])
    refusal = _used_refusal(cur, change) or refusal_of(hold, change)
    if refusal is not None:
        return refusal
    after = changed_row(hold, change, now)
    _write(cur, hold, after, change)
    _write_related(cur, now, change)
    _refer(cur, key, change)
    audit.append(cur, hold.tenant, change.audit)
    for message in change.outbox:
        outbox.put(cur, now, hold.tenant, key, message)
    _write_messages(cur, now, key, change)
    return after


def _write_messages(cur: Cursor, now: int, key: int, change: HoldChange) -> None:
    events = [event for event in (change.event, *change.more_events) if event is not None]
    if change.mail is not None and events:
        put_with_events(cur, now, key, change.mail, events)
    elif change.mail is not None:
        put(cur, now, key, *change.mail)
    elif events:
        add_events(cur, key, events)


def _used_refusal(cur: Cursor, change: HoldChange) -> ChangeRefusal | None:
    if change.key is not None and key(cur, change.hold, change.key.actor, change.key.key) is not None:
        return ChangeRefusal.key_used
    if change.link is not None and row(cur, _LINK, (change.link,)) is not None:
        return ChangeRefusal.link_used
    return None


def _write(cur: Cursor, before: HoldRow, after: HoldRow, change: HoldChange) -> None:
    if not change.fields:
        return
    # In one order, so that the same act is the same statement; what stays as it is touches no index.
    fields = {name: value for name, value in change.fields.items() if getattr(before, name) != value}
    if before.status is HoldStatus.pending:
        fields |= {"version": after.version, "updated_at": after.updated_at}
    names = sorted(fields)
    values = [column(name, fields[name]) if name in JSON_FIELDS else fields[name] for name in names]
    sets = ", ".join([f"{name} = ?" for name in names])
    cur.execute(f"UPDATE holds SET {sets} WHERE id = ?", (*values, after.id))


def _write_related(cur: Cursor, now: int, change: HoldChange) -> None:
    for kind, slot in change.drop_notes:
        cur.execute(_DROP_NOTE, (change.hold, kind, slot))
    for note in change.notes:
        values = (note.hold, note.kind, note.slot, note.person, note.at, note.until, note.body)
        cur.execute(_NOTE, values)
    if change.link is not None:
        cur.execute(_PUT_LINK, (change.link, change.hold, now))
    if change.key is not None:
        cur.execute(_PUT_KEY, (change.hold, change.key.actor, change.key.key, change.key.digest))


def _refer(cur: Cursor, run: int, change: HoldChange) -> None:
    for digest in change.blobs:
        require_blob(digest, standing=row(cur, _STANDS, (digest,)) is not None)
        cur.execute(_REFER, (run, digest))
    for digest in change.let_go:
        cur.execute(_DROP_REFERENCE, (run, digest))


def key(cur: Cursor, hold: HoldId, actor: str, key: str) -> HoldKey | None:
    found = row(cur, _KEY, (hold, actor, key))
    return None if found is None else HoldKey(actor, key, found[0])


def notes(cur: Cursor, hold: HoldId, kinds: Sequence[str]) -> list[Note]:
    of = f" AND kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
    names = ("hold", "kind", "slot", "person", "at", "until", "body")
    found = rows(cur, _NOTES.format(of=of), (hold, *kinds))
    return [Note(**dict(zip(names, values, strict=True))) for values in found]
