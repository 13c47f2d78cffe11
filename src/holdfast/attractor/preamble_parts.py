"""The parts of a preamble, and how they share its room.

Each part gets its share first; what is left goes to the first part that can use it, so that a preamble is
full if there is enough to tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from holdfast.attractor.stage_outputs import middle_cut, tail_cut

_LEFT_OUT: Final = "- ({} more left out)"
_USEFUL: Final = 160
"""Bytes of a text below which it is not worth its line."""
_LONGEST: Final = 16_000


class PreamblePart(Protocol):
    """A part of a preamble. `share`: of the room, before others pass on what they do not need; `least`: bytes
    that it gets in any case."""

    @property
    def share(self) -> float: ...

    @property
    def least(self) -> int: ...

    def text(self, room: int) -> str:
        """Within so many bytes; empty if there is nothing to tell."""
        ...


class LongText(msgspec.Struct, frozen=True):
    """`where`: the artifact that has all of it. `size`: of the whole in bytes, if this is not the whole."""

    text: str = ""
    where: str = ""
    size: int = 0

    def cut(self, limit: int, *, tail: bool = False) -> str:
        return (tail_cut if tail else middle_cut)(self.text, limit, self.where, self.size)


class TextPart(msgspec.Struct, frozen=True):
    """A title and one text, of which the beginning and the end are kept."""

    title: str
    body: LongText = LongText()
    least: int = 0
    share: float = 0.0

    def text(self, room: int) -> str:
        left = room - len(self.title.encode()) - 1
        if left < 0:
            return ""
        body = self.body.cut(left)
        return f"{self.title}\n{body}" if body and len(body.encode()) <= left else self.title


def title_line(text: str) -> TextPart:
    return TextPart(text, least=len(text.encode()) + 1)


class TextParts(msgspec.Struct, frozen=True):
    """Several texts, each with a line of its own and an equal share; unused shares are passed on. `tails`:
    only the ends are kept."""

    title: str
    texts: Sequence[tuple[str, LongText]]
    share: float = 0.0
    least: int = 0
    tails: bool = False

    def text(self, room: int) -> str:
        left = room - len(self.title.encode()) - 1
        shown = list(self.texts)
        while shown and sum(_least(each) for each in shown) > left:
            shown.pop()
        if not shown:
            return ""
        left -= sum(len(line.encode()) + 1 for line, _ in shown)
        rooms = equal_shares([_size(each.text) for _, each in shown], left)
        lines = [self.title]
        for (line, each), given in zip(shown, rooms, strict=True):
            lines.append(line)
            if each.text and given > 1:
                lines.append(each.cut(given - 1, tail=self.tails))
        more = len(self.texts) - len(shown)
        found = "\n".join([*lines, *([_LEFT_OUT.format(more)] if more else [])])
        return found if len(found.encode()) <= room else "\n".join(lines)


def _size(text: str) -> int:
    return len(text.encode()) + 1 if text else 0


def _least(each: tuple[str, LongText]) -> int:
    line, long = each
    return len(line.encode()) + 1 + min(_size(long.text), _USEFUL + len(long.where.encode()))


def equal_shares(sizes: Sequence[int], room: int) -> list[int]:
    """Of each size as much as an equal share allows; what one does not need, the others get."""
    given = [0] * len(sizes)
    left, wanting = max(0, room), [place for place, size in enumerate(sizes) if size]
    while wanting:
        share = left // len(wanting)
        small = [place for place in wanting if sizes[place] <= share]
        if not small:
            for place in wanting:
                given[place] = share
            break
        for place in small:
            given[place] = sizes[place]
            left -= sizes[place]
        wanting = [place for place in wanting if place not in small]
    return given


class LineList(msgspec.Struct, frozen=True):
    """A line for each of many things, each clipped to the same number of characters: at least `clip`, and as
    many as fit. If not all lines fit, the first ones; with `newest_last` the last ones."""

    title: str
    lines: Callable[[int], list[str]]
    clip: int = 0
    share: float = 0.0
    least: int = 0
    newest_last: bool = False

    def text(self, room: int) -> str:
        shortest = self.lines(self.clip)
        if not shortest:
            return ""
        if self._size(shortest) > room:
            return self._some(shortest, room)
        low, high = self.clip, _LONGEST
        if self._size(self.lines(high)) <= room:
            low = high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._size(self.lines(middle)) <= room else (low, middle)
        return "\n".join([self.title, *self.lines(low)])

    def _size(self, lines: Sequence[str]) -> int:
        return sum(len(line.encode()) + 1 for line in (self.title, *lines))

    def _some(self, lines: Sequence[str], room: int) -> str:
        left = room - len(self.title.encode()) - len(_LEFT_OUT.encode()) - 10
        kept: list[str] = []
        for line in reversed(lines) if self.newest_last else lines:
            left -= len(line.encode()) + 1
            if left < 0:
                break
            kept.append(line)
        if not kept:
            return ""
        more = _LEFT_OUT.format(len(lines) - len(kept))
        shown = [more, *reversed(kept)] if self.newest_last else [*kept, more]
        return "\n".join([self.title, *shown])


def filled(head: Sequence[str], parts: Sequence[PreamblePart], budget: int) -> str:
    """The head and the parts, one after the other, within a number of bytes."""
    left = budget - sum(len(line.encode()) + 1 for line in head)
    rooms: list[int] = []
    for part in parts:
        wanted = _size(part.text(left))
        room = min(wanted, max(part.least, int(part.share * left)), left - sum(rooms))
        rooms.append(max(0, room))
    texts = [part.text(room) for part, room in zip(parts, rooms, strict=True)]
    for place, part in enumerate(parts):
        # Others have not used all of their room.
        more = left - sum(_size(text) for text in texts) + _size(texts[place])
        if more > rooms[place]:
            texts[place] = part.text(more)
    return "\n".join([*head, *(text for text in texts if text)])


def one_line(text: str) -> str:
    return " ".join(text.split())


def clipped(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: max(1, limit - 1)]}…"
