"""The PostgreSQL store: durable, shared by any number of machines."""

from __future__ import annotations

from holdfast.store.sql.postgres.address import PostgresSettings, settings_for
from holdfast.store.sql.postgres.store import PostgresStore

__all__ = ["PostgresSettings", "PostgresStore", "settings_for"]
