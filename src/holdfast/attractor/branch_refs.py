"""The names of branches: as parts of a scope, and as refs of a repository."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

_PART: Final = re.compile(r"(.+)\.(\d+)\[(\d+)\]", re.DOTALL)


class Level(msgspec.Struct, frozen=True):
    """One fan-out around a stage."""

    fan: str
    visit: int
    index: int
    scope: str
    """Of the branch, with all around it."""


def levels(scope: str) -> Iterator[Level]:
    """From the outermost; `fan.1[0]/inner.2[1]/`."""
    path = ""
    for part in filter(None, scope.split("/")):
        path += f"{part}/"
        found = _PART.fullmatch(part)
        if found is not None:
            yield Level(found[1], int(found[2]), int(found[3]), path)


def refs_prefix(run: str, restarts: int) -> str:
    return f"refs/holdfast/{run}/" + (f"restart-{restarts}/" if restarts else "")


def ref_name(scope: str) -> str:
    return "+".join(f"{_word(level.fan)}.{level.visit}.{level.index}" for level in levels(scope))


def fan_name(level: Level) -> str:
    around = ref_name("".join(f"{part}/" for part in level.scope.split("/")[:-2]))
    return f"{around}{'+' if around else ''}{_word(level.fan)}.{level.visit}"


def _word(name: str) -> str:
    """git does not allow every character, and `.` and `+` separate."""
    return "".join(c if (c.isascii() and c.isalnum()) or c in "_-" else f"={ord(c):x}=" for c in name)
