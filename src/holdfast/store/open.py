"""Opens the store at an address."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec

from holdfast.errors import SettingsError
from holdfast.store.errors import settings_error
from holdfast.store.protocols import Store
from holdfast.types.clock import Clock
from holdfast.types.own_threads import in_thread

if TYPE_CHECKING:
    from holdfast.store.copy import Movable

FORMS = """The forms of a store's address are:
  memory:                       in this process only, gone with it
  sqlite:PATH                   a file, safe against power cuts (PATH may also stand alone if it ends in .db)
  sqlite:PATH?sync=normal       faster; the last moments may be lost in a power cut, not in a crash
  sqlite:PATH?busy_timeout=30   how many seconds a write waits for another process (default 10)
  postgresql://USER:PASSWORD@HOST:PORT/DATABASE          a server, shared by any number of machines
  postgresql://USER@ONE,TWO/DATABASE?schema=NAME&pool=8  several servers; the one that takes writes
  mariadb://USER:PASSWORD@HOST:PORT/DATABASE?pool=8      a MariaDB server (10.11 or newer)"""


async def open_store(address: str, *, clock: Clock | None = None, **settings: Any) -> Store:
    """Open the store at that address; a missing one is created. `settings` are the same as after the `?`.
    Raises SettingsError for an invalid address or setting, and StoreError (NotAStoreError, SchemaTooNewError,
    StoreUnavailableError) if it cannot be opened.
    """
    if address == "memory:":
        return _open_memory(clock, settings)
    if address.startswith("sqlite:"):
        path, _, query = address.removeprefix("sqlite:").partition("?")
        return await _open_sqlite(path, {**dict(parse_qsl(query, keep_blank_values=True)), **settings}, clock)
    if address.startswith(("postgresql://", "postgres://")):
        return await _open_postgres(address, settings, clock)
    if address.startswith("mariadb://"):
        return await _open_mariadb(address, settings, clock)
    if address.endswith(".db") and ":" not in address:
        return await _open_sqlite(address, settings, clock)
    raise SettingsError(f"{address!r} is not the address of a store.", hint=FORMS)


def _open_memory(clock: Clock | None, settings: dict[str, Any]) -> Store:
    from holdfast.store.memory import MemoryStore

    if settings:
        raise SettingsError(f"the memory store has no setting {sorted(settings)[0]!r}.", hint=FORMS)
    return MemoryStore(clock)


async def _open_sqlite(path: str, given: dict[str, Any], clock: Clock | None) -> Store:
    # Imported here: a program with another store does not load the driver.
    from holdfast.store.sql.sqlite import SqliteStore

    return await in_thread(SqliteStore, _sqlite_settings(path, given), clock)


def _sqlite_settings(path: str, given: dict[str, Any]) -> Any:
    from holdfast.store.sql.sqlite import SqliteSettings

    if not path or path.startswith(":"):
        raise SettingsError(f"{path!r} is not the path of a database file.", hint=FORMS)
    if "path" in given:
        raise SettingsError("the path is part of the address, not a setting.", hint=FORMS)
    try:
        # A handler may change the folder of the process.
        return msgspec.convert({**given, "path": str(Path(path).absolute())}, SqliteSettings, strict=False)
    except msgspec.ValidationError as error:
        known = [name for name in SqliteSettings.__struct_fields__ if name != "path"]
        raise settings_error(error, path, known, FORMS) from error


async def _open_postgres(address: str, given: dict[str, Any], clock: Clock | None) -> Store:
    _require_driver("postgres", "PostgreSQL", "asyncpg")
    from holdfast.store.sql.postgres import PostgresStore, settings_for

    return await PostgresStore.open(settings_for(address, given, FORMS), clock)


async def _open_mariadb(address: str, given: dict[str, Any], clock: Clock | None) -> Store:
    _require_driver("mariadb", "MariaDB", "asyncmy")
    from holdfast.store.sql.mariadb import MariadbStore, settings_for

    return await MariadbStore.open(settings_for(address, given, FORMS), clock)


def _require_driver(extra: str, database: str, driver: str) -> None:
    try:
        import_module(f"holdfast.store.sql.{extra}")
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"a store on {database} needs the driver {driver}, which is not installed.",
            hint=f"Install the extra `{extra}`: pip install 'holdfast-flow[{extra}]'.",
        ) from error


def move_endpoint(address: str) -> Movable:
    """The store at that address as one end of a move; nothing is opened yet. Raises SettingsError."""
    if address.startswith(("postgresql://", "postgres://")):
        _require_driver("postgres", "PostgreSQL", "asyncpg")
        from holdfast.store.sql.postgres import settings_for
        from holdfast.store.sql.postgres.copy import PostgresMoveEndpoint

        return PostgresMoveEndpoint(settings_for(address, {}, FORMS))
    if address.startswith("mariadb://"):
        _require_driver("mariadb", "MariaDB", "asyncmy")
        from holdfast.store.sql.mariadb import settings_for
        from holdfast.store.sql.mariadb.copy import MariadbMoveEndpoint

        return MariadbMoveEndpoint(settings_for(address, {}, FORMS))
    if address.startswith("sqlite:") or (address.endswith(".db") and ":" not in address):
        from holdfast.store.sql.sqlite.copy import SqliteMoveEndpoint

        path, _, query = address.removeprefix("sqlite:").partition("?")
        return SqliteMoveEndpoint(_sqlite_settings(path, dict(parse_qsl(query, keep_blank_values=True))))
    raise SettingsError(f"{address!r} is not a store that can be moved.", hint=FORMS)
