"""The schema as the server knows it, in a form that is the same for every schema name and server version."""

from __future__ import annotations

import re
from importlib import resources

from holdfast.store.sql.postgres.connect import Conn

Things = dict[str, str]
"""`kind name` -> how it is."""

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
# Since version 18 a column that takes no NULL is a constraint of its own: that is told with the column.
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


async def read_catalogue(conn: Conn) -> Things:
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
    """Without the schema's name, in one line."""
    named = re.sub(rf'"?\b{re.escape(schema)}\b"?\.', "@", text)
    return " ".join(named.split())


def expected_catalogue() -> Things:
    """What the migrations make, stored in the package; `python -m tests.fleet.test_drift` renews it."""
    file = resources.files("holdfast.store.sql.postgres").joinpath("schema", "catalogue.txt")
    pairs = (line.partition("\t") for line in file.read_text("utf-8").splitlines() if line)
    return {name: how for name, _, how in pairs}


def written_catalogue(things: Things) -> str:
    return "".join(f"{name}\t{how}\n" for name, how in sorted(things.items()))
