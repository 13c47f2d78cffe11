"""The SQLite store: durable on one machine, shared by the processes on it."""

from __future__ import annotations

from holdfast.store.sql.sqlite.connect import SqliteSettings, library_version
from holdfast.store.sql.sqlite.store import SqliteStore

__all__ = ["SqliteSettings", "SqliteStore", "library_version"]
