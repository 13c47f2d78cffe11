"""Checks of both stores of a move, before anything changes and after the copy."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from holdfast.errors import (
    BlobMissingError,
    CheckpointCorruptError,
    InputError,
    StoreFillingError,
    StoreMovedError,
    StoreUnavailableError,
)
from holdfast.holds.queries.audit import verify_audit
from holdfast.store.copy import RULES, Movable, MoveMark
from holdfast.store.open import move_endpoint, open_store


@asynccontextmanager
async def open_both(source: str, target: str) -> AsyncGenerator[tuple[Movable, Movable]]:
    old, new = move_endpoint(source), move_endpoint(target)
    try:
        if not await old.exists():
            raise StoreUnavailableError(
                f"there is no store at {old.where}.", hint="The first address is the one to move from."
            )
        await old.prepare()
        if await new.exists() and await old.identity() == await new.identity():
            raise InputError(f"{old.where} and {new.where} are the same store.", hint="Name another target.")
        yield old, new
    finally:
        await old.close()
        await new.close()


async def require_whole(address: str, where: str) -> int:
    """A damaged store is not moved, and the copy must be intact: blobs, indexes, audit chains.
    Returns the number of blobs whose bytes are stored elsewhere."""
    store = await open_store(address)
    try:
        facts = await store.examine(deep=True)
        if facts.problems:
            raise CheckpointCorruptError(
                f"{where} is damaged: {facts.problems[0]}.", hint="`holdfast doctor` shows everything."
            )
        if facts.missing:
            raise BlobMissingError(
                f"{where} lacks {len(facts.missing)} blobs that its runs refer to.",
                hint="Restore them from a backup, or delete those runs; `holdfast doctor` lists them.",
            )
        for tenant in await store.audit_tenants():
            found = await verify_audit(store, tenant)
            if not found.whole:
                raise CheckpointCorruptError(
                    f"the audit of tenant {tenant} in {where} is not intact: {found.why}.",
                    hint="`holdfast audit verify` shows where; restore a backup.",
                )
        return len(facts.outside)
    finally:
        await store.close()


async def require_room(old: Movable, new: Movable, mark: MoveMark | None) -> MoveMark | None:
    """Checks that the target can be used; returns its mark, if this move was started before."""
    here = await old.mark() if mark is None else mark
    if here is not None and here.state == "filling":
        raise StoreFillingError(
            f"{old.where} is itself being filled from {here.peer}.", hint="Finish or undo that move first."
        )
    if here is not None and here.peer != new.where:
        raise moves_elsewhere(old, here)
    there = await new.mark()
    if there is not None and there.state != "filling":
        raise StoreMovedError(
            f"{new.where} was itself moved to {there.peer}.", hint="Name an empty store as the target."
        )
    if there is not None:
        if there.peer != old.where or (here is not None and here.token != there.token):
            raise StoreFillingError(
                f"{new.where} is partly filled from {there.peer}.",
                hint=f"Finish that move, or undo it: holdfast promote --undo {there.peer} {new.where}.",
            )
        return there
    if (here is None or here.state != "moved") and not await is_empty(new):
        raise InputError(
            f"{new.where} is not empty: the target of a move must be empty.",
            hint="Name a new file, another database, or another ?schema=.",
        )
    return None


async def is_empty(half: Movable) -> bool:
    known = await half.shapes()
    for rule in RULES:
        if rule.table in known and await half.count(rule):
            return False
    return True


def moves_elsewhere(old: Movable, mark: MoveMark) -> StoreMovedError:
    return StoreMovedError(
        f"{old.where} was moved to {mark.peer}, or is being moved.",
        hint=f"Continue it: holdfast promote {old.where} {mark.peer}; --undo undoes an unfinished move.",
    )


def no_such_move(old: Movable, new: Movable) -> InputError:
    return InputError(
        f"no move from {old.where} to {new.where} is in progress.", hint="There is nothing to undo."
    )
