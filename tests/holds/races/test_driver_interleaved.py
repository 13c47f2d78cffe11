"""A run that is driven, with somebody deciding, withdrawing or sweeping before each of its store's calls.

The answer may come before the question is parked, while it is parked, or when the run is just going on: it is
taken once, and the run never waits for what has come already.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast
from holdfast.errors import HoldfastError
from holdfast.store.protocols import Store
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus, RunStatus
from tests.holds.races.acts import DANA, cancels, resolves, sweeps
from tests.holds.races.checks import audit_of, check_audit, check_row
from tests.holds.races.race import Arena

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("arena", ["memory"], indirect=True),
]

MOST = 120


class Nudged:
    """A handle before whose nth call, waited for or not, something else is done at once."""

    def __init__(self, store: Store, nth: int, other: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._store, self._nth, self._other = store, nth, other
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not callable(found) or name in ("now", "wait_change"):
            return found
        if inspect.iscoroutinefunction(found):
            return self._awaited(found)

        def call(*args: Any, **given: Any) -> Any:
            self._count()
            return found(*args, **given)

        return call

    def _awaited(self, found: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **given: Any) -> Any:
            self._count()
            return await found(*args, **given)

        return call

    def _count(self) -> None:
        self.calls += 1
        if self.calls == self._nth:
            # Nothing of the memory store ever waits, so that this ends before it returns.
            with pytest.raises(StopIteration):
                self._other().send(None)


async def cancels_the_run(arena: Arena, row: HoldRow) -> None:
    await (await arena.hf.service()).cancel(row.run)


OTHERS: dict[str, Callable[[Arena, HoldRow], Awaitable[Any]]] = {
    "resolve": lambda arena, row: resolves(DANA)(arena.store, row),
    "cancel": lambda arena, row: cancels(arena.store, row),
    "sweep": lambda arena, row: sweeps(arena)(arena.store, row),
    "cancel the run": cancels_the_run,
}


@pytest.mark.covers("RC-9", "RC-10", "RC-11", "RM-1", "HOLD-PROOF-01", "HOLD-PROOF-05", "D-29")
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("decided", [False, True])
@pytest.mark.parametrize("scripted", [False, True])
async def test_a_run_takes_what_comes_once_whenever_it_comes(
    arena: Arena, other: str, decided: bool, scripted: bool
) -> None:
    """`decided`: it goes on with an answer when the other act comes. `scripted`: it asks within a node."""
    arena.asking(timeout="1h", on_timeout="cancel")
    if scripted:
        _ask_within_a_node(arena)
    for nth in range(1, MOST):
        before = await arena.asked() if decided else None
        if before is not None:
            await arena.holds.resolve(DANA, before.id, "approve")
        acted: list[bool] = []

        async def act(before: HoldRow | None = before, acted: list[bool] = acted) -> None:
            rows = [before] if before is not None else await _newest(arena)
            for row in rows:
                acted.append(True)
                try:
                    await OTHERS[other](arena, row)
                except HoldfastError as error:
                    assert error.status in (404, 409)  # noqa: PT017

        handle: Any = Nudged(arena.store, nth, act)
        hf = Holdfast(handle, clock=arena.clock)
        flow = arena.flow
        result = await (flow.run({"n": 1}, on=hf) if before is None else flow.resume(before.run, on=hf))
        await hf.close()
        (row,) = await arena.store.holds(run=result.run_id)
        await _judge(arena, row)
        if handle.calls < nth:
            assert nth > 5
            return
    pytest.fail("it calls without end")


def _ask_within_a_node(arena: Arena) -> None:
    arena.flow = flow = Flow("refund", effect="read")

    @flow.script
    async def talk(_s: dict[str, Any], ctx: Context) -> dict[str, Any]:
        said = await ctx.ask("Pay?", options=["approve", "reject"], assignee="group:finance", timeout="1h")
        if said.decision == "approve":
            await ctx.step("pay", lambda: arena.paid.append(ctx.run_id))
        return {"paid": said.decision}


async def _newest(arena: Arena) -> list[HoldRow]:
    return await arena.store.holds(status=HoldStatus.pending)


async def _judge(arena: Arena, row: HoldRow) -> None:
    check_row(row)
    result = await arena.goes_on(row)
    after = await arena.row(row.id)
    check_row(after)
    check_audit(after, [each for each in await audit_of(arena.store) if each[0] == row.id])
    # A run that was asked to stop with its last step has ended without reading that.
    assert set(await arena.mail(row)) <= {"cancel"}
    # Either it waits, with its question open; or it has ended, with its question closed.
    assert (result.status is RunStatus.pending_input) is (after.status is HoldStatus.pending)
    paid = after.status is HoldStatus.resolved and result.status is RunStatus.completed
    assert arena.payments(row) == paid or result.status is RunStatus.cancelled
    assert arena.payments(row) <= (after.status is HoldStatus.resolved)
    if after.status is HoldStatus.pending:
        await cancels_the_run(arena, row)
        await arena.flow.resume(row.run, on=arena.hf)
