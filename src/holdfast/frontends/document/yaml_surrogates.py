r"""Escapes of surrogates in YAML, such as "\ud83d\ude00", which JSON allows and libyaml refuses.

PyYAML's own parser reads them, but is ten times slower. They are moved to private-use characters that the
text does not have, by escapes of the same length, so that every place stays the same, and back in the values.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Any, Final

from holdfast.frontends.document.source import TextProblem

# An escape after an even number of backslashes: those stand for themselves.
_ESCAPE: Final = re.compile(r"(?<!\\)((?:\\\\)*)(\\u[dD][89a-fA-F][0-9a-fA-F]{2})")
_FIRST: Final = 0xD800
_COUNT: Final = 0x800
_FREE: Final = (0xE000, 0xE800, 0xF000)


class MovedEscapes:
    """`text`: with the moved ones. Raises TextProblem if there is no place for them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._at: list[int] = []
        self._given: list[str] = []
        first = next(_ESCAPE.finditer(text), None) if "\\u" in text else None
        if first is None:
            return
        block = next((each for each in _FREE if not _used(each).search(text)), None)
        if block is None:
            line = text.count("\n", 0, first.end()) + 1
            raise TextProblem(
                "surrogate", "escapes of surrogate pairs stand beside private-use characters", line,
                first.start(2) - text.rfind("\n", 0, first.end()), "write the character itself",
            )  # fmt: skip
        self._shift = block - _FIRST
        self._moved = re.compile(f"[{chr(block)}-{chr(block + _COUNT - 1)}]")
        self._written = re.compile("|".join(_escapes(block)))
        self.text = _ESCAPE.sub(self._move, text)

    def _move(self, found: re.Match[str]) -> str:
        self._at.append(found.start(2))
        self._given.append(found[2])
        return f"{found[1]}\\u{int(found[2][2:], 16) + self._shift:04x}"

    def back(self, event: Any) -> str:
        """The text of a scalar as it was given; surrogates in it are halves still."""
        value: str = event.value
        if not self._at:
            return value
        if event.style == '"':
            return self._moved.sub(lambda one: chr(ord(one[0]) - self._shift), value)
        if "\\u" not in value:
            return value
        # Not in double quotes, where they are no escapes but stand for themselves.
        begin, end = (bisect_left(self._at, mark.index) for mark in (event.start_mark, event.end_mark))
        count = len(self._written.findall(value))
        given = iter(self._given[begin:end][-count:] if count else ())
        return self._written.sub(lambda one: next(given, one[0]), value)


def _escapes(block: int) -> list[str]:
    """Patterns of the escapes of a block, by their first two digits."""
    high = block >> 8
    return [rf"\\u{high + each:02x}[0-9a-f]{{2}}" for each in range(_COUNT >> 8)]


def _used(block: int) -> re.Pattern[str]:
    """Whether a text has one of these characters, or an escape of one."""
    high = "|".join(f"{(block >> 8) + each:02x}" for each in range(_COUNT >> 8))
    own = f"[{chr(block)}-{chr(block + _COUNT - 1)}]"
    return re.compile(rf"{own}|\\(?:u|U0000)(?i:{high})")
