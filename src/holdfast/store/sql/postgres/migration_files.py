"""The files of schema/: what each number adds (`NNNN_name.sql`), and what it removes later
(`NNNN_name.post.sql`)."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

import msgspec

WHOLE = 2
"""Numbers up to this one have no halves: they are applied at once."""

RELEASED = 2
"""The newest number of the last release: its code works with everything that later numbers add. After a
release it is raised, together with the archive of `tests.upgrade.last_release`."""

_APART = re.compile(r"^(?:CREATE (?:UNIQUE )?INDEX|DROP INDEX) CONCURRENTLY [^;]+;", re.MULTILINE)
_MADE = re.compile(r"CREATE (?:UNIQUE )?INDEX CONCURRENTLY (\w+)")
_POST = ".post.sql"


class PostgresMigration(msgspec.Struct, frozen=True):
    """`sql` only adds, so that the code of the last release keeps working; `post` removes what only that code
    needed, and may be empty."""

    number: int
    name: str
    sql: str
    post: str = ""


class MigrationState(msgspec.Struct, frozen=True):
    """`number`: the newest migration that is complete, which is what older code reads; `begun`: numbers whose
    first half has run; `building`: those of them that still lack an index."""

    number: int = 0
    begun: tuple[int, ...] = ()
    building: tuple[int, ...] = ()

    @property
    def expanded(self) -> int:
        """The newest number whose tables and columns exist."""
        return max(self.number, *self.begun, 0)


@cache
def migrations() -> tuple[PostgresMigration, ...]:
    """The numbered files of schema/, in order; read once, although every store that is opened needs them."""
    folder = resources.files("holdfast.store.sql.postgres").joinpath("schema")
    texts = {file.name: file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(".sql")}
    found: list[PostgresMigration] = []
    for file, text in sorted(texts.items()):
        if not file.endswith(_POST):
            number, _, name = file.removesuffix(".sql").partition("_")
            post = texts.get(file.removesuffix(".sql") + _POST, "")
            found.append(PostgresMigration(int(number), name, text, post))
    return tuple(found)


def transactional_sql(sql: str) -> str:
    """The statements that run inside the transaction."""
    return _APART.sub("", sql)


def concurrent_statements(sql: str) -> list[str]:
    """The statements that PostgreSQL only runs outside a transaction: indexes that are built while others
    write."""
    return [found.rstrip(";") for found in _APART.findall(sql)]


def creation_sql(sql: str) -> str:
    """All statements inside a transaction: for a schema that is not in use yet."""
    return _APART.sub(lambda found: found[0].replace(" CONCURRENTLY", "", 1), sql)


def index_of(text: str) -> str | None:
    """The index that this statement creates."""
    found = _MADE.match(text)
    return None if found is None else found[1]
