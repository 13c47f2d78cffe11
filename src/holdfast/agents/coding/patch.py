"""Patches in the v4a format: parsed, and applied to the lines of a file.

*** Begin Patch
*** Update File: src/main.py
@@ def main():
 context
-removed
+added
*** End Patch
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from holdfast.agents.tools import ToolError

BEGIN, END, END_OF_FILE = "*** Begin Patch", "*** End Patch", "*** End of File"
ADD, DELETE, UPDATE, MOVE = "*** Add File: ", "*** Delete File: ", "*** Update File: ", "*** Move to: "
_HUNK: Final = "@@"
_ENDS: Final = re.compile(r"\r\n|\n|\r")
# Models write plain signs where a text has typographic ones.
_PLAIN: Final = (
    dict.fromkeys((*range(0x2010, 0x2016), 0x2212), "-")
    | dict.fromkeys(range(0x2018, 0x201C), "'")
    | dict.fromkeys(range(0x201C, 0x2020), '"')
    | dict.fromkeys((0xA0, *range(0x2002, 0x200B), 0x202F, 0x205F, 0x3000), " ")
)
_LOOSER: Final[tuple[Callable[[str], str], ...]] = (
    lambda line: line,
    str.rstrip,
    str.strip,
    lambda line: line.strip().translate(_PLAIN),
)


class Hunk(msgspec.Struct):
    """`lines`: each with its sign, " ", "-" or "+". `hint`: a line before them. `at_end`: of the file."""

    hint: str = ""
    lines: list[tuple[str, str]] = []
    at_end: bool = False

    @property
    def old(self) -> list[str]:
        return [text for sign, text in self.lines if sign != "+"]


class PatchOperation(msgspec.Struct):
    """`kind`: add, delete or update. `added`: the lines of a new file."""

    kind: str
    path: str
    moved_to: str = ""
    hunks: list[Hunk] = []
    added: list[str] = []


def parse_patch(text: str) -> list[PatchOperation]:
    """Raises ToolError, with the line."""
    lines = text.strip().split("\n")
    lines = [line.removesuffix("\r") for line in lines]
    if lines[0].strip() != BEGIN or lines[-1].strip() != END or len(lines) < 2:
        raise ToolError(f"the patch must begin with {BEGIN!r} and end with {END!r}")
    found: list[PatchOperation] = []
    for number, line in enumerate(lines[1:-1], 2):
        _take(found, line, number)
    if not found:
        raise ToolError("the patch changes no file")
    for each in found:
        if each.kind == "update" and not each.hunks and not each.moved_to:
            raise ToolError(f"the patch of {each.path} has no hunk")
        if any(not hunk.lines for hunk in each.hunks):
            raise ToolError(f"a hunk of {each.path} has no lines")
    return found


def _take(found: list[PatchOperation], line: str, number: int) -> None:
    last = found[-1] if found else None
    in_hunk = last is not None and bool(last.hunks) and bool(last.hunks[-1].lines)
    # Inside of a hunk an indented line is a line of the file.
    head = line.rstrip() if in_hunk and line.startswith(" ") else line.strip()
    for mark, kind in ((ADD, "add"), (DELETE, "delete"), (UPDATE, "update")):
        if head.startswith(mark.rstrip()) and not (in_hunk and line.startswith(" ")):
            path = head.removeprefix(mark.rstrip()).strip()
            if not path:
                raise ToolError(f"line {number} of the patch names no file")
            found.append(PatchOperation(kind, path))
            return
    if last is None:
        raise ToolError(f"line {number} of the patch is not valid: {line[:80]!r}")
    _take_line(last, line, number)


def _take_line(last: PatchOperation, line: str, number: int) -> None:
    if last.kind == "add" and line.startswith("+"):
        last.added.append(line[1:])
    elif last.kind == "update" and line.startswith(MOVE.rstrip()) and not (last.hunks or last.moved_to):
        last.moved_to = line.removeprefix(MOVE.rstrip()).strip()
        if not last.moved_to:
            raise ToolError(f"line {number} of the patch names no file")
    elif last.kind == "update" and (line == _HUNK or line.startswith(f"{_HUNK} ")):
        last.hunks.append(Hunk(line[len(_HUNK) + 1 :]))
    elif last.kind == "update" and line.rstrip() == END_OF_FILE and last.hunks:
        last.hunks[-1].at_end = True
    elif last.kind == "update" and (not line or line[0] in " -+"):
        if not last.hunks:
            # The first hunk may begin without a header.
            last.hunks.append(Hunk())
        if last.hunks[-1].at_end:
            raise ToolError(f"line {number} of the patch is after {END_OF_FILE!r}: {line[:80]!r}")
        last.hunks[-1].lines.append((line[:1] or " ", line[1:]))
    else:
        raise ToolError(f"line {number} of the patch is not valid: {line[:80]!r}")


# ---------------------------------------------------------------------- applied to a text
def patched(text: str, hunks: Sequence[Hunk], path: str) -> str:
    """Lines that stay keep their own ends; new ones get the end that most lines have. Raises ToolError."""
    lines, ends = _split(text)
    usual = _usual(ends)
    changes: list[tuple[int, int, list[str | int]]] = []
    at = 0
    for hunk in hunks:
        start, size, at = _located(lines, hunk, at, path)
        changes.append((start, size, _new_lines(hunk, start, size)))
    # From the end: the places before a change stay as they were found.
    for start, size, new in sorted(changes, key=lambda each: each[0])[::-1]:
        made = [(each, usual) if isinstance(each, str) else (lines[each], ends[each]) for each in new]
        lines[start : start + size] = [line for line, _ in made]
        ends[start : start + size] = [end for _, end in made]
    # A last line without an end gets one: the next one would continue it.
    return "".join(line + (end or usual) for line, end in zip(lines, ends, strict=True))


def _new_lines(hunk: Hunk, start: int, size: int) -> list[str | int]:
    """New lines, and the numbers of lines that stay as they are."""
    found: list[str | int] = []
    number = start
    for sign, text in hunk.lines:
        if sign == "+":
            found.append(text)
            continue
        if sign == " " and number < start + size:
            found.append(number)
        number += 1
    return found


def _located(lines: list[str], hunk: Hunk, at: int, path: str) -> tuple[int, int, int]:
    """(where its lines begin, how many there are, where the next hunk is looked for)."""
    if hunk.hint:
        found = _find(lines, [hunk.hint], at)
        if found is None:
            raise ToolError(f"{path} has no line {hunk.hint[:200]!r} after line {at}")
        at = found + 1
    old = hunk.old
    if not old:
        # Only additions: after the hint, else at the end.
        return (at if hunk.hint and not hunk.at_end else len(lines)), 0, at
    found = _find(lines, old, at, at_end=hunk.at_end)
    if found is None and hunk.hint and old[0].strip() == hunk.hint.strip():
        # The hint is often repeated as the first line of its hunk.
        found = _find(lines, old, at - 1, at_end=hunk.at_end)
    if found is None and not old[-1]:
        # An empty line at its end often stands for the end of the last line.
        old = old[:-1]
        found = _find(lines, old, at, at_end=hunk.at_end) if old else None
    if found is None:
        shown = "\n".join(hunk.old)[:1000]
        raise ToolError(f"these lines are not in {path} after line {at}; read it again:\n{shown}")
    return found, len(old), found + len(old)


def _find(lines: Sequence[str], wanted: Sequence[str], at: int, *, at_end: bool = False) -> int | None:
    """The first place, by the strictest comparison that finds one."""
    first = max(at, len(lines) - len(wanted)) if at_end else at
    for alike in _LOOSER:
        sought = [alike(line) for line in wanted]
        here = [alike(line) for line in lines[first:]]
        for start in range(len(here) - len(sought) + 1):
            if here[start] == sought[0] and here[start : start + len(sought)] == sought:
                return first + start
    return None


def _split(text: str) -> tuple[list[str], list[str]]:
    """The lines, and how each of them ends."""
    lines: list[str] = []
    ends: list[str] = []
    at = 0
    for found in _ENDS.finditer(text):
        lines.append(text[at : found.start()])
        ends.append(found[0])
        at = found.end()
    if at < len(text):
        lines.append(text[at:])
        ends.append("")
    return lines, ends


def _usual(ends: Iterable[str]) -> str:
    known = [end for end in ends if end]
    return max(("\n", "\r\n", "\r"), key=known.count) if known else "\n"
