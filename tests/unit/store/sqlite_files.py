"""Looking at a store's file from outside, as another program would."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw


@contextmanager
def plain(file: Path) -> Iterator[apsw.Connection]:
    conn = apsw.Connection(str(file))
    try:
        yield conn
    finally:
        conn.close()


@contextmanager
def locked(file: Path) -> Iterator[apsw.Connection]:
    """Somebody else is in the middle of a write."""
    with plain(file) as conn:
        conn.execute("BEGIN IMMEDIATE")
        yield conn
        if conn.in_transaction:
            conn.execute("ROLLBACK")


def pragma(file: Path, name: str) -> Any:
    with plain(file) as conn:
        return conn.pragma(name)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
