"""What is stored of a checkpoint, and what LangGraph gets back: encoding, decoding, the errors of both."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from holdfast.checkpoint.compress import MAX_DECOMPRESSED, compress, decompress
from holdfast.errors import CheckpointCorruptError, InputError
from holdfast.integrations.langgraph.values import (
    StoredValue,
    ValueRef,
    body_bytes,
    read_body,
    store_value,
)
from holdfast.types.graph_thread import (
    GraphCheckpointRow,
    GraphValueRow,
    GraphWriteRow,
    facets_of,
)

_SMALL = b"\x01"
_DIGESTED = 4096  # bytes of a value
_LONGEST_THREAD = 512  # bytes
_LONGEST = {"checkpoint_ns": 500, "checkpoint_id": 120, "task_id": 120}  # characters


class ThreadPlace(NamedTuple):
    """Of a configuration."""

    thread: str
    ns: str
    checkpoint: str | None


def place_of(config: RunnableConfig) -> ThreadPlace:
    """Raises InputError."""
    given = config.get("configurable") or {}
    if given.get("thread_id") in (None, ""):
        raise InputError(
            "the configuration has no thread_id.",
            hint='Pass one: graph.invoke(input, {"configurable": {"thread_id": "1"}}).',
        )
    thread = require_thread(str(given["thread_id"]))
    ns = require_text("checkpoint_ns", str(given.get("checkpoint_ns") or ""))
    checkpoint = given.get("checkpoint_id")
    return ThreadPlace(thread, ns, require_text("checkpoint_id", str(checkpoint)) if checkpoint else None)


# Each write of a thread names the same few texts.
@lru_cache(4096)
def require_thread(thread: str) -> str:
    if len(thread.encode("utf-8", "surrogatepass")) > _LONGEST_THREAD:
        raise InputError(f"the thread_id has more than {_LONGEST_THREAD} bytes.", hint="Use a shorter one.")
    return _without_nul("thread_id", thread)


@lru_cache(4096)
def require_text(name: str, text: str) -> str:
    if len(text) > _LONGEST[name]:
        raise InputError(f"the {name} has more than {_LONGEST[name]} characters.", hint="Use a shorter one.")
    return _without_nul(name, text)


def _without_nul(name: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"the {name} is not valid Unicode: {text!r}.", hint="Use another one.") from None
    if "\x00" in text:
        raise InputError(f"the {name} contains a NUL character.", hint="Use one without.")
    return text


def config_for(thread: str, ns: str, checkpoint: str, extra: dict[str, Any] | None = None) -> RunnableConfig:
    place = {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": checkpoint}
    return {"configurable": place | (extra or {})}


class Codec:
    """Encodes and decodes with one serializer. `deltas`: whether equal values have equal bytes."""

    def __init__(self, serde: SerializerProtocol, *, deltas: bool) -> None:
        self.serde = serde
        self._deltas = deltas

    # ------------------------------------------------------------------ writing
    def dumps(self, value: Any) -> tuple[str, bytes]:
        kind, data = self.serde.dumps_typed(value)
        if kind.partition("+")[0] == "pickle":
            raise InputError(
                f"a value of type {type(value).__name__} would be pickled, and pickle is never stored.",
                hint="Keep what msgpack can express in the state, or use a serializer without pickle.",
            )
        return kind, data

    def checkpoint(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        before: dict[str, StoredValue],
        *,
        whole: bool = False,
    ) -> tuple[GraphCheckpointRow, list[GraphValueRow], dict[str, StoredValue]]:
        """`before`: what the parent refers to, by channel. `whole`: all values are stored again, and none as
        differences."""
        rest: dict[str, Any] = dict(checkpoint)
        values: dict[str, Any] = rest.pop("channel_values")
        stored: dict[str, StoredValue] = {}
        rows: list[GraphValueRow] = []
        digest = sha256()
        for channel, version in checkpoint["channel_versions"].items():
            if channel not in new_versions:
                kept = before.get(channel)
                if kept is not None and kept.ref.version == version and not whole:
                    stored[channel] = kept
                    continue
                # What it could refer to was deleted.
                if kept is not None and kept.ref.version == version:
                    typed = (kept.ref.type, kept.data)
                elif channel in values:
                    typed = self.dumps(values[channel])
                else:
                    continue
                stored[channel], row = store_value(channel, version, typed, None)
                rows += [] if row is None else [row]
            elif channel in values:
                typed = self.dumps(values[channel])
                earlier = before.get(channel) if self._deltas and not whole else None
                stored[channel], row = store_value(channel, version, typed, earlier)
                rows += [] if row is None else [row]
                size, crc = len(typed[1]), stored[channel].crc
                digest.update(f"{channel}\x00{typed[0]}\x00{version}\x00{size}\x00{crc}\x00".encode())
                # A long value is told by its version, size and checksum: a version is given once.
                digest.update(typed[1][:_DIGESTED])
        place = place_of(config)
        known = cast("dict[str, Any]", get_checkpoint_metadata(config, metadata))
        head, tail = self.dumps(rest), self.dumps(known)
        digest.update(head[1] + tail[1])
        body = body_bytes(head, tail, {channel: value.ref for channel, value in stored.items()})
        run_id = known.get("run_id")
        row = GraphCheckpointRow(
            ns=place.ns,
            id=require_text("checkpoint_id", checkpoint["id"]),
            parent=place.checkpoint,
            body=body,
            digest=digest.digest(),
            values=tuple(each.ref.number for each in stored.values() if each.ref.number is not None),
            facets=facets_of(known),
            run_id=run_id[:255] if isinstance(run_id, str) else None,
        )
        return row, rows, stored

    def writes(
        self, place: ThreadPlace, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> list[GraphWriteRow]:
        task = require_text("task_id", task_id)
        return [
            GraphWriteRow(
                ns=place.ns,
                checkpoint=place.checkpoint or "",
                task=task,
                idx=WRITES_IDX_MAP.get(channel, idx),
                path=task_path.replace("\x00", ""),
                channel=channel,
                data=pack_write(self.dumps(value)),
            )
            for idx, (channel, value) in enumerate(writes)
        ]

    # ------------------------------------------------------------------ reading
    def loads(self, value: tuple[str, bytes], row: GraphCheckpointRow, channel: str) -> Any:
        if value[0].partition("+")[0] == "pickle":
            raise corrupt(row, channel, "it is pickled, and pickle is never read")
        try:
            return self.serde.loads_typed(value)
        except Exception as error:
            raise corrupt(row, channel, f"{type(error).__name__}: {error}") from error

    def head(self, row: GraphCheckpointRow) -> tuple[dict[str, Any], dict[str, Any], dict[str, ValueRef]]:
        """The checkpoint without values, its metadata, and where its values are."""
        try:
            body = read_body(row.body)
        except ValueError as error:
            raise corrupt(row, "", str(error)) from error
        checkpoint = self.loads(body.checkpoint, row, "the checkpoint itself")
        return checkpoint, self.loads(body.metadata, row, "its metadata"), body.values

    def value(self, stored: StoredValue | str, row: GraphCheckpointRow, channel: str) -> Any:
        if isinstance(stored, str):
            raise corrupt(row, channel, stored)
        return self.loads((stored.ref.type, stored.data), row, channel)

    def pending(self, row: GraphCheckpointRow) -> list[tuple[str, str, Any]]:
        return [
            (write.task, write.channel, self.loads(unpack_write(write.data, row), row, write.channel))
            for write in row.writes
        ]

    def tuple(
        self, row: GraphCheckpointRow, stored: dict[str, StoredValue | str], extra: dict[str, Any]
    ) -> CheckpointTuple:
        checkpoint, metadata, _ = self.head(row)
        values = {channel: self.value(each, row, channel) for channel, each in stored.items()}
        config = config_for(row.thread, row.ns, row.id, extra)
        return CheckpointTuple(
            config=config,
            checkpoint=cast("Checkpoint", {**checkpoint, "channel_values": values}),
            metadata=cast("CheckpointMetadata", metadata),
            parent_config=None if row.parent is None else config_for(row.thread, row.ns, row.parent),
            pending_writes=self.pending(row),
        )


def pack_write(value: tuple[str, bytes]) -> bytes:
    """Type and data; a mark before them says that the data is compressed."""
    kind, data = value
    small = compress(data) if len(data) <= MAX_DECOMPRESSED else None
    return kind.encode() + b"\x00" + data if small is None else _SMALL + kind.encode() + b"\x00" + small


def unpack_write(data: bytes, row: GraphCheckpointRow) -> tuple[str, bytes]:
    kind, mark, rest = data.partition(b"\x00")
    if not mark:
        raise corrupt(row, "", "a write has no type")
    if kind.startswith(_SMALL):
        try:
            kind, rest = kind[1:], decompress(rest)
        except CheckpointCorruptError as error:
            raise corrupt(row, "", str(error)) from error
    return kind.decode("utf-8", "replace"), rest


def corrupt(row: GraphCheckpointRow, channel: str, why: str) -> CheckpointCorruptError:
    return CheckpointCorruptError(
        f"checkpoint {row.id} of thread {row.thread!r} cannot be read: {channel or 'its body'}: {why}.",
        hint="Use an earlier checkpoint of the thread, or the serializer that it was written with.",
        thread=row.thread,
        checkpoint=row.id,
        channel=channel,
    )
