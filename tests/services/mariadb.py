"""A MariaDB server for tests, and databases of our own on it.

The server is the one that HOLDFAST_TEST_MARIADB names; else the one on loopback's default port, if it takes
us without a password; else one of our own, where its programs are installed. On a server that we did not
start we create databases `holdfast_test_<random>`, and drop exactly those.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import secrets
from contextlib import suppress
from functools import cache
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.services import absent
from tests.services.mariadb_server import MariadbServer, programs
from tests.services.postgres import apart, with_path, with_setting

__all__ = ["apart", "database", "emptied", "empty", "execute", "fresh", "server", "with_setting"]

LOOPBACK = "mariadb://root@127.0.0.1:3306/mysql"
KEPT = frozenset({"migrations"})


@cache
def server() -> str:
    """Its address, as somebody who may create databases. Ends the test where there is none."""
    try:
        import asyncmy  # noqa: F401
    except ModuleNotFoundError:
        absent("mariadb", "asyncmy is not installed")
    named = os.environ.get("HOLDFAST_TEST_MARIADB")
    if named:
        return named
    if _answers(LOOPBACK):
        return LOOPBACK
    if programs() is None:
        absent("mariadb", "no server answers on 127.0.0.1:3306, and mariadbd is not installed")
    own = MariadbServer()
    own.start()
    atexit.register(own.remove)
    return own.address


@cache
def database(purpose: str = "") -> str:
    """The address of a database of this process, dropped when it ends."""
    return fresh()


def fresh() -> str:
    """The address of an empty database, dropped when the process ends."""
    name = f"holdfast_test_{secrets.token_hex(6)}"
    apart(_execute(server(), f"CREATE DATABASE {name}"))
    atexit.register(_drop, name)
    return with_path(server(), name)


def execute(sql: str, address: str) -> list[tuple[Any, ...]]:
    """On a connection of its own; the rows of what returns some."""
    return apart(_execute(address, sql))


def emptied(purpose: str) -> str:
    """The address of the database of this process for that purpose, as if nobody had used it yet."""
    address = database(purpose)
    with suppress(Exception):
        apart(_empty(address))
    return address


async def empty(address: str) -> None:
    """The tables as if nobody had used them yet."""
    with suppress(Exception):
        await asyncio.to_thread(apart, _empty(address))


async def _empty(address: str) -> None:
    tables = await _execute(
        address,
        "SELECT table_name FROM information_schema.tables "
        "WHERE table_schema = database() AND table_type = 'BASE TABLE'",
    )
    asked = " UNION ALL ".join(f"SELECT '{name}', EXISTS (SELECT 1 FROM `{name}`)" for (name,) in tables)
    used = {name for name, any_ in await _execute(address, asked) if any_} - KEPT
    # TRUNCATE would give numbers out again; changing a table or a trigger takes long, so it is done only for
    # the audit, which refuses to lose rows.
    emptied = [f"DELETE FROM `{name}`" for name in sorted(used - {"audit"})]
    audit = ["TRUNCATE audit"] if "audit" in used else []
    await _execute(address, ";".join([*audit, "BEGIN", *emptied, "COMMIT"]))


async def _execute(address: str, sql: str) -> list[tuple[Any, ...]]:
    import asyncmy

    parts = urlsplit(address)
    connection = await asyncmy.connect(
        host=parts.hostname,
        port=parts.port or 3306,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        database=parts.path.lstrip("/"),
        autocommit=True,
        connect_timeout=10,
    )
    try:
        cursor = connection.cursor()
        await cursor.execute(sql)
        while await cursor.nextset():
            pass
        return list(await cursor.fetchall())
    finally:
        await connection.ensure_closed()


def _answers(address: str) -> bool:
    try:
        apart(_execute(address, "SELECT 1"))
    except Exception:
        return False
    return True


def _drop(name: str) -> None:
    with suppress(Exception):
        asyncio.run(_execute(server(), f"DROP DATABASE IF EXISTS {name}"))
