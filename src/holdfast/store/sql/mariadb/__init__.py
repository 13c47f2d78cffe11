"""The MariaDB store: durable, shared by any number of machines."""

from __future__ import annotations

from holdfast.store.sql.mariadb.address import MariadbSettings, settings_for
from holdfast.store.sql.mariadb.store import MariadbStore

__all__ = ["MariadbSettings", "MariadbStore", "settings_for"]
