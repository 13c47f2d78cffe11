"""The PostgreSQL store: durable, shared by any number of machines."""

from __future__ import annotations

from holdfast.store.sql.postgres.address import Settings, settings_of
from holdfast.store.sql.postgres.store import PostgresStore

__all__ = ["PostgresStore", "Settings", "settings_of"]
