"""How much of a tool's output the model gets: characters first, then lines."""

from __future__ import annotations

from typing import Final

import msgspec


class OutputLimit(msgspec.Struct, frozen=True):
    """`tail`: only the end is kept, else both ends. `lines`: None for any number."""

    characters: int
    lines: int | None = None
    tail: bool = False


LIMITS: Final = {
    "read_file": OutputLimit(50_000),
    "shell": OutputLimit(30_000, 256),
    "grep": OutputLimit(20_000, 200),
    "glob": OutputLimit(20_000, 500),
    "list_dir": OutputLimit(20_000, 500),
    "edit_file": OutputLimit(10_000, tail=True),
    "apply_patch": OutputLimit(10_000, tail=True),
    "write_file": OutputLimit(1_000, tail=True),
    "sub-agent": OutputLimit(20_000),
}


def truncated(text: str, limit: OutputLimit, where: str) -> str:
    """The text, or what the model gets of it. `where`: the artifact that has the whole."""
    found = _by_characters(text, limit, where)
    return found if limit.lines is None else _by_lines(found, limit.lines, where)


def _by_characters(text: str, limit: OutputLimit, where: str) -> str:
    left = len(text) - limit.characters
    if left <= 0:
        return text
    note = f"[{left:,} characters are left out here; all of it is the artifact {where}]"
    if limit.tail:
        return f"{note}\n{text[left:]}"
    head = limit.characters // 2
    return f"{text[:head]}\n{note}\n{text[head + left :]}"


def _by_lines(text: str, most: int, where: str) -> str:
    lines = text.split("\n")
    left = len(lines) - most
    if left <= 0:
        return text
    head = most // 2
    note = f"[{left:,} lines are left out here; all of it is the artifact {where}]"
    return "\n".join([*lines[:head], note, *lines[head + left :]])
