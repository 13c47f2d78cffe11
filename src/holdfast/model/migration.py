"""From one version of a flow to another: what was declared, and what leads from one to the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

MIGRATED = "migrated"
"""The outcome of the snapshot record with which a run goes over to another version."""

MIGRATION = "migration"
"""The key of that snapshot under which it says from where, to where, and what was renamed."""


class Renamed(msgspec.Struct, frozen=True):
    """As a field's new value: what the field `was` called held."""

    was: str


def renamed(was: str) -> Renamed:
    """`state={"total": renamed("amount")}`: the field `total` takes over what `amount` held."""
    return Renamed(was)


Restate = Callable[[dict[str, Any]], Mapping[str, Any]]
"""From the whole old state to the whole new one."""


class Migration(msgspec.Struct, frozen=True, kw_only=True):
    """`source` and `target` are fingerprints or labels; no target: the version that declares it.

    `fields`: field -> default value, `renamed(...)` or a function of the old state.
    """

    source: str
    target: str = ""
    rename: dict[str, str] = {}
    state: Restate | None = None
    fields: dict[str, Any] = {}
    drop: tuple[str, ...] = ()


def chain(
    declared: Iterable[Migration], start: Iterable[str], goal: Iterable[str]
) -> tuple[Migration, ...] | None:
    """The shortest way from a version to another, both given by all their names; None where there is none."""
    goals = {"", *goal}
    known = tuple(declared)
    ways: list[tuple[frozenset[str], tuple[Migration, ...]]] = [(frozenset(start), ())]
    seen: set[str] = set()
    while ways:
        names, way = ways.pop(0)
        for step in known:
            if step.source not in names or step.source in seen:
                continue
            if step.target in goals:
                return (*way, step)
            ways.append((frozenset({step.target}), (*way, step)))
        seen |= names
    return None


def composed(way: Iterable[Migration]) -> dict[str, str]:
    """What each renamed node is called at the end of the way."""
    names: dict[str, str] = {}
    for step in way:
        moved = {old: step.rename.get(now, now) for old, now in names.items()}
        fresh = {old: new for old, new in step.rename.items() if old not in names.values()}
        names = {**fresh, **moved}
    return names
