"""The values of channels: where each is stored, how a new version is stored, and how stored ones are rebuilt.

What a checkpoint refers to is in its body: small values themselves, of larger ones the numbers of their rows.
"""

from __future__ import annotations

import itertools
import os
import secrets
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from holdfast.checkpoint.compress import MAX_DECOMPRESSED, compress, decompress
from holdfast.errors import CheckpointCorruptError
from holdfast.integrations.langgraph.deltas import MOST_DELTAS, apply_deltas, delta_of
from holdfast.types.graph_thread import GraphValueRow

IN_ROW: Final = 128
"""Bytes up to which a value is in the row of its checkpoint."""
_MOST_READ: Final = 3  # times the value, to load it
_EMPTY: Final = 200  # bytes of a remembered thread without values
CACHED: Final = 64 << 20
"""Bytes of earlier values that a saver remembers, to store the next as differences."""

Typed = tuple[str, bytes]
ThreadKey = tuple[str, str, str]
"""(tenant, thread, namespace)"""


class ValueRef(msgspec.Struct, frozen=True, array_like=True):
    """`data`: the value, if it is small; else `number` is that of its row. Under a negative number the row
    has it compressed."""

    type: str
    version: str | int | float
    number: int | None = None
    data: bytes | None = None


class CheckpointBody(msgspec.Struct, frozen=True, array_like=True):
    """What is stored of a checkpoint, beside its values. `form` is the number of this layout."""

    form: int
    checkpoint: Typed
    metadata: Typed
    values: dict[str, ValueRef]


class StoredValue(msgspec.Struct, frozen=True):
    """A value as it is remembered. `whole`: the size of the last one in its chain that is stored whole;
    `deltas`, `number_of_deltas`: of the differences since. `crc`: of the data; 0 if it is not known."""

    ref: ValueRef
    data: bytes
    whole: int
    deltas: int = 0
    number_of_deltas: int = 0
    crc: int = 0


_body = msgspec.msgpack.Decoder(CheckpointBody)
_numbers = itertools.count(1)


def _draw_numbers() -> None:
    """Of rows of values: one after the other from a random one on, so that no other process has them, and
    rows that are stored together are side by side in the file."""
    global _numbers
    _numbers = itertools.count(secrets.randbits(62) + 1)


_draw_numbers()
os.register_at_fork(after_in_child=_draw_numbers)


def read_body(data: bytes) -> CheckpointBody:
    """Raises ValueError."""
    try:
        return _body.decode(data)
    except msgspec.MsgspecError as error:
        raise ValueError(f"the body of a checkpoint cannot be read: {error}") from error


def store_value(
    channel: str, version: str | int | float, value: Typed, before: StoredValue | None
) -> tuple[StoredValue, GraphValueRow | None]:
    """How a new version of a value is stored; `before` is the one that it may be stored as differences of."""
    kind, data = value[0], bytes(value[1])
    if len(data) <= IN_ROW:
        return StoredValue(ValueRef(kind, version, data=data), data, len(data), crc=zlib.crc32(data)), None
    number = next(_numbers)
    ref = ValueRef(kind, version, number=number)
    found = None
    if before is not None and before.ref.number is not None:
        found = delta_of(before.data, data, before.crc)
    if found is not None and before is not None:
        delta, crc = found
        deltas, count = before.deltas + len(delta), before.number_of_deltas + 1
        read = before.whole + deltas
        if count < MOST_DELTAS and deltas < len(data) and read <= _MOST_READ * len(data):
            row = GraphValueRow(number=number, channel=channel, data=delta, base=before.ref.number)
            return StoredValue(ref, data, before.whole, deltas, count, crc), row
    small = compress(data) if len(data) <= MAX_DECOMPRESSED else None
    if small is not None:
        ref = msgspec.structs.replace(ref, number=-number)
    row = GraphValueRow(number=ref.number or 0, channel=channel, data=data if small is None else small)
    return StoredValue(ref, data, len(data), crc=zlib.crc32(data) if found is None else found[1]), row


def rebuild_all(
    refs: Sequence[Mapping[str, ValueRef]], rows: Iterable[GraphValueRow]
) -> list[dict[str, StoredValue | str]]:
    """The values that the refs of each checkpoint name. A text instead of a value says what is wrong with it.
    The newest checkpoint is first: values of the later ones are often parts of its values."""
    by_number = {row.number: row for row in rows}
    built: dict[int, StoredValue] = {}
    found = [
        {channel: _rebuilt(ref, by_number, built) for channel, ref in each.items()} for each in refs[::-1]
    ]
    return found[::-1]


def _rebuilt(
    ref: ValueRef, rows: Mapping[int, GraphValueRow], built: dict[int, StoredValue]
) -> StoredValue | str:
    """From the nearest value in its chain that was `built`, or the one that is stored whole."""
    if ref.number is None:
        return StoredValue(ref, ref.data or b"", len(ref.data or b""))
    chain: list[GraphValueRow] = []
    at: int | None = ref.number
    while at is not None and at not in built:
        row = rows.get(at)
        if row is None:
            return f"a part of it ({at}) is missing"
        chain.append(row)
        at = row.base
    try:
        first = _whole(chain.pop()) if at is None else built[at]
        data = apply_deltas(first.data, [row.data for row in reversed(chain)])
    except (CheckpointCorruptError, ValueError) as error:
        return str(error)
    deltas = first.deltas + sum([len(row.data) for row in chain])
    found = StoredValue(ref, data, first.whole, deltas, first.number_of_deltas + len(chain))
    built[ref.number] = found
    return found


def _whole(row: GraphValueRow) -> StoredValue:
    data = decompress(row.data) if row.number < 0 else row.data
    return StoredValue(ValueRef("", "", row.number), data, len(data))


class _Kept(NamedTuple):
    values: dict[str, StoredValue]
    newest: str  # checkpoint
    size: int


class ValueCache:
    """The newest values of recently used threads, by channel. Used from any thread."""

    def __init__(self, most: int = CACHED) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._size = 0
        self._kept: OrderedDict[ThreadKey, _Kept] = OrderedDict()

    def get(self, key: ThreadKey) -> dict[str, StoredValue]:
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return {}
            self._kept.move_to_end(key)
            return found.values

    def is_new(self, key: ThreadKey, checkpoint: str) -> bool:
        """Whether it is newer than all that were put or loaded before. If not, the store may have it: then
        it has not taken the values of this put, and they must not be remembered."""
        with self._lock:
            kept = self._kept.get(key, _Kept({}, "", _EMPTY))
            if checkpoint <= kept.newest:
                return False
            self._put(key, kept._replace(newest=checkpoint))
            return True

    def put(self, key: ThreadKey, values: dict[str, StoredValue], checkpoint: str = "") -> None:
        with self._lock:
            newest = max(checkpoint, self._kept[key].newest) if key in self._kept else checkpoint
            self._put(key, _Kept(values, newest, _size(values)))

    def _put(self, key: ThreadKey, kept: _Kept) -> None:
        before = self._kept.pop(key, None)
        self._size += kept.size - (0 if before is None else before.size)
        self._kept[key] = kept
        while self._size > self._most and self._kept:
            _, dropped = self._kept.popitem(last=False)
            self._size -= dropped.size

    def drop(self, tenant: str, thread: str) -> None:
        with self._lock:
            for key in [key for key in self._kept if key[:2] == (tenant, thread)]:
                self._size -= self._kept.pop(key).size


def _size(values: dict[str, StoredValue]) -> int:
    # Each entry costs some memory of its own, however small the value is.
    return _EMPTY + sum([len(each.data) + 200 for each in values.values()])


def body_bytes(checkpoint: Typed, metadata: Typed, values: dict[str, ValueRef]) -> bytes:
    return msgspec.msgpack.encode(CheckpointBody(1, _typed(checkpoint), _typed(metadata), values))


def _typed(value: Any) -> Typed:
    # A bytearray is not encoded as bytes.
    return value[0], bytes(value[1])
