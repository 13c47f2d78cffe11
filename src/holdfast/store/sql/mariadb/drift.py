"""Differences between the tables and what the migrations made, and how to repair each.

What every version of the server describes in the same way is compared; the texts of CHECK rules and of
generated columns are not.
"""

from __future__ import annotations

from holdfast.store.rows import Drift
from holdfast.store.sql.catalogue import RESTORE, Things, differing_tables
from holdfast.store.sql.connection import Conn

_TABLES = """
SELECT concat(CASE table_type WHEN 'VIEW' THEN 'view ' WHEN 'SEQUENCE' THEN 'sequence ' ELSE 'table ' END,
              table_name), coalesce(engine, '')
FROM information_schema.tables WHERE table_schema = database()"""
_COLUMNS = """
SELECT concat('column ', c.table_name, '.', c.column_name),
       concat_ws(' ', c.column_type, concat('collate ', c.collation_name),
                 CASE c.is_nullable WHEN 'NO' THEN 'not null' ELSE 'nullable' END,
                 concat('default ', nullif(c.column_default, 'NULL')), nullif(lower(c.extra), ''))
FROM information_schema.columns AS c JOIN information_schema.tables AS t USING (table_schema, table_name)
WHERE c.table_schema = database() AND t.table_type = 'BASE TABLE'"""
_INDEXES = """
SELECT concat('index ', table_name, '.', index_name),
       concat(CASE non_unique WHEN 0 THEN 'unique ' ELSE '' END, '(', group_concat(
           concat('`', column_name, '`', coalesce(concat('(', sub_part, ')'), ''),
                  CASE collation WHEN 'D' THEN ' DESC' ELSE '' END)
           ORDER BY seq_in_index SEPARATOR ', '), ')')
FROM information_schema.statistics WHERE table_schema = database()
GROUP BY table_name, index_name, non_unique"""
_RULES = """
SELECT concat('constraint ', table_name, '.', constraint_name), ''
FROM information_schema.check_constraints WHERE constraint_schema = database()"""
_TRIGGERS = """
SELECT concat('trigger ', event_object_table, '.', trigger_name),
       concat(action_timing, ' ', event_manipulation, ' ', action_statement)
FROM information_schema.triggers WHERE trigger_schema = database()"""
_ALL = (_TABLES, _COLUMNS, _INDEXES, _RULES, _TRIGGERS)


async def read_catalogue(conn: Conn) -> Things:
    found = [pair for sql in _ALL for pair in await conn.rows(sql)]
    return {name: " ".join(how.split()) for name, how in sorted(found)}


def drift_of(expected: Things, found: Things) -> list[Drift]:
    whole = differing_tables(expected, found)
    drifts: list[Drift] = []
    for name in sorted(expected.keys() | found.keys()):
        kind, _, thing = name.partition(" ")
        wanted, is_now = expected.get(name), found.get(name)
        table, _, own = thing.rpartition(".")
        # What keeps writers away from a store that is being moved; `doctor` reports that separately.
        if wanted == is_now or table in whole or (own or table).startswith("moved"):
            continue
        if is_now is None:
            drifts.append(_missing(kind, thing, wanted or ""))
        elif wanted is None:
            drifts.append(_added(kind, thing))
        else:
            drifts.append(_changed(kind, thing, wanted, is_now))
    return drifts


def _missing(kind: str, thing: str, how: str) -> Drift:
    if kind == "view":
        todo = "create it again if other programs query it: Holdfast does not"
        return Drift(what=f"the view {thing} is missing", todo=todo, grave=False)
    return Drift(what=f"the {kind} {thing} is missing", todo=_remedy(kind, thing, how), grave=True)


def _added(kind: str, thing: str) -> Drift:
    """Holdfast neither reads nor writes it; but a rule or trigger may refuse or change what it writes."""
    grave = kind in ("constraint", "trigger")
    todo = "drop it if it is not needed: it acts on what Holdfast writes" if grave else ""
    return Drift(what=f"the {kind} {thing} was not created by Holdfast", todo=todo, grave=grave)


def _changed(kind: str, thing: str, wanted: str, found: str) -> Drift:
    table, _, name = thing.partition(".")
    if kind == "trigger":
        return Drift(what=f"the trigger {thing} was changed", todo=_remedy(kind, thing, wanted), grave=True)
    todo = {
        "table": f"ALTER TABLE `{table}` ENGINE = {wanted}",
        "index": f"ALTER TABLE `{table}` DROP INDEX `{name}`, then {_remedy(kind, thing, wanted)}",
        "column": f"change it back: ALTER TABLE `{table}` MODIFY `{name}` ... ({wanted})",
    }
    what = f"the {kind} {thing} is {found!r}, not {wanted!r}"
    return Drift(what=what, todo=todo.get(kind, RESTORE), grave=True)


def _remedy(kind: str, thing: str, how: str) -> str:
    table, _, name = thing.partition(".")
    if kind == "index" and name != "PRIMARY":
        unique = "UNIQUE " if how.startswith("unique ") else ""
        return f"ALTER TABLE `{table}` ADD {unique}INDEX `{name}` {how.removeprefix('unique ')}"
    if kind == "trigger":
        when, what, body = how.split(" ", 2)
        return f"CREATE OR REPLACE TRIGGER `{name}` {when} {what} ON `{table}` FOR EACH ROW {body}"
    return RESTORE
