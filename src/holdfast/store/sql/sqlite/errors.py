"""SQLite's errors as errors of `holdfast.errors`."""

from __future__ import annotations

import errno

import apsw

from holdfast.errors import (
    CheckpointCorruptError,
    NotAStoreError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)
from holdfast.store.copy import barrier_error_for

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def translated(error: apsw.Error, path: str, system_errno: int = 0) -> StoreError:
    """The error to raise instead of a driver's error; the caller raises it `from` the original."""
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        return StoreBusyError(
            f"the database {path} is locked by another process.",
            hint="Try again; if it persists, look for a process that keeps a transaction open on this file.",
        )
    if isinstance(error, apsw.FullError) or (isinstance(error, apsw.IOError) and system_errno in _NO_ROOM):
        return StoreFullError(
            f"the disk is full: nothing was written to the database {path}.",
            hint="Free some space on its disk, then try again. No acknowledged write was lost.",
        )
    if isinstance(error, apsw.NotADBError):
        return not_a_store(path)
    if isinstance(error, apsw.CorruptError):
        return CheckpointCorruptError(
            f"the database {path} is damaged: {error}.",
            hint="Stop its users, copy the file, and restore a backup (or try sqlite3's .recover).",
        )
    if isinstance(error, apsw.ConstraintError):
        moved = barrier_error_for(str(error), path)
        if moved is not None:
            return moved
        return StoreError(f"the database {path} refused the change: {error}.")
    return _unreachable(error, path)


def _unreachable(error: apsw.Error, path: str) -> StoreError:
    if isinstance(error, apsw.CantOpenError):
        return StoreUnavailableError(
            f"the database {path} cannot be opened.",
            hint="Check that its folder exists and that this user may read and write both folder and file.",
        )
    if isinstance(error, (apsw.ReadOnlyError, apsw.PermissionsError)):
        return StoreUnavailableError(
            f"the database {path} cannot be written.",
            hint="Check that this user may write the file and its folder.",
        )
    if isinstance(error, (apsw.ConnectionClosedError, apsw.CursorClosedError)):
        return closed(path)
    if isinstance(error, apsw.IOError):
        return StoreUnavailableError(
            f"the database {path} cannot be read or written: {error}.",
            hint="Check its disk. What was not acknowledged was not written.",
        )
    return StoreError(f"a statement failed in the database {path}: {error}.")


def closed(path: str) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"the store {path} is closed.", hint="Open it again with open_store; a forked process opens its own."
    )


def not_a_store(path: str) -> NotAStoreError:
    return NotAStoreError(
        f"{path} is not a Holdfast database; it was not changed.",
        hint="Give the path of a new file or of a database that Holdfast created.",
    )
