"""Where the schema is not what the migrations made of it, and what to do about each."""

from __future__ import annotations

import re

from holdfast.store.protocols import Drift
from holdfast.store.sql.postgres.drift__catalogue import DISABLED, NOT_VALID, Things

_WORD = re.compile(r"\w+")
# What keeps writers away from a store that moves (`sealing`): dropping it would open the store again.
_OF_A_MOVE = re.compile(r"\bmoved(_\w+)?\b")
# What guards a store that was moved, or is being filled; `doctor` tells of that apart.
_SEAL = re.compile(r"moved(_\w+)?")
_RESTORE = "restore it from a backup, or move the store into a new schema (`holdfast promote`)"


def drift_of(expected: Things, found: Things, schema: str, to_come: str = "") -> list[Drift]:
    """`to_come`: statements of an upgrade that is not finished; what they speak of is left out."""
    waits = set(_WORD.findall(to_come))
    # What belongs to a table that is gone, or is somebody's own, is told with the table.
    whole = _tables(expected) ^ _tables(found)
    all_found: list[Drift] = []
    for name in sorted(expected.keys() | found.keys()):
        kind, _, thing = name.partition(" ")
        wanted, is_now = expected.get(name), found.get(name)
        if (
            wanted == is_now
            or thing.rpartition(".")[2] in waits
            or _OF_A_MOVE.search(thing)
            or (kind != "table" and _table_of(kind, thing, wanted or is_now or "") in whole)
        ):
            continue
        if is_now is None:
            all_found.append(_missing(kind, thing, wanted or "", schema))
        elif wanted is None:
            if not _SEAL.fullmatch(thing.rpartition(".")[2]):
                all_found.append(_added(kind, thing))
        else:
            all_found.append(_changed(kind, thing, wanted, is_now, schema))
    return all_found


def _tables(things: Things) -> set[str]:
    return {name.removeprefix("table ") for name in things if name.startswith("table ")}


def _table_of(kind: str, thing: str, how: str) -> str:
    if kind == "index":
        return how.partition(" ON @")[2].partition(" ")[0]
    return thing.partition(".")[0]


def _missing(kind: str, thing: str, how: str, schema: str) -> Drift:
    if kind == "view":
        todo = "make it again if somebody asks it in SQL: Holdfast does not"
        return Drift(what=f"the view {thing} is missing", todo=todo, grave=False)
    return Drift(what=f"the {kind} {thing} is missing", todo=_remedy(kind, thing, how, schema), grave=True)


def _added(kind: str, thing: str) -> Drift:
    """Somebody's own: Holdfast neither reads nor writes it. A rule on one of our tables may refuse one."""
    grave = kind in ("constraint", "trigger")
    todo = "drop it if nobody needs it: it acts on what Holdfast writes" if grave else ""
    return Drift(what=f"the {kind} {thing} is not Holdfast's", todo=todo, grave=grave)


def _changed(kind: str, thing: str, wanted: str, found: str, schema: str) -> Drift:
    if found.removeprefix(NOT_VALID) == wanted and kind == "index":
        todo = f'REINDEX INDEX CONCURRENTLY "{schema}".{thing}'
        return Drift(what=f"the index {thing} is not valid", todo=todo, grave=True)
    if found.removeprefix(DISABLED) == wanted and kind == "trigger":
        table, _, name = thing.partition(".")
        todo = f'ALTER TABLE "{schema}".{table} ENABLE TRIGGER {name}'
        return Drift(what=f"the trigger {thing} is disabled", todo=todo, grave=True)
    if kind == "function":
        return Drift(
            what=f"the function {thing} is another", todo=_remedy(kind, thing, wanted, schema), grave=True
        )
    what = f"the {kind} {thing} is {found or 'plain'!r}, not {wanted or 'plain'!r}"
    # Room in pages and the like: slower or faster, never wrong.
    return Drift(what=what, todo=_mend(kind, thing, wanted, schema), grave=kind != "table")


def _remedy(kind: str, thing: str, how: str, schema: str) -> str:
    sql = how.replace("@", f'"{schema}".')
    if kind == "index":
        return sql.replace("INDEX ", "INDEX CONCURRENTLY ", 1)
    if kind in ("trigger", "function"):
        return sql
    if kind == "constraint":
        table, _, name = thing.partition(".")
        return f'ALTER TABLE "{schema}".{table} ADD CONSTRAINT {name} {sql}'
    return _RESTORE


def _mend(kind: str, thing: str, wanted: str, schema: str) -> str:
    table, _, name = thing.partition(".")
    again = _remedy(kind, thing, wanted, schema)
    if kind == "constraint":
        return f'ALTER TABLE "{schema}".{table} DROP CONSTRAINT {name}, then {again}'
    if kind == "index":
        return f'DROP INDEX CONCURRENTLY "{schema}".{thing}, then {again}'
    if kind == "trigger":
        return f'DROP TRIGGER {name} ON "{schema}".{table}, then {again}'
    if kind == "column":
        return f'change it back: ALTER TABLE "{schema}".{table} ALTER COLUMN {name} ... ({wanted})'
    return "change it back where it was not meant"
