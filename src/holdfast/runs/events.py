"""Events of a run, with or without the flow's code, and the records behind them (D-3)."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.errors import CheckpointCorruptError
from holdfast.model.events import derive_events
from holdfast.model.secrets import outgoing
from holdfast.runs import complete_events
from holdfast.runs.driver.load import load
from holdfast.runs.history.versions import RunReader, RunReaders, reader_of, readers_of
from holdfast.runs.record_codec import kind_name
from holdfast.types.event import Event, EventRow
from holdfast.types.record import Record
from holdfast.types.redaction import redactor, tenant_scope

if TYPE_CHECKING:
    from holdfast.runs.service_protocol import RunAccess
    from holdfast.store.rows import RunRow

__all__ = ["RunReader", "bare_events", "read_events", "reader_of"]


async def read_events(service: RunAccess, row: RunRow, *, after: int, limit: int) -> list[Event]:
    """Events with a number > `after`, in order, at most `limit`. The cursor may lie inside a record."""
    rows = await service.store.events(row.id, after=after, limit=limit)
    if not rows and after >= row.event_seq:
        return []
    readers = await readers_of(service, row)
    found: list[Event] = []
    # The last number that was looked at: a row may have no event left to show.
    upto = after
    for stored in rows:
        found += (event for event in _events_for(readers, row, stored) if event.number > after)
        upto = _last_number(stored)
        if len(found) >= limit:
            break
    if len(found) < limit and len(rows) < limit:
        upto = max(upto, row.event_seq)
    found = (await _with_pruned(service, row, found, after, upto))[:limit]
    await complete_events.complete(service, row, readers, found)
    secrets = readers.at(row.head).graph.secrets
    return await hide_secrets(service, row, found) if secrets else found


def _last_number(stored: Record | EventRow) -> int:
    return stored.number if isinstance(stored, EventRow) else stored.event_from + stored.events - 1


PRUNED = "events.pruned"
EMITTED = "node.emitted"
"""Of records of live output; an event of its own where an engine writes it while the node runs."""


async def _with_pruned(
    service: RunAccess, row: RunRow, found: list[Event], after: int, upto: int
) -> list[Event]:
    """Put an event into each gap of the numbers from `after` to `upto` that pruning left. Its number is the
    last one that is gone, so that the cursor of a reader continues behind the gap."""
    if upto - after == len(found):
        return found
    # The row may be older than the events: the run was pruned between the two reads.
    now = await service.store.get_run(row.id)
    if now is None or not now.horizon:
        return found
    whole: list[Event] = []
    expected = after + 1
    for event in found:
        if event.number > expected:
            whole.append(_pruned(now, expected, event.number - 1, event.at))
        whole.append(event)
        expected = event.number + 1
    if upto >= expected:
        whole.append(_pruned(now, expected, upto, now.ended_at or now.updated_at))
    return whole


def _pruned(row: RunRow, first: int, last: int, at: int) -> Event:
    data = {"first": first, "last": last, "horizon": row.horizon}
    return Event(run=row.id, number=last, at=at, type=PRUNED, data=data)


async def hide_secrets(service: RunAccess, row: RunRow, found: list[Event]) -> list[Event]:
    """Events are shown to people: values that are declared secret are removed from them, and from texts."""
    reader = await reader_of(service, row)
    drops = redactor.drops(row.tenant)
    if service.caches.known_secrets.get(row.id) != drops:
        # The present values; those of the records just read are registered already.
        service.caches.known_secrets[row.id] = drops
        await load(service.store, reader.codec, reader.graph, row.id, blobs=service.runtime.blobs)
    secrets = reader.graph.secrets
    # One task reads for the followers of all tenants.
    with tenant_scope(row.tenant):
        return [msgspec.structs.replace(event, data=outgoing(event.data, secrets)) for event in found]


async def bare_events(
    service: RunAccess,
    row: RunRow,
    readers: RunReader | RunReaders,
    *,
    after: int,
    limit: int,
    types: Container[str],
) -> tuple[list[Event], int]:
    """Like `read_events`, with whole records, but without what only the run as a whole could add. Only events
    of these types; and the number after which the next call continues, which is `after` at the end."""
    rows = await service.store.events(row.id, after=after, limit=limit)
    found = [
        event
        for stored in rows
        for event in _events_for(readers, row, stored, types)
        if event.number > after and event.type in types
    ]
    return found, _last_number(rows[-1]) if rows else after


def _events_for(
    readers: RunReader | RunReaders,
    row: RunRow,
    stored: Record | EventRow,
    types: Container[str] | None = None,
) -> Iterable[Event]:
    """`types`: those of records; None: all."""
    if isinstance(stored, EventRow):
        data: dict[str, Any] = msgspec.json.decode(stored.payload) if stored.payload else {}
        node = str(data.get("node", ""))
        if stored.type.startswith("hold.") and "hold" in data:
            # Stored events keep the older name of the hold's id.
            data = {"hold_id" if name == "hold" else name: value for name, value in data.items()}
        scope = ""
        if stored.type == EMITTED:
            scope = str(data.pop("scope", ""))
            data.pop("node", None)
        return [
            Event(
                run=row.id, number=stored.number, at=stored.at, type=stored.type, node=node, scope=scope,
                data=data,
            )
        ]  # fmt: skip
    reader = readers.at(stored.seq)
    try:
        body = reader.codec.decode(stored)
    except CheckpointCorruptError:
        return _unreadable(row, stored)
    # The id of a checkpoint takes longer than everything else.
    checkpoints = types is None or "checkpoint.created" in types
    parts = derive_events(reader.graph, row.id, stored, body, checkpoints=checkpoints)
    return [
        Event(
            run=row.id,
            number=number,
            at=stored.at,
            type=kind,
            node=node,
            scope=scope,
            data=data,
            seq=stored.seq,
        )
        for number, (kind, node, scope, data) in enumerate(parts, stored.event_from)
        if types is None or kind in types
    ]


def _unreadable(row: RunRow, record: Record) -> list[Event]:
    """A damaged record keeps its numbers, so that a cursor never finds a gap; its columns are still shown."""
    data = {
        "seq": record.seq,
        "kind": kind_name(record),
        "digest": record.digest.hex(),
        "outcome": record.outcome,
    }
    return [
        Event(
            run=row.id,
            number=number,
            at=record.at,
            type="record.unreadable",
            node=record.node,
            scope=record.scope,
            data=data,
        )
        for number in range(record.event_from, record.event_from + record.events)
    ]
