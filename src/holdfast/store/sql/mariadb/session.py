"""One connection to the server: how it is opened, and what is set for it."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import Any, cast

import asyncmy
from asyncmy import converters
from asyncmy.constants import CLIENT
from asyncmy.constants.FIELD_TYPE import DECIMAL, NEWDECIMAL
from asyncmy.errors import Error

from holdfast.errors import SettingsError
from holdfast.store.sql.mariadb.address import MariadbSettings

_driver: Any = asyncmy  # half annotated
_conversions: Any = cast("Any", converters).conversions
# There are no decimal columns: sums and products of whole numbers come as decimals.
_CONVERSIONS: dict[Any, Any] = {**_conversions, DECIMAL: int, NEWDECIMAL: int}

_MODES = (
    "STRICT_ALL_TABLES", "NO_ZERO_DATE", "NO_ZERO_IN_DATE", "ERROR_FOR_DIVISION_BY_ZERO",
    "NO_ENGINE_SUBSTITUTION", "PIPES_AS_CONCAT",
)  # fmt: skip


def session_statement(settings: MariadbSettings) -> str:
    """READ COMMITTED: each statement sees what is committed, so a retried transaction sees why. With
    `idle_transaction_timeout` the server ends a transaction whose process was stopped or cut off, before
    everything that needs the same rows waits for it. What else a server may have by default would cut off
    results, end the connection with each commit, or leave constraints unchecked."""
    return (
        "SET NAMES utf8mb4 COLLATE utf8mb4_nopad_bin, "
        f"SESSION sql_mode = '{','.join(_MODES)}', SESSION time_zone = '+00:00', "
        "SESSION tx_isolation = 'READ-COMMITTED', "
        f"SESSION innodb_lock_wait_timeout = {settings.lock_wait}, "
        f"SESSION lock_wait_timeout = {max(settings.lock_wait, 5)}, "
        f"SESSION idle_transaction_timeout = {max(1, round(settings.silence))}, "
        f"SESSION max_statement_time = {settings.statement_timeout:f}, "
        "SESSION sql_select_limit = 18446744073709551615, SESSION sql_big_selects = 1, "
        "SESSION completion_type = 'NO_CHAIN', SESSION tx_read_only = 0, SESSION sql_safe_updates = 0, "
        # A note, such as that a table exists, is no warning.
        "SESSION sql_notes = 0, "
        "SESSION foreign_key_checks = 1, SESSION unique_checks = 1, SESSION check_constraint_checks = 1"
    )


async def connect(settings: MariadbSettings) -> Any:
    """Raises the driver's errors."""
    async with asyncio.timeout(settings.timeout):
        return await _driver.connect(
            host=settings.host,
            port=settings.port,
            unix_socket=settings.socket,
            user=settings.user,
            # As bytes: the driver would write it in Latin 1.
            password=settings.password.encode(),
            database=settings.database,
            charset="utf8mb4",
            autocommit=True,
            # An update that leaves a row as it was counts it all the same.
            client_flag=CLIENT.FOUND_ROWS,
            conv=_CONVERSIONS,
            connect_timeout=settings.timeout,
            ssl=_tls(settings),
            init_command=session_statement(settings),
        )


def _tls(settings: MariadbSettings) -> ssl.SSLContext | None:
    if settings.tls == "off":
        return None
    try:
        context = ssl.create_default_context(cafile=settings.ca)
    except OSError as error:
        raise SettingsError(
            f"the file {settings.ca!r} cannot be read as certificates: {error}.",
            hint="Give the path of a file in PEM form with ca=.",
        ) from error
    if settings.tls == "on":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def drop(raw: Any) -> None:
    """Closes without a word to the server."""
    with suppress(Exception):
        raw.close()


async def leave(raw: Any) -> None:
    """Ends the session."""
    try:
        async with asyncio.timeout(2):
            await raw.ensure_closed()
    except (Error, OSError, TimeoutError):
        drop(raw)
