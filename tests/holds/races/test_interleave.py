"""Every operation, with another act in the middle of it: before each of its calls of the store in turn.

What the one has read is then not what is there when it writes. It may be refused, and it must say why; the
row, its audit and the run's mail agree whatever came of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from holdfast.errors import ConflictError, ForbiddenError, InputError, NotFoundError
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.actions.submission import Submission
from holdfast.holds.links.keys import LinkKeys
from holdfast.holds.links.open import Links
from holdfast.holds.links.tokens import LinkGrant, mint
from holdfast.holds.notify.channels import Channels
from holdfast.holds.notify.deliverer import Deliverer
from holdfast.holds.queries.audit import verify_audit
from holdfast.holds.service import HoldService
from holdfast.holds.timing.sweeper import HoldSweeper
from holdfast.store.protocols import Store
from holdfast.testing.clock import FakeClock
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus, RunStatus
from tests.holds.notify.scene import Diary
from tests.holds.races.acts import ADMIN, DANA, PEOPLE, cancels, resolves, sweeps
from tests.holds.races.checks import audit_of, check_audit, check_row
from tests.holds.races.race import Act, Arena
from tests.holds.races.test_action_races import KEY, reassigns
from tests.holds.races.test_tenants import ON_A_HOLD

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("arena", ["memory"], indirect=True),
]

MOST = 90
APPROVALS: dict[str, dict[str, Any]] = {
    "any": {},
    "quorum": {"approval": {"mode": "quorum", "need": 2, "of": ["group:finance", "role:cfo"]}},
    "sequential": {"approval": {"mode": "sequential", "of": ["group:finance", "user:p2@acme"]}},
}
REFUSED = (InputError, ForbiddenError, ConflictError, NotFoundError)
BOLD = msgspec.structs.replace(DANA, rights=ADMIN.rights)


class Interrupted:
    """A handle before whose nth call something else is done, by another."""

    def __init__(self, store: Store, nth: int, other: Callable[[], Awaitable[Any]]) -> None:
        self._store, self._nth, self._other = store, nth, other
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def call(*args: Any, **given: Any) -> Any:
            self.calls += 1
            if self.calls == self._nth:
                await self._other()
            return await found(*args, **given)

        return call


async def links(store: Store, row: HoldRow) -> Any:
    endless = msgspec.structs.replace(row, expires_at=None)
    token = mint(endless, LinkGrant(to=DANA.id, purpose="decide"), KEY, store.now())
    return await Links(HoldContext(store), LinkKeys(store, [KEY])).decide(
        token, Submission(decision="approve")
    )


async def delivers(store: Store, _row: HoldRow) -> Any:
    clock = FakeClock()
    channels = Channels(store, clock, given=(Diary(),))
    return await Deliverer(store, clock, channels).deliver()


async def sweep(store: Store, _row: HoldRow) -> Any:
    return await HoldSweeper(store, FakeClock()).sweep()


def of_service(name: str) -> Act:
    async def act(store: Store, row: HoldRow) -> Any:
        return await ON_A_HOLD[name](HoldService(store), BOLD, row.id)

    return act


OPERATIONS: dict[str, Act] = {
    # Files need a form that asks for one.
    **{name: of_service(name) for name in ON_A_HOLD if name != "attach"},
    "link": links,
    "deliver": delivers,
    "sweep": sweep,
}
OTHERS: dict[str, Callable[[Arena], Act]] = {
    "resolve": lambda _: resolves(PEOPLE[1], "reject"),
    "cancel": lambda _: cancels,
    "reassign": lambda _: reassigns("group:leads", seen=False),
    "sweep": sweeps,
    "place": lambda _: _places,
}


# What has to be there for an operation to have something to do.
FIRST: dict[str, Callable[[HoldService, str], Awaitable[Any]]] = {
    "undo": lambda service, hold: service.place(BOLD, hold, "approve"),
    "release": lambda service, hold: service.claim(BOLD, hold),
    "reply": lambda service, hold: service.ask_back(PEOPLE[1], hold, "Why?", to="agent"),
    "withdraw_question": lambda service, hold: service.ask_back(BOLD, hold, "Why?", to="agent"),
    "delete_draft": lambda service, hold: service.save_draft(BOLD, hold, {"decision": "approve"}),
}


async def _places(store: Store, row: HoldRow) -> Any:
    return await HoldService(store).place(PEOPLE[1], row.id, "reject")


@pytest.mark.covers("HOLD-PROOF-01", "HOLD-PROOF-02", "RC-13")
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("mode", APPROVALS)
async def test_an_operation_is_whole_or_refused_when_another_comes_in_between(
    arena: Arena, mode: str, name: str, other: str
) -> None:
    arena.asking(timeout="1h", on_timeout="escalate:group:leads", reminder="15m", **APPROVALS[mode])
    for nth in range(1, MOST):
        row = await arena.asked()
        arena.clock.advance(hours=1)
        if name in FIRST:
            await FIRST[name](arena.holds, row.id)

        async def act(row: HoldRow = row) -> None:
            with suppress(*REFUSED):
                await OTHERS[other](arena)(arena.store, row)

        handle: Any = Interrupted(arena.store, nth, act)
        with suppress(*REFUSED):  # any other error is a slip
            await OPERATIONS[name](handle, row)
        await _judge(arena, row)
        if handle.calls < nth:
            assert nth > 1
            return
    pytest.fail("it calls without end")


async def _judge(arena: Arena, before: HoldRow) -> None:
    row = await arena.row(before.id)
    check_row(row)
    check_audit(row, [each for each in await audit_of(arena.store) if each[0] == row.id])
    assert (await verify_audit(arena.store, row.tenant)).whole
    assert len(await arena.mail(row)) == (row.status is not HoldStatus.pending)
    text = await arena.store.list_outbox(hold=row.id)
    assert len({each.key for each in text}) == len(text)
    result = await arena.flow.resume(row.run, on=arena.hf)
    after = await arena.row(row.id)
    assert row.status is HoldStatus.pending or msgspec.structs.replace(after, resumed_at=None) == row
    assert (result.status is RunStatus.pending_input) is (after.status is HoldStatus.pending)
    if after.status is HoldStatus.pending:
        # Out of the way of the next round.
        await (await arena.hf.service()).cancel(row.run)
        await arena.flow.resume(row.run, on=arena.hf)
