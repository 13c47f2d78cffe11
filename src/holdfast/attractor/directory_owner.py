"""`owner.json`: the run that a directory belongs to. Only that run writes there and starts effects: a run
whose directory was taken over, by a resume in another store, stops before its next stage."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from holdfast.attractor.handler import service_here
from holdfast.attractor.run_files import (
    CHECKPOINT,
    OWNER,
    as_json,
    is_refused,
    is_refused_here,
    logs_root_here,
    make_private,
    write_or_raise,
)
from holdfast.errors import InputError

if TYPE_CHECKING:
    from holdfast.attractor.handler import StageVisit
    from holdfast.runs.driver.services import RunServices

_PATIENCE = 60.0
"""Seconds for a cancellation to reach the stage that asked for it."""


class Owner(msgspec.Struct, frozen=True):
    run: str
    term: int = 0
    """How often the run was claimed."""
    before: tuple[str, ...] = ()
    """The runs that it took the directory over from."""
    pending: bool = False
    """Its run is being created, by a process that has a lock of this file."""


def read_owner(root: Path) -> Owner | None:
    with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return msgspec.json.decode((root / OWNER).read_bytes(), type=Owner)
    return None


def write_owner(root: Path, owner: Owner) -> None:
    """Raises OSError."""
    write_or_raise(root / OWNER, as_json(msgspec.to_builtins(owner)), durable=True)


def take_over(root: Path, run: str, former: str) -> None:
    """From now on the former run, of another store, starts nothing in this directory. Raises OSError."""
    owner = read_owner(root)
    before = () if owner is None else (*owner.before, owner.run)
    write_owner(root, Owner(run, 0, tuple(dict.fromkeys((*before, *filter(None, [former]))))))


@contextmanager
def reserved(root: Path | None, run: str, services: RunServices, *, keyed: bool) -> Generator[None]:
    """The directory belongs to the run that is created inside: two runs never share one, also if neither of
    them has begun. `keyed`: an idempotency key may name an earlier run, to which it belongs. Raises
    InputError if it is another run's."""
    if root is None or keyed:
        yield
        return
    _remove_abandoned(root)
    _refuse_used(root)
    with ExitStack() as stack:
        is_ours = not is_refused(services) and _reserve(root, run, stack)
        try:
            yield
        except BaseException:
            if is_ours:
                with suppress(OSError):
                    (root / OWNER).unlink()
                    root.rmdir()
            raise
        # A worker that has begun the run has written it.
        if is_ours and read_owner(root) == Owner(run, pending=True):
            with suppress(OSError):
                write_owner(root, Owner(run))


def _remove_abandoned(root: Path) -> None:
    """Of a process that died before its run was created: its lock is free."""
    owner = read_owner(root)
    if owner is None or not owner.pending or (root / CHECKPOINT).exists():
        return
    with suppress(OSError), (root / OWNER).open("rb") as file:
        flock(file, LOCK_EX | LOCK_NB)
        # Not if it was completed, or taken by another process, in between.
        if os.path.samestat(os.fstat(file.fileno()), (root / OWNER).stat()) and read_owner(root) == owner:
            (root / OWNER).unlink()


def _reserve(root: Path, run: str, stack: ExitStack) -> bool:
    """False if it cannot be written: the run continues without it. The file is locked until the stack is
    left."""
    fresh = root / f".{OWNER}.{run}"
    try:
        make_private(root)
        write_or_raise(fresh, as_json(msgspec.to_builtins(Owner(run, pending=True))), durable=True)
        flock(stack.enter_context(fresh.open("rb")), LOCK_EX)
        # The first process that links it has the directory.
        (root / OWNER).hardlink_to(fresh)
    except FileExistsError:
        _refuse_used(root)
        return False
    except OSError:
        return False
    finally:
        with suppress(OSError):
            fresh.unlink()
    return True


def _refuse_used(root: Path) -> None:
    owner = read_owner(root)
    if owner is not None or (root / CHECKPOINT).exists():
        whose = "another run" if owner is None else f"run {owner.run}"
        raise InputError(
            f"{root} is the directory of {whose}.",
            hint=f"Name another directory, or continue that run: holdfast run --resume {root}.",
        )


def other_owner(root: Path, run: str) -> Owner | None:
    """Asked again after an intent is written: of two runs that continue one directory at the same time, the
    second one finds the intent, or the first one finds that the directory is no longer its own."""
    owner = read_owner(root)
    return None if owner is None or owner.run == run else owner


async def require_owner(visit: StageVisit) -> None:
    """A run whose directory belongs to another one is cancelled, and does nothing more: it was taken over, or
    was another's when this run was started (under an idempotency key, where that is not checked before)."""
    if is_refused_here():
        return
    ctx = visit.ctx
    root = logs_root_here(visit.given, ctx.run_id)
    owner = other_owner(root, ctx.run_id)
    if owner is None:
        return
    how = "was taken over by" if ctx.run_id in owner.before else "belongs to"
    await service_here().cancel(ctx.run_id, reason=f"its directory {how} run {owner.run}")
    await asyncio.sleep(_PATIENCE)
    raise InputError(f"{root} {how} run {owner.run}.", hint="Continue that run.")
