"""CRC-32 of a value that is mostly an earlier one, without reading all of it again.

The checksum of what two pieces are together follows from that of each and the length of the second one:
the first checksum is moved on as if so many zero bytes followed. To move one on by a power of two of bytes
takes a look into four tables, one for each of its bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

_POLYNOMIAL: Final = 0xEDB88320  # that of zlib, its bits reversed
_BITS: Final = 32

Tables = tuple[list[int], list[int], list[int], list[int]]


def checksum(old: bytes, old_crc: int, parts: Sequence[tuple[int, int] | bytes]) -> int | None:
    """Of the value that consists of these parts: bytes, or (start, end) of the old one. None if a part is
    not the rest of the old value from some place on."""
    crc = 0
    for part in parts:
        if isinstance(part, bytes):
            crc = zlib.crc32(part, crc)
            continue
        start, end = part
        if end != len(old) or start > end - start:
            return None
        crc = _moved_on(crc ^ zlib.crc32(old[:start]), end - start) ^ old_crc
    return crc


def _moved_on(crc: int, size: int) -> int:
    power = 0
    while size:
        if size & 1:
            crc = _looked_up(_tables(power), crc)
        size >>= 1
        power += 1
    return crc


def _looked_up(tables: Tables, crc: int) -> int:
    a, b, c, d = tables
    return a[crc & 255] ^ b[crc >> 8 & 255] ^ c[crc >> 16 & 255] ^ d[crc >> 24]


@lru_cache(64)
def _tables(power: int) -> Tables:
    """For 2 ** power bytes."""
    if power == 0:
        moved = [_after_a_byte(1 << bit) for bit in range(_BITS)]
    else:
        half = _tables(power - 1)
        moved = [_looked_up(half, _looked_up(half, 1 << bit)) for bit in range(_BITS)]
    return _table(moved[:8]), _table(moved[8:16]), _table(moved[16:24]), _table(moved[24:])


def _after_a_byte(crc: int) -> int:
    for _ in range(8):
        crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
    return crc


def _table(bits: Sequence[int]) -> list[int]:
    """For each byte, from what its bits are."""
    found = [0]
    for bit in bits:
        found += [each ^ bit for each in found]
    return found
