"""Stores that outlive the processes on them: a file, or a schema of its own on a server."""

from __future__ import annotations

from pathlib import Path

from tests.services import mariadb, postgres


def address_on(store: str, folder: Path) -> str:
    """An empty store of this kind."""
    if store == "sqlite":
        return f"sqlite:{folder / 'h.db'}"
    if store == "mariadb":
        return mariadb.emptied("crash")
    return postgres.emptied("crash")
