"""`owner.json`: the run that a directory belongs to. Only that run writes there and starts effects: a run
whose directory was taken over, by a resume in another store, stops before its next stage."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from holdfast.attractor.handler import service_here
from holdfast.attractor.run_files import (
    CHECKPOINT,
    OWNER,
    as_json,
    is_refused_here,
    logs_root_here,
    write_or_raise,
)
from holdfast.errors import InputError

if TYPE_CHECKING:
    from holdfast.attractor.handler import StageVisit

_PATIENCE = 60.0
"""Seconds for a cancellation to reach the stage that asked for it."""


class Owner(msgspec.Struct, frozen=True):
    run: str
    term: int = 0
    """How often the run was claimed."""
    before: tuple[str, ...] = ()
    """The runs that it took the directory over from."""


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


def refuse_used(root: Path | None) -> None:
    """Raises InputError for the directory of another run: two runs never share one."""
    if root is None:
        return
    owner = read_owner(root)
    if owner is not None or (root / CHECKPOINT).exists():
        whose = "another run" if owner is None else f"run {owner.run}"
        raise InputError(
            f"{root} is the directory of {whose}.",
            hint=f"Name another directory, or continue that run: holdfast run --resume {root}.",
        )


async def require_owner(visit: StageVisit) -> None:
    """A run whose directory belongs to another one is cancelled, and does nothing more: it was taken over, or
    was another's when this run was started (under an idempotency key, where that is not checked before)."""
    if is_refused_here():
        return
    ctx = visit.ctx
    root = logs_root_here(visit.given, ctx.run_id)
    owner = read_owner(root)
    if owner is None or owner.run == ctx.run_id:
        return
    how = "was taken over by" if ctx.run_id in owner.before else "belongs to"
    await service_here().cancel(ctx.run_id, reason=f"its directory {how} run {owner.run}")
    await asyncio.sleep(_PATIENCE)
    raise InputError(f"{root} {how} run {owner.run}.", hint="Continue that run.")
