"""Values as differences: ranges of an earlier value plus new bytes.

What changes from step to step is mostly an append to a list: its head has the new length, and between the two
nothing moves. So the search follows the earlier value and looks a little around where they part.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast.integrations.langgraph.checksums import checksum

SHORTEST: Final = 32
"""Bytes: a range that is shorter is written out."""
_NEAR: Final = 1 << 16
_SMALL_STEPS: Final = 16
_WIDE_STEP: Final = 64
_MOST_SEARCHES: Final = 96
_FAR_SEARCHES: Final = 4
_SHORT_APPEND: Final = 4096  # bytes

MOST_DELTAS: Final = 512
"""Differences in a row; then the value is stored whole."""


class ValueDelta(msgspec.Struct, frozen=True, array_like=True):
    """`parts`: (start, end) of the earlier value, or bytes."""

    size: int
    crc: int
    parts: list[tuple[int, int] | bytes]


_decoder = msgspec.msgpack.Decoder(ValueDelta)


def delta_of(old: bytes, new: bytes, old_crc: int = 0) -> tuple[bytes, int] | None:
    """How `new` differs from `old`, and its checksum; None where that is not under half the size of `new`.
    `old_crc`: if the caller has it."""
    parts = _parts(old, new)
    literal = sum(len(part) for part in parts if isinstance(part, bytes))
    if literal * 2 >= len(new):
        return None
    crc = checksum(old, old_crc, parts) if old_crc else None
    crc = zlib.crc32(new) if crc is None else crc
    data = msgspec.msgpack.encode(ValueDelta(len(new), crc, parts))
    return (data, crc) if len(data) * 2 < len(new) else None


def apply_deltas(old: bytes, all_data: Sequence[bytes]) -> bytes:
    """One after the other. Raises ValueError if the result is not what was stored. Between them nothing is
    checked: the checksum of the last one proves the others, and to compute it takes longer than the rest."""
    new, delta = old, None
    for data in all_data:
        try:
            delta = _decoder.decode(data)
        except msgspec.MsgspecError as error:
            raise ValueError(f"a difference cannot be read: {error}") from error
        new = b"".join([part if isinstance(part, bytes) else new[part[0] : part[1]] for part in delta.parts])
    if delta is not None and (len(new) != delta.size or zlib.crc32(new) != delta.crc):
        raise ValueError("a value that was built from differences is not the one that was stored.")
    return new


def _parts(old: bytes, new: bytes) -> list[tuple[int, int] | bytes]:
    if old == new:
        return [(0, len(old))]
    tail = _common_end(old, new)
    tail = tail if tail >= SHORTEST else 0
    parts = _before_tail(old, new[: len(new) - tail])
    return [*parts, (len(old) - tail, len(old))] if tail else parts


def _before_tail(old: bytes, new: bytes) -> list[tuple[int, int] | bytes]:
    parts: list[tuple[int, int] | bytes] = []
    at, here, done, search = 0, 0, 0, _Search(old, new)
    while at < len(new):
        same = _common(old, here, new, at)
        if same >= SHORTEST:
            if done < at:
                parts.append(new[done:at])
            parts.append((here, here + same))
            at, here = at + same, here + same
            done = at
        if here >= len(old) and len(new) - at <= _SHORT_APPEND:
            break  # a search would take longer than writing it out
        found = search.next(at, here)
        if found is None:
            break
        at, here = found
    if done < len(new):
        parts.append(new[done:])
    return parts


class _Search:
    """Where the values are alike again. Bounded in all, and few searches read all of the earlier value."""

    def __init__(self, old: bytes, new: bytes) -> None:
        self._old, self._new = old, new
        self._left, self._far_left = _MOST_SEARCHES, _FAR_SEARCHES

    def next(self, at: int, here: int) -> tuple[int, int] | None:
        start, step = at, 1
        shifted = self._in_place(at, here)
        if shifted:
            return at + shifted, here + shifted
        if here >= len(self._old):
            # What follows was appended: only a little is tried.
            self._left, self._far_left = min(self._left, _SMALL_STEPS), min(self._far_left, 1)
        while at + SHORTEST <= len(self._new) and self._left > 0:
            self._left -= 1
            anchor = self._new[at : at + SHORTEST]
            found = self._old.find(anchor, max(here - _NEAR, 0), here + (at - start) + _NEAR)
            if found < 0 and step > 1 and self._far_left > 0:
                self._far_left -= 1
                found = self._old.find(anchor)
            if found >= 0:
                back = self._backwards(at, found, at - start)
                return at - back, found - back
            step = 1 if at - start < _SMALL_STEPS else _WIDE_STEP
            at += step
        return None

    def _in_place(self, at: int, here: int) -> int:
        """After how many bytes they are alike again, if a few were replaced by as many: the length in the
        head of a list is. 0 if they are not."""
        for more in range(1, _SMALL_STEPS):
            if self._old.startswith(self._new[at + more : at + more + SHORTEST], here + more):
                return more if at + more + SHORTEST <= len(self._new) else 0
        return 0

    def _backwards(self, at: int, found: int, most: int) -> int:
        """How many bytes before these places are the same."""
        back = 0
        while back < min(most, found) and self._old[found - back - 1] == self._new[at - back - 1]:
            back += 1
        return back


def _common_end(old: bytes, new: bytes) -> int:
    most = min(len(old), len(new))
    size = 0
    while size < most and old[len(old) - size - 1] == new[len(new) - size - 1] and size < SHORTEST:
        size += 1
    if size < SHORTEST:
        return size
    low, step = size, 64
    while low < most:
        step = min(step, most - low)
        if old[len(old) - low - step : len(old) - low] == new[len(new) - low - step : len(new) - low]:
            low += step
            step *= 2
        elif step == 1:
            break
        else:
            step //= 2
            most = min(most, low + step * 2)
    return low


def _common(old: bytes, here: int, new: bytes, at: int) -> int:
    """How many bytes are the same from these places on. Blocks are compared, then halves of the last."""
    most = min(len(old) - here, len(new) - at)
    if old[here : here + 64] == new[at : at + 64] and new.startswith(memoryview(old)[here:], at):
        return most  # an append; a view, because a copy takes as long as the comparison
    low, step = 0, 64
    while low < most:
        step = min(step, most - low)
        if old[here + low : here + low + step] == new[at + low : at + low + step]:
            low += step
            step *= 2
        elif step == 1:
            break
        else:
            step //= 2
            # From here on the difference is within the block that was just compared.
            most = min(most, low + step * 2)
    return low
