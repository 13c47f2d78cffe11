"""Threads of LangGraph's own savers into this store, and of this store into a file of a SqliteSaver."""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import aclosing, closing
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.event_hooks import SerdeEvent, register_serde_event_listener
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from msgspec.structs import replace

from holdfast.errors import InputError
from holdfast.integrations.langgraph.content import (
    Codec,
    config_for,
    pack_write,
    require_text,
    require_thread,
    unpack_write,
)
from holdfast.integrations.langgraph.other_savers import (
    FILE_ERRORS,
    ForeignCheckpoint,
    ThreadSource,
    new_file,
    open_source,
)
from holdfast.integrations.langgraph.ownership import owned_error
from holdfast.integrations.langgraph.saver import HoldfastSaver
from holdfast.integrations.langgraph.value_blobs import spill_values
from holdfast.integrations.langgraph.values import StoredValue
from holdfast.types.graph_thread import (
    GraphBatch,
    GraphCheckpointRow,
    GraphFilter,
    GraphRefusal,
    GraphValueRow,
    GraphWriteRow,
)

_BLOCKED: Final = ("msgpack_blocked", "msgpack_method_blocked")
_PAGE: Final = 200
_PARENTS: Final = 8
"""Checkpoints whose values are kept to store their children as differences."""


class ThreadReport(msgspec.Struct, frozen=True, kw_only=True):
    """`added`: checkpoints that the store did not have. `digest`: of all that the source has of the thread;
    `equal`: whether the store gives the same. `changed`: the source went on meanwhile."""

    thread: str
    checkpoints: int
    writes: int
    added: int
    digest: str
    equal: bool = True
    changed: bool = False


class FileSerializer(JsonPlusSerializer):
    """For sources that others may have written. LangGraph makes a value by calling what the source names with
    arguments from the source, so that a file could run any function. Only its safe types are read here."""

    def __init__(self) -> None:
        super().__init__(allowed_msgpack_modules=None)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Raises ValueError for a value of another type: LangGraph would give its arguments instead."""
        events: list[SerdeEvent] = []
        stop = register_serde_event_listener(events.append)
        try:
            found = super().loads_typed(data)
        finally:
            stop()
        blocked = [each for each in events if each["kind"] in _BLOCKED]
        if blocked:
            named = f"{blocked[0]['module']}.{blocked[0]['name']}"
            raise ValueError(
                f"it has a value of the type {named}, and reading it would run code that the source names. "
                "If you trust the source, allow the type in a serializer of "
                "your own: JsonPlusSerializer(allowed_msgpack_modules=[...])"
            )
        return found


def serializer_of(name: str | None) -> SerializerProtocol:
    """`module:factory`, called without arguments. Raises InputError."""
    if name is None:
        return FileSerializer()
    module, _, factory = name.partition(":")
    try:
        made: Any = getattr(import_module(module), factory)()
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InputError(
            f"--serde {name}: {error}.", hint="Write module:factory, a function that returns a serializer."
        ) from error
    if not hasattr(made, "loads_typed"):
        raise InputError(f"--serde {name} returned a {type(made).__name__}, which is no serializer.")
    return made


async def import_threads(
    saver: HoldfastSaver, source: str, *, threads: Sequence[str] = (), dry_run: bool = False,
    progress: Callable[[ThreadReport], None] = lambda _: None,
) -> list[ThreadReport]:  # fmt: skip
    """One transaction for each thread; what the store has already is not written again. Raises InputError,
    CheckpointCorruptError, ThreadOwnedError."""
    reports: list[ThreadReport] = []
    async with open_source(source, saver.serde) as opened:
        known = await opened.threads()
        unknown = [thread for thread in threads if thread not in known]
        if unknown:
            raise InputError(f"the source has no thread {unknown[0]!r}.", hint="Nothing was imported.")
        for thread in threads or known:
            reports.append(await _import_thread(saver, opened, require_thread(thread), dry_run=dry_run))
            progress(reports[-1])
    return reports


async def _import_thread(
    saver: HoldfastSaver, source: ThreadSource, thread: str, *, dry_run: bool
) -> ThreadReport:
    size = await source.size(thread)
    reader, batch = await _read(saver, source, thread)
    digests = reader.digests
    if not dry_run and (batch.checkpoints or batch.writes):
        refused = await _write(saver, batch)
        if refused is not None and refused.missing:
            # The thread was deleted or pruned since it was read: what is there now is read again.
            reader, batch = await _read(saver, source, thread)
            digests, refused = reader.digests, await _write(saver, batch)
        if refused is not None:
            raise owned_error(thread, refused)
    equal = dry_run or await _digests(saver, thread, digests.keys()) == digests
    total = sha256(b"".join(digests[place] for place in sorted(digests))).hexdigest()
    return ThreadReport(
        thread=thread,
        checkpoints=len(digests),
        writes=reader.number_of_writes,
        added=len(batch.checkpoints),
        digest=total,
        equal=equal,
        changed=await source.size(thread) != size,
    )


async def _read(saver: HoldfastSaver, source: ThreadSource, thread: str) -> tuple[ThreadReader, GraphBatch]:
    reader = ThreadReader(saver, thread)
    # Closed here: its connection is closed when an error leaves this function.
    async with aclosing(source.checkpoints(thread)) as found:
        async for each in found:
            await reader.add(each)
    return reader, reader.batch()


async def _write(saver: HoldfastSaver, batch: GraphBatch) -> GraphRefusal | None:
    store = await saver.store()
    kept = replace(batch, values=await spill_values(await saver.blobs(), batch.values))
    refused = await saver.owners.write(batch.thread, lambda: store.put_graph_rows(kept))
    saver.forget(batch.thread)
    return refused


class ThreadReader:
    """Encodes the checkpoints of one thread, oldest first; those that the store has are left out."""

    def __init__(self, saver: HoldfastSaver, thread: str) -> None:
        self._saver, self._thread = saver, thread
        self._codec = saver.codec
        self._known: dict[tuple[str, str], GraphCheckpointRow] | None = None
        self._parents: OrderedDict[tuple[str, str], dict[str, StoredValue]] = OrderedDict()
        self._rows: list[GraphCheckpointRow] = []
        self._values: list[GraphValueRow] = []
        self._writes: list[GraphWriteRow] = []
        self.digests: dict[tuple[str, str], bytes] = {}
        self.number_of_writes = 0

    async def add(self, each: ForeignCheckpoint) -> None:
        if self._known is None:
            self._known = {(row.ns, row.id): row for row in await stored_rows(self._saver, self._thread)}
        place = (each.ns, each.id)
        writes = [
            (w.task, w.channel, self._codec.loads((w.type, w.data), _row(each, self._thread), w.channel))
            for w in each.writes
        ]
        self.digests[place] = digest_of(self._codec, each.parent, each.checkpoint, each.metadata, writes)
        self.number_of_writes += len(writes)
        self._writes += self._write_rows(each)
        if place in self._known:
            return
        before = {} if each.parent is None else await self._before((each.ns, each.parent))
        versions: dict[str, Any] = each.checkpoint["channel_versions"]
        fresh = {c: v for c, v in versions.items() if c not in before or before[c].ref.version != v}
        config: Any = config_for(self._thread, each.ns, each.parent or "")
        row, values, stored = self._codec.checkpoint(
            config, cast("Any", each.checkpoint), cast("Any", each.metadata), fresh, before
        )
        self._rows.append(row)
        self._values += values
        self._keep(place, stored)

    def _write_rows(self, each: ForeignCheckpoint) -> list[GraphWriteRow]:
        return [
            GraphWriteRow(
                ns=each.ns,
                checkpoint=each.id,
                task=require_text("task_id", w.task),
                idx=w.idx,
                path=w.path.replace("\x00", ""),
                channel=w.channel,
                data=pack_write((w.type, w.data)),
            )
            for w in each.writes
        ]

    async def _before(self, parent: tuple[str, str]) -> dict[str, StoredValue]:
        found = self._parents.get(parent)
        if found is None and self._known is not None and parent in self._known:
            found = await self._saver.stored_values(self._known[parent])
            self._keep(parent, found)
        return found or {}

    def _keep(self, place: tuple[str, str], stored: dict[str, StoredValue]) -> None:
        self._parents[place] = stored
        while len(self._parents) > _PARENTS:
            self._parents.popitem(last=False)

    def batch(self) -> GraphBatch:
        return GraphBatch(
            tenant=self._saver.tenant,
            thread=self._thread,
            checkpoints=tuple(self._rows),
            values=tuple(self._values),
            writes=tuple(self._writes),
            fenced=self._saver.fenced,
        )


def _row(each: ForeignCheckpoint, thread: str) -> GraphCheckpointRow:
    """For errors: where a write is."""
    return GraphCheckpointRow(ns=each.ns, id=each.id, parent=each.parent, body=b"", digest=b"", thread=thread)


def digest_of(
    codec: Codec, parent: str | None, checkpoint: Any, metadata: Any, writes: Sequence[Any]
) -> bytes:
    """Of all that a checkpoint says, the same whichever saver has it."""
    found = sha256(repr(parent or None).encode())
    values: dict[str, Any] = checkpoint["channel_values"]
    versions: dict[str, Any] = checkpoint["channel_versions"]
    for channel in sorted(values):
        found.update(f"{channel}\x00{versions.get(channel)}\x00".encode())
        found.update(codec.dumps(values[channel])[1])
    for task, channel, value in writes:
        found.update(f"{task}\x00{channel}\x00".encode())
        found.update(codec.dumps(value)[1])
    found.update(json.dumps(metadata, sort_keys=True, default=str).encode())
    return found.digest()


async def stored_rows(saver: HoldfastSaver, thread: str) -> list[GraphCheckpointRow]:
    store, where = await saver.store(), GraphFilter(tenant=saver.tenant, thread=thread)
    found: list[GraphCheckpointRow] = []
    while True:
        after = (found[-1].id, found[-1].number) if found else None
        page = await store.graph_checkpoints(where, after=after, limit=_PAGE)
        found += page
        if len(page) < _PAGE:
            return found


async def _digests(saver: HoldfastSaver, thread: str, wanted: Any) -> dict[tuple[str, str], bytes]:
    found: dict[tuple[str, str], bytes] = {}
    async for each in saver.alist({"configurable": {"thread_id": thread}}):
        place, parent = _place(each)
        if place in wanted:
            writes = each.pending_writes or []
            found[place] = digest_of(saver.codec, parent, each.checkpoint, each.metadata, writes)
    return found


def _place(each: CheckpointTuple) -> tuple[tuple[str, str], str | None]:
    at: Any = each.config.get("configurable")
    parent: Any = None if each.parent_config is None else each.parent_config.get("configurable")
    return (at["checkpoint_ns"], at["checkpoint_id"]), None if parent is None else parent["checkpoint_id"]


# ---------------------------------------------------------------------- export


async def export_threads(
    saver: HoldfastSaver, file: Path, *, threads: Sequence[str] = ()
) -> list[tuple[str, int]]:
    """Threads with the number of their checkpoints. The file is there when all of it is. Raises
    InputError."""
    _require_new(file)
    known = await _threads(saver)
    unknown = [thread for thread in threads if thread not in known]
    if unknown:
        raise InputError(f"the store has no thread {unknown[0]!r} of tenant {saver.tenant!r}.")
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        with closing(new_file(fresh)) as connection:
            done = [(each, await _export_thread(saver, connection, each)) for each in threads or known]
            connection.execute("COMMIT")
        fresh.replace(file)
    except FILE_ERRORS as error:
        raise InputError(f"{file} cannot be written: {error}.", hint="Name another file.") from error
    finally:
        fresh.unlink(missing_ok=True)
    return done


def _require_new(file: Path) -> None:
    if file.exists():
        raise InputError(f"{file} exists already.", hint="Name a new file.")


async def _threads(saver: HoldfastSaver) -> list[str]:
    store, found = await saver.store(), list[str]()
    while True:
        page = await store.graph_threads(saver.tenant, after=found[-1] if found else "", limit=_PAGE)
        found += [row.thread for row in page]
        if len(page) < _PAGE:
            return found


async def _export_thread(saver: HoldfastSaver, connection: Any, thread: str) -> int:
    count = 0
    # With those that are unlisted: others are built from them.
    store, where = await saver.store(), GraphFilter(tenant=saver.tenant, thread=thread, unlisted=True)
    after: tuple[str, int] | None = None
    while True:
        page = await store.graph_checkpoints(where, after=after, limit=20)
        for row in page:
            found = await saver.tuple_of(row)
            if found is None:
                continue
            kind, data = saver.serde.dumps_typed(found.checkpoint)
            metadata = json.dumps(found.metadata, ensure_ascii=False, default=str).encode()
            connection.execute(
                "INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)",
                (thread, row.ns, row.id, row.parent, kind, data, metadata),
            )
            connection.executemany(
                "INSERT INTO writes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (thread, w.ns, w.checkpoint, w.task, w.idx, w.channel, *unpack_write(w.data, row), w.path)
                    for w in row.writes
                ],
            )
            count += 1
        if len(page) < 20:
            return count
        after = (page[-1].id, page[-1].number)
