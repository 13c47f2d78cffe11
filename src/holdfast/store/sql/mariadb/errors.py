"""MariaDB's errors as errors of `holdfast.errors`."""

from __future__ import annotations

from asyncmy.errors import Error

from holdfast.errors import (
    CheckpointCorruptError,
    HoldfastError,
    NotAStoreError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)
from holdfast.store.copy import barrier_error_for
from holdfast.store.sql.queues import CLAIMED_ONCE

DRIVER_ERRORS = (Error, OSError, TimeoutError, EOFError)
"""The errors that the driver raises."""

DUPLICATE = 1062
RETRYABLE = frozenset({1213, 1205, 1020})
"""A deadlock, a lock that was not given in time, a row that changed since the snapshot: the transaction is
rolled back and repeated."""


def is_repeatable(error: BaseException) -> bool:
    """Whether the whole transaction may be repeated at once."""
    if code_of(error) == DUPLICATE:
        return CLAIMED_ONCE in str(error)
    return code_of(error) in RETRYABLE


_LOST = frozenset({1053, 1077, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 2003, 2006, 2013, 2014, 2027, 2055})
_BUSY = frozenset({1040, 1203, 1226, 1969, 3024, 4031, *RETRYABLE})
_FULL = frozenset({1021, 1041, 1037, 1038, 1114, 3})
_DAMAGED = frozenset({1030, 1034, 1035, 1194, 1195, 1712, 1877})
_ACCESS = frozenset({1044, 1045, 1698})
_RIGHTS = frozenset({1142, 1143, 1227, 1370, 1419})
_READ_ONLY = frozenset({1290, 1792, 1836})
_ABSENT = frozenset({1054, 1146, 4091})


def code_of(error: BaseException) -> int:
    """The server's number, 0 for what has none."""
    first = error.args[0] if isinstance(error, Error) and error.args else 0
    return first if isinstance(first, int) else 0


def is_lost(error: BaseException) -> bool:
    """The connection is lost; it is unknown whether its last statement was executed."""
    if isinstance(error, (OSError, TimeoutError, EOFError)):
        return True
    # The driver has no number for packets out of order.
    return code_of(error) in _LOST or (isinstance(error, Error) and code_of(error) == 0)


def translated(error: BaseException, where: str) -> HoldfastError:
    """The error to raise instead of a driver's error; the caller raises it `from` the original."""
    return _refused(error, where) or _troubled(error, where) or _unreachable(error, where)


def _refused(error: BaseException, where: str) -> HoldfastError | None:
    """Errors that an operator has to fix."""
    code, text = code_of(error), _text(error)
    if code == 1644 and (moved := barrier_error_for(text, where)) is not None:
        return moved
    if code == 1049:
        return StoreUnavailableError(
            f"there is no database at {where}: {text}.",
            hint="Create it (CREATE DATABASE), or correct the address.",
        )
    if code in _ACCESS:
        return StoreUnavailableError(
            f"the server at {where} refused the connection: {text}.", hint="Check the user and the password."
        )
    if code in _RIGHTS:
        return StoreUnavailableError(
            f"this user is not allowed to do that at {where}: {text}.",
            hint="Grant it ALL on the database; with binary logging on, creating the triggers also needs "
            "log_bin_trust_function_creators = 1, or let an administrator open the store once.",
        )
    if code in _READ_ONLY:
        return StoreUnavailableError(
            f"the server at {where} is read-only: it is a replica.", hint="Give the address of the primary."
        )
    if code in _ABSENT:
        return NotAStoreError(
            f"the store at {where} lacks an object that Holdfast created: {text}.",
            hint="Restore what was dropped or changed, or give another database.",
        )
    return None


def _troubled(error: BaseException, where: str) -> HoldfastError | None:
    code, text = code_of(error), _text(error)
    if code in _FULL:
        return StoreFullError(
            f"the disk is full: nothing was written to the database {where}.",
            hint="Free some space on its disk, then try again. No acknowledged write was lost.",
        )
    if code in _BUSY or is_repeatable(error):
        return StoreBusyError(f"the database {where} is busy: {text}.", hint="Try again.")
    if code in _DAMAGED:
        return CheckpointCorruptError(
            f"the database {where} is damaged: {text}.", hint="Stop its users and restore a backup."
        )
    return None


def _unreachable(error: BaseException, where: str) -> HoldfastError:
    if is_lost(error):
        return StoreUnavailableError(
            f"the database {where} cannot be reached: {_text(error) or 'it took too long'}.",
            hint="Check that the server runs and that its address is right; a call that was not acknowledged "
            "can be repeated.",
            away=True,
        )
    return StoreError(f"a statement failed in the database {where}: {_text(error)}.")


def packet_error(size: int, packet: int) -> StoreError:
    return StoreError(
        f"a statement of {size:,} characters is over the server's max_allowed_packet ({packet:,} bytes).",
        hint="Raise max_allowed_packet on the server, or store the value as a file and keep its name.",
    )


def _text(error: BaseException) -> str:
    said = error.args[1] if isinstance(error, Error) and len(error.args) > 1 else str(error)
    return str(said).replace("MySQL server", "the server").rstrip(".")


def old_primary(where: str) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"the server at {where} was replaced by another one meanwhile; what it answered does not count.",
        hint="Try again.",
    )


def closed(where: str) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"the store {where} is closed.", hint="Open it again with open_store; a forked process opens its own."
    )
