"""Rows as they are stored, to be encrypted with a new key; changed only if they are as they were read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from holdfast.store.memory.tables import MemoryTables
from holdfast.types.ciphertext import StoredRow
from holdfast.types.hold import HoldRow, Option

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.store.memory.tables import MemoryRun
    from holdfast.types.ids import RunId

StoredRowSetter = tuple[StoredRow, "Callable[[dict[str, Any]], None]"]
_HOLD = ("prompt", "options", "context", "schema", "request_hash", "resolution", "closed_reason", "placed")


class MemoryReencryption(MemoryTables):
    async def stored_rows(self, table: str, *, after: int, limit: int) -> list[StoredRow]:
        with self._lock:
            found = (row for row, _ in self._rows(table) if row.row > after)
            return sorted(found, key=lambda row: row.row)[:limit]

    async def rewrite(self, table: str, changes: Sequence[tuple[StoredRow, dict[str, Any]]]) -> int:
        done = 0
        with self._lock:
            wanted = {old.row: (old, new) for old, new in changes}
            for row, put in list(self._rows(table)):
                change = wanted.get(row.row)
                if change is not None and change[0] == row:
                    put(change[1])
                    done += 1
        return done

    async def blobs_of(self, run: RunId) -> list[bytes]:
        with self._lock:
            found = self._ids.get(run)
            return [] if found is None else sorted(found.blobs)

    async def replace_blob_reference(self, run: RunId, old: bytes, new: bytes) -> None:
        with self._lock:
            found = self._ids.get(run)
            if found is None or old not in found.blobs:
                return
            found.blobs = (found.blobs - {old}) | {new}
            self._blobs[old].runs.discard(found.key)
            self._blobs[new].runs.add(found.key)

    async def replace_blob(self, digest: bytes, data: bytes) -> None:
        with self._lock:
            if digest in self._blobs:
                self._blobs[digest].data = data

    # ------------------------------------------------------------------ the tables
    def _rows(self, table: str) -> Iterator[StoredRowSetter]:
        if table == "memories":
            yield from self._memory_rows()
        elif table == "blobs":
            yield from self._blob_rows()
        elif table in ("outbox", "documents", "schedules", "queue_messages") or table.startswith("graph_"):
            yield from getattr(self, f"_{table}_rows")()
        else:
            for run in self._keys.values():
                yield from getattr(self, f"_{table}_of")(run)

    def _journal_of(self, run: MemoryRun) -> Iterator[StoredRowSetter]:
        for record in run.records:

            def put(new: dict[str, Any], record: Any = record) -> None:
                record.payload, record.digest = new["payload"], new["digest"]

            yield _row(run, record.seq, (record.seq,), payload=record.payload, digest=record.digest), put

    def _events_of(self, run: MemoryRun) -> Iterator[StoredRowSetter]:
        for i, event in enumerate(run.events):

            def put(new: dict[str, Any], i: int = i) -> None:
                run.events[i] = replace(run.events[i], payload=new["payload"])

            yield _row(run, i, (event.at, event.type), payload=event.payload), put

    def _inbox_of(self, run: MemoryRun) -> Iterator[StoredRowSetter]:
        for number, mail in run.inbox.items():

            def put(new: dict[str, Any], number: int = number) -> None:
                run.inbox[number] = replace(run.inbox[number], payload=new["payload"])

            yield _row(run, number, (mail.kind,), payload=mail.payload), put

    def _holds_of(self, run: MemoryRun) -> Iterator[StoredRowSetter]:
        for i, hold in enumerate(run.holds):

            def put(new: dict[str, Any], hold: Any = hold) -> None:
                options = new["options"]
                read = None if options is None else msgspec.json.decode(options, type=tuple[Option, ...])
                self._holds[hold] = replace(self._holds[hold], **{**new, "options": read})

            yield _row(run, i, (hold,), **_hold_values(self._holds[hold])), put

    def _late_reports_of(self, run: MemoryRun) -> Iterator[StoredRowSetter]:
        for i, (seq, payload) in enumerate(run.late):

            def put(new: dict[str, Any], i: int = i, seq: int = seq) -> None:
                run.late[i] = (seq, new["payload"])

            yield _row(run, i, (seq,), payload=payload), put

    def _hold_notes_of(self, run: MemoryRun) -> Iterator[StoredRowSetter]:
        places = [(hold, *slot) for hold in run.holds for slot in self._notes.get(hold, {})]
        for i, (hold, kind, slot) in enumerate(places):

            def put(new: dict[str, Any], hold: Any = hold, at: Any = (kind, slot)) -> None:
                self._notes[hold][at] = replace(self._notes[hold][at], body=new["body"])

            yield _row(run, i, (hold, kind, slot), body=self._notes[hold][kind, slot].body), put

    def _hold_keys_of(self, run: MemoryRun) -> Iterator[StoredRowSetter]:
        places = [place for place in self._hold_keys if place[0] in run.holds]
        for i, place in enumerate(places):

            def put(new: dict[str, Any], place: Any = place) -> None:
                self._hold_keys[place] = new["digest"]

            yield _row(run, i, place, digest=self._hold_keys[place]), put

    def _documents_rows(self) -> Iterator[StoredRowSetter]:
        for i, (place, document) in enumerate(list(self._documents.items()), 1):

            def put(new: dict[str, Any], place: Any = place) -> None:
                self._documents[place] = replace(self._documents[place], body=new["body"])

            values = {"body": document.body}
            yield StoredRow(row=i, run="", tenant=document.tenant, place=place[1:], values=values), put

    def _schedules_rows(self) -> Iterator[StoredRowSetter]:
        for i, (place, schedule) in enumerate(list(self._schedules.items()), 1):

            def put(new: dict[str, Any], place: Any = place) -> None:
                self._schedules[place] = replace(self._schedules[place], body=new["body"])

            values = {"body": schedule.body}
            yield StoredRow(row=i, run="", tenant=schedule.tenant, place=(schedule.name,), values=values), put

    def _runs_of(self, run: MemoryRun) -> Iterator[StoredRowSetter]:
        def put(new: dict[str, Any]) -> None:
            run.error = new["error"]

        yield _row(run, 0, (), error=run.error), put

    def _memory_rows(self) -> Iterator[StoredRowSetter]:
        for i, (key, memory) in enumerate(list(self._memories.items()), 1):

            def put(new: dict[str, Any], key: Any = key) -> None:
                self._memories[key] = replace(self._memories[key], content=new["content"])

            values = {"content": memory.content, "folded": memory.content.casefold()}
            yield StoredRow(row=i, run="", tenant=memory.tenant, place=(memory.id,), values=values), put

    def _outbox_rows(self) -> Iterator[StoredRowSetter]:
        for number, message in list(self._outbox.items()):

            def put(new: dict[str, Any], number: int = number) -> None:
                self._outbox[number] = replace(self._outbox[number], payload=new["payload"])

            place, values = (message.key,), {"payload": message.payload}
            yield StoredRow(row=number, run="", tenant=message.tenant, place=place, values=values), put

    def _queue_messages_rows(self) -> Iterator[StoredRowSetter]:
        for place, message in list(self._messages.items()):

            def put(new: dict[str, Any], place: Any = place) -> None:
                self._messages[place] = replace(self._messages[place], **new)

            values = {name: getattr(message, name) for name in ("payload", "result", "error", "digest")}
            at = (message.id,)
            yield (
                StoredRow(row=message.number, run="", tenant=message.tenant, place=at, values=values),
                put,
            )

    def _graph_checkpoints_rows(self) -> Iterator[StoredRowSetter]:
        for thread in list(self._graph_threads.values()):
            for place, row in list(thread.checkpoints.items()):

                def put(new: dict[str, Any], thread: Any = thread, place: Any = place) -> None:
                    thread.checkpoints[place] = replace(thread.checkpoints[place], **new)

                values = {name: getattr(row, name) for name in ("facets", "digest", "body")}
                yield (
                    StoredRow(row=row.number, run="", tenant=thread.tenant, place=place, values=values),
                    put,
                )

    def _graph_values_rows(self) -> Iterator[StoredRowSetter]:
        tenants = {thread.family: thread.tenant for thread in self._graph_threads.values()}
        for number, (family, value) in list(self._graph_values.items()):

            def put(new: dict[str, Any], number: int = number, family: int = family) -> None:
                self._graph_values[number] = (family, replace(self._graph_values[number][1], **new))

            at, tenant = (value.channel, number), tenants.get(family, "")
            values = {"data": value.data, "blob_digest": value.blob_digest}
            yield StoredRow(row=number, run="", tenant=tenant, place=at, values=values), put

    def _graph_writes_rows(self) -> Iterator[StoredRowSetter]:
        for thread in list(self._graph_threads.values()):
            for place, write in list(thread.writes.items()):

                def put(new: dict[str, Any], thread: Any = thread, place: Any = place) -> None:
                    thread.writes[place] = replace(thread.writes[place], **new)

                number, values = thread.write_numbers[place], {"data": write.data}
                yield (
                    StoredRow(row=number, run="", tenant=thread.tenant, place=place, values=values),
                    put,
                )

    def _blob_rows(self) -> Iterator[StoredRowSetter]:
        for i, digest in enumerate(list(self._blobs), 1):
            yield StoredRow(row=i, run="", tenant="", place=(digest,), values={}), _nothing


def _nothing(_new: dict[str, Any]) -> None:
    """Blobs are replaced by `replace_blob`."""


def _row(run: MemoryRun, number: int, place: tuple[Any, ...], **values: Any) -> StoredRow:
    return StoredRow(row=run.key << 32 | number, run=run.id, tenant=run.tenant, place=place, values=values)


def _hold_values(hold: HoldRow) -> dict[str, Any]:
    values = {name: getattr(hold, name) for name in _HOLD}
    values["options"] = None if hold.options is None else msgspec.json.encode(hold.options)
    return values
