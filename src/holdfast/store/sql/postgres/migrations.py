"""The files of schema/: what each number adds (`NNNN_name.sql`), and what it takes away later
(`NNNN_name.post.sql`)."""

from __future__ import annotations

import re
from importlib import resources

import msgspec

WHOLE = 2
"""Numbers up to this one are from before there were halves: they are applied whole."""

RELEASED = 2
"""The newest number of the release before this one: its code works on all that the numbers after it add.
When a release is out, it is raised together with the archive of `tests.upgrade.last_release`."""

_APART = re.compile(r"^(?:CREATE (?:UNIQUE )?INDEX|DROP INDEX) CONCURRENTLY [^;]+;", re.MULTILINE)
_MADE = re.compile(r"CREATE (?:UNIQUE )?INDEX CONCURRENTLY (\w+)")
_POST = ".post.sql"


class PostgresMigration(msgspec.Struct, frozen=True):
    """`sql` adds only, so that the code of the last release goes on working; `post` takes away what only that
    code needed, and is empty where nothing is to go."""

    number: int
    name: str
    sql: str
    post: str = ""


class MigrationState(msgspec.Struct, frozen=True):
    """How far a schema is. `number`: the newest migration that is wholly there, which is what older code
    reads; `begun`: numbers whose first half is there; `building`: those of them that still lack an index."""

    number: int = 0
    begun: tuple[int, ...] = ()
    building: tuple[int, ...] = ()

    @property
    def expanded(self) -> int:
        """The newest number whose tables and columns are there."""
        return max(self.number, *self.begun, 0)


def migrations() -> list[PostgresMigration]:
    """The numbered files of schema/, in order."""
    folder = resources.files("holdfast.store.sql.postgres").joinpath("schema")
    texts = {file.name: file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(".sql")}
    found: list[PostgresMigration] = []
    for file, text in sorted(texts.items()):
        if not file.endswith(_POST):
            number, _, name = file.removesuffix(".sql").partition("_")
            post = texts.get(file.removesuffix(".sql") + _POST, "")
            found.append(PostgresMigration(int(number), name, text, post))
    return found


def transactional_sql(sql: str) -> str:
    """What runs inside the transaction."""
    return _APART.sub("", sql)


def concurrent_statements(sql: str) -> list[str]:
    """What PostgreSQL runs outside of one only: indexes that are built while others write."""
    return [found.rstrip(";") for found in _APART.findall(sql)]


def creation_sql(sql: str) -> str:
    """All of it inside a transaction: for a schema that is not in use yet."""
    return _APART.sub(lambda found: found[0].replace(" CONCURRENTLY", "", 1), sql)


def index_of(text: str) -> str | None:
    """The index that this statement makes."""
    found = _MADE.match(text)
    return None if found is None else found[1]
