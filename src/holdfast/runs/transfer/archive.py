"""The file format of exported runs: the same history gives the same bytes.

    magic, form (1 byte)
    parts: kind (1 byte), length (8 bytes, big end first), content, sha256 of all three
    the first part: kind `w`, the version of Holdfast that wrote it (from form 2 on, in every later form)
    the last part: kind `z`, its content the sha256 of everything before it

Contents are msgpack; a blob has the same bytes as in the store, an encrypted one (`c`) after its address.
Digests detect damage; they do not prove the author.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

import msgspec

from holdfast._version import __version__
from holdfast.checkpoint.encrypt import header_of
from holdfast.errors import CheckpointCorruptError, InputError, SchemaTooNewError
from holdfast.runs.record_codec import is_as_written
from holdfast.store.rows import RunHistory, RunRow
from holdfast.types.ciphertext import is_encrypted
from holdfast.types.event import EventRow
from holdfast.types.fleet import Death
from holdfast.types.hold import HoldRow
from holdfast.types.record import Record
from holdfast.types.status import RunStatus

# As in PNG: a transfer that changes line ends or the eighth bit is detected in the first bytes.
MAGIC = b"\x89HFRUN\r\n"
VERSION = 3

_LENGTH = 8
_DIGEST = 32
_RUN, _GRAPH, _RECORD, _EVENT, _HOLD, _LATE, _BLOB, _CLOSED, _WRITER, _DEATH, _END = b"rgjehlbcwdz"
_NAMES = {
    _WRITER: "writer", _CLOSED: "encrypted blob",
    _RUN: "run", _GRAPH: "graph", _RECORD: "record", _EVENT: "event", _HOLD: "hold", _LATE: "late report",
    _BLOB: "blob", _DEATH: "death", _END: "end",
}  # fmt: skip
_TYPES: dict[int, Any] = {
    _RUN: RunRow, _RECORD: Record, _EVENT: EventRow, _HOLD: HoldRow, _LATE: tuple[int, bytes],
    _DEATH: Death,
}  # fmt: skip

_encode = msgspec.msgpack.Encoder().encode
_decoders = {kind: msgspec.msgpack.Decoder(type_) for kind, type_ in _TYPES.items()}


class Archive(msgspec.Struct, frozen=True):
    history: RunHistory
    graph: bytes
    blobs: list[bytes]  # in the order of `history.blobs`
    writer: str = ""
    older: list[bytes] = []  # graphs of earlier versions of the run

    def ciphertexts(self) -> Iterator[bytes]:
        history = self.history
        yield from (record.payload for record in history.records if is_encrypted(record.payload))
        yield from (hold.context for hold in history.holds if is_encrypted(hold.context))
        yield from (blob for blob in self.blobs if is_encrypted(blob))

    def key_ids(self) -> list[str]:
        """The keys needed to read it; none for an unencrypted file."""
        return sorted({header_of(data).key for data in self.ciphertexts()})


def portable_history(history: RunHistory) -> RunHistory:
    """Without data of one store or one worker: equal for a run and its import."""
    run = history.run
    status = RunStatus.resumable if run.status is RunStatus.running else run.status
    return msgspec.structs.replace(
        history,
        run=msgspec.structs.replace(
            run, key=0, status=status, worker=None, lease_until=None, ready_at=None, read_only=False
        ),
        records=[msgspec.structs.replace(record, side=None, size=0) for record in history.records],
        holds=sorted(_of_run(run, history.holds), key=lambda hold: (hold.created_at, hold.seq, hold.id)),
        blobs=sorted(history.blobs),
    )


def _of_run(run: RunRow, holds: Iterable[HoldRow]) -> list[HoldRow]:
    """Fields of the run that a hold repeats are taken from the run: older files lack some. The object with
    its state is in another blob store."""
    shown = {
        "deployment": run.deployment,
        "instance_key": run.instance_key,
        "started_by": run.started_by,
        "read_only": False,
        "state_key": None,
    }
    return [msgspec.structs.replace(hold, **shown) for hold in holds]


def pack(archive: Archive, *, form: int | None = None) -> bytes:
    """`form`: an older format, without later additions."""
    chosen = form or VERSION
    out = bytearray(MAGIC + bytes([chosen]))
    if chosen > 1:
        _add(out, _WRITER, __version__.encode())
    for kind, content in _contents(archive):
        if kind != _DEATH or chosen > 2:
            _add(out, kind, content)
    # The digest of each part tells where damage is; this one notices that parts were removed or moved.
    _add(out, _END, sha256(out).digest())
    return bytes(out)


def _contents(archive: Archive) -> Iterator[tuple[int, bytes]]:
    history = archive.history
    yield _RUN, _encode(history.run)
    for graph in (archive.graph, *archive.older):
        yield _GRAPH, graph
    rows = (
        (_RECORD, history.records),
        (_EVENT, history.events),
        (_HOLD, history.holds),
        (_LATE, history.late),
        (_DEATH, history.deaths),
    )
    for kind, found in rows:
        for row in found:
            yield kind, _encode(row)
    for address, blob in zip(history.blobs, archive.blobs, strict=True):
        yield (_CLOSED, address + blob) if is_encrypted(blob) else (_BLOB, blob)


def _add(out: bytearray, kind: int, content: bytes) -> None:
    head = bytes([kind]) + len(content).to_bytes(_LENGTH, "big")
    digest = sha256(head)
    digest.update(content)
    out += head
    out += content
    out += digest.digest()


def unpack(data: bytes) -> Archive:
    """Raises InputError if it is not an exported run, SchemaTooNewError for a newer format, and
    CheckpointCorruptError for a truncated or changed file."""
    if not data.startswith(MAGIC):
        raise InputError(
            "this is not an exported run.", hint="Give the bytes that export_run returned, unchanged."
        )
    if len(data) <= len(MAGIC):
        raise damaged_error("it ends after its first bytes")
    version = data[len(MAGIC)]
    if version > VERSION:
        raise SchemaTooNewError(
            f"this exported run has format {version}{_written_by(data)}, but Holdfast {__version__} reads "
            f"formats up to {VERSION}.",
            hint="Update Holdfast here; nothing was imported.",
        )
    parts: dict[int, list[Any]] = {kind: [] for kind in _NAMES}
    for number, (kind, content) in enumerate(_parts(data), 1):
        # One list, in the order of the file.
        parts[_BLOB if kind == _CLOSED else kind].append(_decoded(number, kind, content))
    if len(parts[_RUN]) != 1 or not parts[_GRAPH]:
        raise damaged_error("it is not one run with its graph")
    return _archive_from(parts)


def _written_by(data: bytes) -> str:
    """The writer of a file in a newer format: its first part is readable in every format."""
    at = len(MAGIC) + 1
    if data[at : at + 1] != bytes([_WRITER]):
        return ""
    head = at + 1 + _LENGTH
    end = head + int.from_bytes(data[at + 1 : head], "big")
    if sha256(data[at:end]).digest() != data[end : end + _DIGEST]:
        return ""
    return f" (written by Holdfast {data[head:end].decode(errors='replace')})"


def _archive_from(parts: dict[int, list[Any]]) -> Archive:
    blobs: list[tuple[bytes, bytes]] = parts[_BLOB]
    history = RunHistory(
        run=parts[_RUN][0],
        records=parts[_RECORD],
        events=parts[_EVENT],
        holds=_of_run(parts[_RUN][0], parts[_HOLD]),
        late=parts[_LATE],
        blobs=[address for address, _ in blobs],
        deaths=parts[_DEATH],
    )
    writer = "".join(part.decode(errors="replace") for part in parts[_WRITER][:1])
    graph, *older = parts[_GRAPH]
    return Archive(history, graph, [blob for _, blob in blobs], writer, older)


def _parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Every part except the last, each checked; the last one must be the end of the file."""
    view, at, number = memoryview(data), len(MAGIC) + 1, 0
    while True:
        number += 1
        head = at + 1 + _LENGTH
        end = head + int.from_bytes(view[at + 1 : head], "big")
        if end + _DIGEST > len(data):
            raise damaged_error(f"it is truncated in part {number}")
        kind = data[at]
        if sha256(view[at:end]).digest() != data[end : end + _DIGEST] or kind not in _NAMES:
            raise damaged_error(f"part {number} ({_NAMES.get(kind, 'unknown')}) does not match its digest")
        if kind == _END:
            break
        yield kind, data[head:end]
        at = end + _DIGEST
    if data[head:end] != sha256(view[:at]).digest() or end + _DIGEST != len(data):
        raise damaged_error("it does not match the digest of the whole file")


def _decoded(number: int, kind: int, content: bytes) -> Any:
    if kind == _BLOB:
        return sha256(content).digest(), content
    if kind == _CLOSED:
        return content[:_DIGEST], content[_DIGEST:]
    decoder = _decoders.get(kind)
    if decoder is None:
        return content
    try:
        return decoder.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise damaged_error(f"part {number} ({_NAMES[kind]}) cannot be read: {error}") from error


def damaged_error(what: str) -> CheckpointCorruptError:
    return CheckpointCorruptError(
        f"the exported run is damaged: {what}.",
        hint="Export or copy it again. Nothing was imported.",
    )


def changed_record(history: RunHistory) -> int | None:
    """The first record that does not match its digest; encrypted ones are checked after decryption."""
    records = (record for record in history.records if not is_encrypted(record.payload))
    return next((record.seq for record in records if not is_as_written(record)), None)
