"""New SQLite stores of the tests' own process are copies of one that was made the usual way.

Making the tables takes 12 ms, a copy less than one, and thousands of tests open a new file. Processes that
tests start make theirs the usual way, and so do the tests of the schema (tests/unit/store).
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from secrets import token_hex

import apsw
import msgspec

from holdfast.store.sql.sqlite import migrate
from holdfast.store.sql.sqlite.connect import SqliteSettings

MAKE = "_migrate"
TIME = 8  # bytes of a time in a row
as_usual = getattr(migrate, MAKE)
_KNOWN = migrate.migrations()


def copy_new_files() -> None:
    setattr(migrate, MAKE, _make)


def _make(settings: SqliteSettings, known: Sequence[migrate.SqliteMigration]) -> None:
    if known is not _KNOWN or not _copied(Path(settings.path)):
        as_usual(settings, known)


def _copied(path: Path) -> bool:
    """False where anything is there already or nothing can be written: that is decided as usual."""
    if path.exists() or path.with_name(f"{path.name}-journal").exists():
        return False
    half = path.with_name(f"{path.name}-{token_hex(4)}")
    try:
        half.write_bytes(_a_copy())
        # At once, and only if nobody else made it meanwhile.
        os.link(half, path)
    except OSError:
        return False
    finally:
        half.unlink(missing_ok=True)
    return True


def _a_copy() -> bytes:
    """With times of its own: a store is told from another by when it was made."""
    body, places = _template()
    now = time.time_ns() // 1000
    copy = bytearray(body)
    for number, place in enumerate(places):
        copy[place : place + TIME] = (now + number).to_bytes(TIME, "big")
    return bytes(copy)


@cache
def _template() -> tuple[bytes, list[int]]:
    """Such a file, and where in it the time of each migration is."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "new.db"
        as_usual(msgspec.convert({"path": str(file)}, SqliteSettings), _KNOWN)
        database = apsw.Connection(str(file))
        database.execute("UPDATE migrations SET applied_at = applied_at + number")  # no two are the same
        times = [row[0] for row in database.execute("SELECT applied_at FROM migrations ORDER BY number")]
        database.close()
        body = file.read_bytes()
        return body, [body.index(each.to_bytes(TIME, "big")) for each in times]
