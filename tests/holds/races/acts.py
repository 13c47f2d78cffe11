"""Who races, and what they do."""

from __future__ import annotations

from typing import Any

from holdfast.holds.service import HoldService
from holdfast.holds.timing.sweeper import HoldSweeper
from holdfast.store.protocols import Store
from holdfast.types.hold import HoldRow
from holdfast.types.terms import MANAGE, Actor
from tests.holds.races.race import Act, Arena

PEOPLE = [Actor(id=f"user:p{n}@acme", groups=frozenset({"finance"})) for n in range(3)]
DANA = PEOPLE[0]
ADMIN = Actor(id="user:ada@acme", rights=frozenset({MANAGE}))
FILLED = {"decision": "approve", "comment": "Within limits."}


def resolves(who: Actor, decision: str = "approve") -> Act:
    async def act(store: Store, row: HoldRow) -> Any:
        body = {**FILLED, "decision": decision}
        return await HoldService(store).resolve(who, row.id, body)

    return act


async def cancels(store: Store, row: HoldRow) -> Any:
    return await HoldService(store).cancel(ADMIN, row.id, reason="not needed")


def sweeps(arena: Arena) -> Act:
    async def act(store: Store, row: HoldRow) -> Any:
        return await HoldSweeper(store, arena.clock).sweep()

    return act


def overdue(arena: Arena) -> Any:
    async def passes(row: HoldRow) -> None:
        arena.clock.advance(milliseconds=100)

    return passes
