"""PostgreSQL's errors as errors of `holdfast.errors`."""

from __future__ import annotations

import re

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from holdfast.errors import (
    CheckpointCorruptError,
    HoldfastError,
    NotAStoreError,
    SettingsError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)
from holdfast.store.copy import barrier_error_for
from holdfast.store.sql.queues import CLAIMED_ONCE

DRIVER_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)
"""The errors that the driver raises."""

CONNECTION_ERRORS = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    OSError,
)
"""The connection is lost; it is unknown whether its last statement was executed."""

RETRYABLE_ERRORS = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
"""The server rolled the transaction back so that another could continue."""


def is_repeatable(error: BaseException) -> bool:
    """Whether the whole transaction may be repeated at once."""
    if isinstance(error, asyncpg.UniqueViolationError):
        return getattr(error, "constraint_name", None) == CLAIMED_ONCE
    return isinstance(error, RETRYABLE_ERRORS)


_BUSY = (
    asyncpg.TooManyConnectionsError,
    asyncpg.LockNotAvailableError,
    asyncpg.QueryCanceledError,
    *RETRYABLE_ERRORS,
)
_FULL = (asyncpg.DiskFullError, asyncpg.OutOfMemoryError)
_DAMAGED = (asyncpg.DataCorruptedError, asyncpg.IndexCorruptedError)
_WRITABLE = (
    "Give the address of the primary, or all servers of the cluster: postgresql://one,two/database. "
    "If it is the primary, reset default_transaction_read_only."
)


def translated(error: BaseException, where: str) -> HoldfastError:
    """The error to raise instead of a driver's error; the caller raises it `from` the original."""
    if isinstance(error, asyncpg.ClientConfigurationError) or type(error) is ValueError:
        return SettingsError(
            f"the address {where} cannot be used: {error}.",
            hint="It reads postgresql://user:password@host:port/database?setting=value.",
        )
    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        return StoreUnavailableError(f"the server at {where} is read-only: it is a replica.", hint=_WRITABLE)
    return _refused(error, where) or _troubled(error, where) or _unreachable(error, where)


def _refused(error: BaseException, where: str) -> HoldfastError | None:
    """Errors that an operator has to fix."""
    if isinstance(error, asyncpg.CheckViolationError):
        return barrier_error_for(str(error), where)
    if isinstance(error, asyncpg.InvalidCatalogNameError):
        return StoreUnavailableError(
            f"there is no database at {where}: {error}.", hint="Create it (createdb), or correct the address."
        )
    if isinstance(error, asyncpg.InvalidAuthorizationSpecificationError):
        return StoreUnavailableError(
            f"the server at {where} refused the connection: {error}.", hint="Check the user and the password."
        )
    if isinstance(error, asyncpg.InsufficientPrivilegeError):
        return StoreUnavailableError(
            f"this user is not allowed to do that at {where}: {error}.",
            hint="Grant it CREATE on the database, or let an owner open the store once and grant the rest.",
        )
    if isinstance(error, (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError)):
        return NotAStoreError(
            f"the store at {where} lacks an object that Holdfast created: {error}.",
            hint="Restore what was dropped or changed, or give another ?schema=.",
        )
    return None


def _troubled(error: BaseException, where: str) -> HoldfastError | None:
    if isinstance(error, _FULL):
        return StoreFullError(
            f"the disk is full: nothing was written to the database {where}.",
            hint="Free some space on its disk, then try again. No acknowledged write was lost.",
        )
    if isinstance(error, _BUSY) or is_repeatable(error):
        return StoreBusyError(f"the database {where} is busy: {error}.", hint="Try again.")
    if isinstance(error, _DAMAGED):
        return CheckpointCorruptError(
            f"the database {where} is damaged: {error}.", hint="Stop its users and restore a backup."
        )
    return None


def _unreachable(error: BaseException, where: str) -> HoldfastError:
    if isinstance(error, asyncpg.exceptions.TargetServerAttributeNotMatched):
        return StoreUnavailableError(
            f"none of the servers at {where} accepts writes: they are replicas, or read-only by a setting.",
            hint=_WRITABLE,
            away=True,
        )
    if isinstance(error, (*CONNECTION_ERRORS, asyncpg.InternalClientError, TimeoutError)):
        return StoreUnavailableError(
            f"the database {where} cannot be reached: {_reason(error)}.",
            hint="Check that the server runs and that its address is right; a call that was not acknowledged "
            "can be repeated.",
            away=True,
        )
    return StoreError(f"a statement failed in the database {where}: {error}.")


_GONE = re.compile(r"connection (is|was|has been) (closed|released|lost)|connection_lost\(\)")
"""How the driver reports that a connection was lost while it was in use, with internal names in the text."""


def _reason(error: BaseException) -> str:
    text = str(error)
    return "the connection was lost" if _GONE.search(text) else text.rstrip(".") or "it took too long"


def closed(where: str) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"the store {where} is closed.", hint="Open it again with open_store; a forked process opens its own."
    )
