"""The beginning and the end of an output of any length, as text."""

from __future__ import annotations

import codecs
from collections import deque
from typing import Final

_CONTINUES: Final = bytes(range(0x80, 0xC0))
"""Bytes of UTF-8 that continue a character."""


class KeptOutput:
    """`most`: bytes that are kept; half of them are the end."""

    def __init__(self, most: int) -> None:
        self._head, self._tail = bytearray(), deque[bytes]()
        self._half = most // 2
        self._size = 0
        self._left_out = 0

    def add(self, block: bytes) -> None:
        room = self._half - len(self._head)
        self._head += block[:room]
        if len(block) > room:
            self._tail.append(block[room:])
            self._size += len(block) - room
        while self._size > self._half:
            first = self._tail.popleft()
            over = min(len(first), self._size - self._half)
            if over < len(first):
                self._tail.appendleft(first[over:])
            self._size -= over
            self._left_out += over

    def text(self) -> str:
        head, tail = bytes(self._head), b"".join(self._tail)
        if not self._left_out:
            return (head + tail).decode(errors="replace")
        note = f"\n[{self._left_out:,} bytes were not kept]\n"
        return _without_cut_end(head) + note + _without_cut_begin(tail).decode(errors="replace")


def _without_cut_end(data: bytes) -> str:
    """A character that was cut is left out."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data)


def _without_cut_begin(data: bytes) -> bytes:
    begin = data[:3]
    return begin.lstrip(_CONTINUES) + data[3:]
