"""Migrations from one version of a flow to another, and how they are chained."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

MIGRATED = "migrated"
"""The outcome of the snapshot record that migrates a run to another version."""

MIGRATION = "migration"
"""The key of that snapshot for the two versions and the renamed nodes."""


class Renamed(msgspec.Struct, frozen=True):
    """As a field's new value: the value of the old field `was`."""

    was: str


def renamed(was: str) -> Renamed:
    """`state={"total": renamed("amount")}`: the field `total` gets the value that `amount` had."""
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
    """The shortest chain from one version to another, each given by all its names; None if there is none."""
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
    """The new name of each renamed node at the end of the chain."""
    names: dict[str, str] = {}
    for step in way:
        moved = {old: step.rename.get(now, now) for old, now in names.items()}
        fresh = {old: new for old, new in step.rename.items() if old not in names.values()}
        names = {**fresh, **moved}
    return names
