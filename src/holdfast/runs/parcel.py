"""A run as a file: what an export writes and an import reads, the same bytes for the same history.

    magic, version byte
    parts: kind (1 byte), length (8 bytes, big end first), content, sha256 of all three
    the last part: kind `z`, its content the sha256 of everything before it

Contents are msgpack; a blob lies there as it lies in the store. Digests find damage, they prove no author.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import msgspec

from holdfast.errors import CheckpointCorruptError, InputError, SchemaTooNewError
from holdfast.store.base import RunHistory, RunRow
from holdfast.types.event import EventRow
from holdfast.types.hold import HoldRow
from holdfast.types.record import Record
from holdfast.types.status import RunStatus

# As with PNG: a transfer that meddles with line ends or the eighth bit is noticed in the first bytes.
MAGIC = b"\x89HFRUN\r\n"
VERSION = 1

_LENGTH = 8
_DIGEST = 32
_RUN, _GRAPH, _RECORD, _EVENT, _HOLD, _LATE, _BLOB, _END = b"rgjehlbz"
_NAMES = {
    _RUN: "run", _GRAPH: "graph", _RECORD: "record", _EVENT: "event", _HOLD: "hold", _LATE: "late report",
    _BLOB: "blob", _END: "end",
}  # fmt: skip
_TYPES: dict[int, Any] = {
    _RUN: RunRow, _RECORD: Record, _EVENT: EventRow, _HOLD: HoldRow, _LATE: tuple[int, bytes],
}  # fmt: skip

_encode = msgspec.msgpack.Encoder().encode
_decoders = {kind: msgspec.msgpack.Decoder(type_) for kind, type_ in _TYPES.items()}


class Parcel(msgspec.Struct, frozen=True):
    history: RunHistory
    graph: bytes
    blobs: list[bytes]  # in the order of `history.blobs`


def plain(history: RunHistory) -> RunHistory:
    """Without what belongs to one store or one worker: the same for a run and for its import."""
    run = history.run
    status = RunStatus.resumable if run.status is RunStatus.running else run.status
    return msgspec.structs.replace(
        history,
        run=msgspec.structs.replace(
            run, key=0, status=status, worker=None, lease_until=None, ready_at=None, read_only=False
        ),
        records=[msgspec.structs.replace(record, side=None, size=0) for record in history.records],
        holds=sorted(history.holds, key=lambda hold: (hold.created_at, hold.seq, hold.id)),
        blobs=sorted(history.blobs),
    )


def wrap(parcel: Parcel) -> bytes:
    out = bytearray(MAGIC + bytes([VERSION]))
    for kind, content in _contents(parcel):
        _add(out, kind, content)
    _add(out, _END, sha256(out).digest())
    return bytes(out)


def _contents(parcel: Parcel) -> Iterator[tuple[int, bytes]]:
    history = parcel.history
    yield _RUN, _encode(history.run)
    yield _GRAPH, parcel.graph
    rows = (
        (_RECORD, history.records),
        (_EVENT, history.events),
        (_HOLD, history.holds),
        (_LATE, history.late),
    )
    for kind, found in rows:
        for row in found:
            yield kind, _encode(row)
    for blob in parcel.blobs:
        yield _BLOB, blob


def _add(out: bytearray, kind: int, content: bytes) -> None:
    head = bytes([kind]) + len(content).to_bytes(_LENGTH, "big")
    digest = sha256(head)
    digest.update(content)
    out += head
    out += content
    out += digest.digest()


def unwrap(data: bytes) -> Parcel:
    """Raises InputError for what is no exported run, SchemaTooNewError for a newer form, and
    CheckpointCorruptError for a file that is cut off or was changed."""
    if not data.startswith(MAGIC):
        raise InputError(
            "this is not an exported run.", hint="Give the bytes that export_run answered, unchanged."
        )
    if len(data) <= len(MAGIC):
        raise damaged("it ends after its first bytes")
    version = data[len(MAGIC)]
    if version > VERSION:
        raise SchemaTooNewError(
            f"this exported run has form {version}, and this Holdfast reads forms up to {VERSION}.",
            hint="Update Holdfast here; nothing was imported.",
        )
    parts: dict[int, list[Any]] = {kind: [] for kind in _NAMES}
    for number, (kind, content) in enumerate(_parts(data), 1):
        parts[kind].append(_decoded(number, kind, content))
    if len(parts[_RUN]) != 1 or len(parts[_GRAPH]) != 1:
        raise damaged("it is not one run with one graph")
    return _parcel(parts)


def _parcel(parts: dict[int, list[Any]]) -> Parcel:
    blobs: list[bytes] = parts[_BLOB]
    history = RunHistory(
        run=parts[_RUN][0],
        records=parts[_RECORD],
        events=parts[_EVENT],
        holds=parts[_HOLD],
        late=parts[_LATE],
        blobs=[sha256(blob).digest() for blob in blobs],
    )
    return Parcel(history, parts[_GRAPH][0], blobs)


def _parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Every part but the last, each checked; the last one must be the end of the file."""
    view, at, number = memoryview(data), len(MAGIC) + 1, 0
    while True:
        number += 1
        head = at + 1 + _LENGTH
        end = head + int.from_bytes(view[at + 1 : head], "big")
        if end + _DIGEST > len(data):
            raise damaged(f"it is cut off in part {number}")
        kind = data[at]
        if sha256(view[at:end]).digest() != data[end : end + _DIGEST] or kind not in _NAMES:
            raise damaged(f"part {number} ({_NAMES.get(kind, 'unknown')}) does not match its digest")
        if kind == _END:
            break
        yield kind, data[head:end]
        at = end + _DIGEST
    if data[head:end] != sha256(view[:at]).digest() or end + _DIGEST != len(data):
        raise damaged("it does not match the digest over the whole")


def _decoded(number: int, kind: int, content: bytes) -> Any:
    decoder = _decoders.get(kind)
    if decoder is None:
        return content
    try:
        return decoder.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise damaged(f"part {number} ({_NAMES[kind]}) cannot be read: {error}") from error


def damaged(what: str) -> CheckpointCorruptError:
    return CheckpointCorruptError(
        f"the exported run is damaged: {what}.",
        hint="Export it again, or copy it again; nothing was imported.",
    )
