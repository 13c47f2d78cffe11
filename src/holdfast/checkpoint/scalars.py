"""The scalars that MessagePack does not know, each as an extension with a code of its own.

The codes are part of the stored format: never reuse one, never change what a payload means.

    1  tuple        array of the items
    2  frozenset    array of the items, in the order of their encoded bytes
    3  map          array key, value, key, value .. for a dict with keys that are not plain scalars
    4  int          beyond 64 bits: big-endian two's complement
    5  Decimal      its text
    6  datetime     array year, month, day, hour, minute, second, microsecond, fold, zone
    7  date         array year, month, day
    8  time         array hour, minute, second, microsecond, fold, zone
    9  timedelta    array days, seconds, microseconds
    10 UUID         its 16 bytes
    11 complex      two big-endian doubles
    12 BlobRef      array digest, size
    13 registered   array name, member name | flag value | map of fields

A zone is nil (naive), a key of the zone database, an offset in microseconds, or array offset, name.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from struct import Struct
from typing import Any, Final, cast
from uuid import UUID

import msgspec
from msgspec.msgpack import Ext

from holdfast.errors import ValueNotStorableError
from holdfast.types.value import BlobRef

TUPLE, FROZENSET, MAP, BIG_INT, DECIMAL, DATETIME, DATE, TIME, TIMEDELTA, UUID_, COMPLEX, BLOB, REGISTERED = (
    range(1, 14)
)

encode: Final = msgspec.msgpack.Encoder().encode
decode: Final = msgspec.msgpack.Decoder().decode
_two_doubles: Final = Struct(">dd")
_MICROSECOND: Final = timedelta(microseconds=1)


def pack_big_int(value: int) -> Ext:
    return Ext(BIG_INT, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


def _pack_decimal(value: Decimal) -> Ext:
    # As text, which keeps trailing zeros and special values.
    return Ext(DECIMAL, str(value).encode())


def _pack_datetime(v: datetime) -> Ext:
    # By its parts, not as an instant: the rules of a zone may change, and the local time must come back.
    parts = (v.year, v.month, v.day, v.hour, v.minute, v.second, v.microsecond, v.fold, _zone(v.tzinfo))
    return Ext(DATETIME, encode(parts))


def _pack_date(value: date) -> Ext:
    return Ext(DATE, encode((value.year, value.month, value.day)))


def _pack_time(v: time) -> Ext:
    return Ext(TIME, encode((v.hour, v.minute, v.second, v.microsecond, v.fold, _zone(v.tzinfo))))


def _pack_timedelta(value: timedelta) -> Ext:
    return Ext(TIMEDELTA, encode((value.days, value.seconds, value.microseconds)))


def _pack_uuid(value: UUID) -> Ext:
    return Ext(UUID_, value.bytes)


def _pack_complex(value: complex) -> Ext:
    return Ext(COMPLEX, _two_doubles.pack(value.real, value.imag))


def pack_blob_ref(value: BlobRef) -> Ext:
    return Ext(BLOB, encode((value.digest, value.size)))


def _zone(tz: tzinfo | None) -> Any:
    if tz is None:
        return None
    if type(tz) is timezone:
        offset, *name = cast("tuple[timedelta, str]", tz.__getinitargs__())  # type: ignore[attr-defined]
        micros = offset // _MICROSECOND
        return [micros, name[0]] if name else micros
    from zoneinfo import ZoneInfo

    if type(tz) is ZoneInfo and tz.key:
        return tz.key
    raise ValueNotStorableError(
        f"it has a time zone of the kind {type(tz).__module__}.{type(tz).__qualname__}.",
        hint="Use zoneinfo.ZoneInfo or datetime.timezone.",
    )


def _read_zone(raw: Any) -> tzinfo | None:
    if raw is None:
        return None
    if isinstance(raw, str):
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

        try:
            return ZoneInfo(raw)
        except ZoneInfoNotFoundError:
            raise ValueNotStorableError(
                f"the time zone {raw!r} of a stored value is not known on this machine.",
                hint="Install the package `tzdata`.",
            ) from None
    if isinstance(raw, int):
        return timezone(timedelta(microseconds=raw))
    offset, name = raw
    return timezone(timedelta(microseconds=offset), name)


def _read_datetime(data: bytes) -> datetime:
    *parts, fold, zone = decode(data)
    return datetime(*parts, tzinfo=_read_zone(zone), fold=fold)


def _read_time(data: bytes) -> time:
    *parts, fold, zone = decode(data)
    return time(*parts, tzinfo=_read_zone(zone), fold=fold)


def _read_timedelta(data: bytes) -> timedelta:
    days, seconds, microseconds = decode(data)
    return timedelta(days, seconds, microseconds)


def _read_blob_ref(data: bytes) -> BlobRef:
    digest, size = decode(data)
    if type(digest) is not bytes or type(size) is not int:
        raise ValueError("a blob reference is a digest and a size")
    return BlobRef(digest, size)


PACK: Final[dict[type, Callable[[Any], Ext]]] = {
    Decimal: _pack_decimal,
    datetime: _pack_datetime,
    date: _pack_date,
    time: _pack_time,
    timedelta: _pack_timedelta,
    UUID: _pack_uuid,
    complex: _pack_complex,
    BlobRef: pack_blob_ref,
}

READ: Final[dict[int, Callable[[bytes], Any]]] = {
    BIG_INT: lambda data: int.from_bytes(data, "big", signed=True),
    DECIMAL: lambda data: Decimal(data.decode()),
    DATETIME: _read_datetime,
    DATE: lambda data: date(*decode(data)),
    TIME: _read_time,
    TIMEDELTA: _read_timedelta,
    UUID_: lambda data: UUID(bytes=data),
    COMPLEX: lambda data: complex(*_two_doubles.unpack(data)),
    BLOB: _read_blob_ref,
}
