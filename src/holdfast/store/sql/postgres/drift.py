"""Differences between the schema and what the migrations made, and how to repair each.

The schema as the server describes it, in a form that is the same for every schema name and server version.
"""

from __future__ import annotations

import re

from holdfast.store.rows import Drift
from holdfast.store.sql.catalogue import RESTORE, Things, differing_tables
from holdfast.store.sql.catalogue import written_catalogue as written
from holdfast.store.sql.postgres.connect import PostgresConnection

_OF = "JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = ?"
_TABLES = f"""
SELECT c.relname, CASE c.relkind WHEN 'S' THEN 'sequence' WHEN 'v' THEN 'view' ELSE 'table' END,
       coalesce(array_to_string(c.reloptions, ', '), '')
FROM pg_class AS c {_OF} AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
  -- The sequence of an identity column belongs to the column.
  AND NOT EXISTS (SELECT 1 FROM pg_depend AS d WHERE d.objid = c.oid AND d.deptype = 'i'
                  AND d.classid = 'pg_class'::regclass)"""
_COLUMNS = f"""
SELECT c.relname || '.' || a.attname,
       concat_ws(' ', format_type(a.atttypid, a.atttypmod),
           CASE WHEN a.attcollation <> t.typcollation THEN 'collate ' || l.collname END,
           CASE WHEN a.attnotnull THEN 'not null' ELSE 'nullable' END,
           CASE WHEN a.attgenerated = '' THEN 'default ' ELSE 'generated ' END
               || pg_get_expr(d.adbin, d.adrelid),
           CASE WHEN a.attidentity <> '' THEN 'identity ' || a.attidentity::text END,
           CASE WHEN a.attstorage <> t.typstorage THEN 'storage ' || a.attstorage::text END)
FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_type AS t ON t.oid = a.atttypid
LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
LEFT JOIN pg_collation AS l ON l.oid = a.attcollation
{_OF} AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped"""
_INDEXES = f"""
SELECT c.relname, pg_get_indexdef(i.indexrelid), i.indisvalid
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid {_OF}
  AND NOT EXISTS (
      SELECT 1 FROM pg_constraint AS k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x'))"""
# Since version 18 a NOT NULL column is also a constraint: it is reported with the column.
_CONSTRAINTS = f"""
SELECT c.relname || '.' || k.conname, pg_get_constraintdef(k.oid),
       coalesce(i.indisvalid, true) AND k.convalidated
FROM pg_constraint AS k JOIN pg_class AS c ON c.oid = k.conrelid
LEFT JOIN pg_index AS i ON i.indexrelid = k.conindid AND k.contype IN ('p', 'u', 'x')
{_OF} AND k.contype <> 'n'"""
_TRIGGERS = f"""
SELECT c.relname || '.' || t.tgname, pg_get_triggerdef(t.oid), t.tgenabled <> 'D'
FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid {_OF} AND NOT t.tgisinternal"""
_FUNCTIONS = """
SELECT p.proname, pg_get_functiondef(p.oid) FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname = ? AND p.prokind = 'f'"""

NOT_VALID = "(not valid) "
DISABLED = "(disabled) "


# Names that the search path finds are described without their schema: with a role, a schema and a database of
# one name, the default path finds ours. Until the end of the transaction it finds nothing. A server, database
# or role may also say that all names are described in quotes.
_AS_WRITTEN = (
    "SELECT set_config('search_path', 'pg_catalog', true), set_config('quote_all_identifiers', 'off', true)"
)


async def read_catalogue(conn: PostgresConnection) -> Things:
    """Inside a transaction, whose search path it changes."""
    await conn.rows(_AS_WRITTEN)
    found: Things = {}
    for name, kind, options in await conn.rows(_TABLES, conn.schema):
        found[f"{kind} {name}"] = options
    for name, how in await conn.rows(_COLUMNS, conn.schema):
        found[f"column {name}"] = how
    for kind, sql, mark in (
        ("index", _INDEXES, NOT_VALID),
        ("constraint", _CONSTRAINTS, NOT_VALID),
        ("trigger", _TRIGGERS, DISABLED),
    ):
        for name, how, good in await conn.rows(sql, conn.schema):
            found[f"{kind} {name}"] = ("" if good else mark) + how
    for name, how in await conn.rows(_FUNCTIONS, conn.schema):
        found[f"function {name}"] = how
    return {name: _plain(how, conn.schema) for name, how in sorted(found.items())}


def _plain(text: str, schema: str) -> str:
    """On one line, with the schema's name never in quotes."""
    return " ".join(text.replace(f'"{schema}".', f"{schema}.").split())


def _named(text: str, schema: str) -> str:
    """With the schema's name for each `@`. The other way round would be ambiguous: a schema may be called
    `new` or `runs`, as things in the text are."""
    return re.sub(r"@(?=\w)", f"{schema}.", text)


def written_catalogue(things: Things, schema: str) -> str:
    """With `@` for the schema: a name that is nothing else in the text."""
    return re.sub(rf"\b{re.escape(schema)}\.", "@", written(things))


_WORD = re.compile(r"\w+")
_INDEXED = re.compile(r" ON (?:@|\w+\.)(\w+) ")
# What keeps writers away from a store that is being moved (`move_barrier`): dropping it would open the store
# again.
_OF_A_MOVE = re.compile(r"\bmoved(_\w+)?\b")
# What guards a store that was moved, or is being filled; `doctor` reports that separately.
_SEAL = re.compile(r"moved(_\w+)?")


def drift_of(expected: Things, found: Things, schema: str, to_come: str = "") -> list[Drift]:
    """`to_come`: statements of an upgrade that is not finished; the objects that they change are left out."""
    waits = set(_WORD.findall(to_come))
    whole = differing_tables(expected, found)
    all_found: list[Drift] = []
    for name in sorted(expected.keys() | found.keys()):
        kind, _, thing = name.partition(" ")
        wanted, is_now = expected.get(name), found.get(name)
        if (
            (wanted is not None and _named(wanted, schema) == is_now)
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


def _table_of(kind: str, thing: str, how: str) -> str:
    if kind == "index":
        table = _INDEXED.search(how)
        return "" if table is None else table[1]
    return thing.partition(".")[0]


def _missing(kind: str, thing: str, how: str, schema: str) -> Drift:
    if kind == "view":
        todo = "create it again if other programs query it: Holdfast does not"
        return Drift(what=f"the view {thing} is missing", todo=todo, grave=False)
    return Drift(what=f"the {kind} {thing} is missing", todo=_remedy(kind, thing, how, schema), grave=True)


def _added(kind: str, thing: str) -> Drift:
    """Not made by Holdfast, which neither reads nor writes it. A rule or trigger on one of our tables may
    refuse or change our writes."""
    grave = kind in ("constraint", "trigger")
    todo = "drop it if it is not needed: it acts on what Holdfast writes" if grave else ""
    return Drift(what=f"the {kind} {thing} was not created by Holdfast", todo=todo, grave=grave)


def _changed(kind: str, thing: str, wanted: str, found: str, schema: str) -> Drift:
    meant = _named(wanted, schema)
    if found.removeprefix(NOT_VALID) == meant and kind == "index":
        todo = f'REINDEX INDEX CONCURRENTLY "{schema}".{thing}'
        return Drift(what=f"the index {thing} is not valid", todo=todo, grave=True)
    if found.removeprefix(DISABLED) == meant and kind == "trigger":
        table, _, name = thing.partition(".")
        todo = f'ALTER TABLE "{schema}".{table} ENABLE TRIGGER {name}'
        return Drift(what=f"the trigger {thing} is disabled", todo=todo, grave=True)
    if kind == "function":
        return Drift(
            what=f"the function {thing} was changed", todo=_remedy(kind, thing, wanted, schema), grave=True
        )
    what = f"the {kind} {thing} is {found or 'plain'!r}, not {meant or 'plain'!r}"
    # Storage parameters such as the fill factor: they change speed, never results.
    return Drift(what=what, todo=_repair(kind, thing, wanted, schema), grave=kind != "table")


def _remedy(kind: str, thing: str, how: str, schema: str) -> str:
    sql = re.sub(r"@(?=\w)", f'"{schema}".', how)
    if kind == "index":
        return sql.replace("INDEX ", "INDEX CONCURRENTLY ", 1)
    if kind in ("trigger", "function"):
        return sql
    if kind == "constraint":
        table, _, name = thing.partition(".")
        return f'ALTER TABLE "{schema}".{table} ADD CONSTRAINT {name} {sql}'
    return RESTORE


def _repair(kind: str, thing: str, wanted: str, schema: str) -> str:
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
    return "change it back if that was not intended"
