"""A ring in which people, sweeps and deliverers get at the same hold in the same moment.

Each contender has a thread, an event loop and a handle on the store of its own. In half of the rounds all of
them begin together; in the other half each has read the row and decided before any of them may write, which
is the worst that can happen to a compare-and-set.
"""

from __future__ import annotations

import asyncio
import random
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from holdfast import Flow, Holdfast, Result
from holdfast.holds.queries.audit import verify_audit
from holdfast.holds.service import HoldService
from holdfast.store.protocols import Store
from holdfast.testing.clock import FakeClock
from holdfast.types.audit import AuditRow
from holdfast.types.hold import ChangeRefusal, HoldChange, HoldRow, Note
from holdfast.types.ids import HoldId
from holdfast.types.status import RunStatus
from tests.deadlines import HANG

ROUNDS = 200
ENOUGH = 40  # rounds in which every outcome comes about
EFFECTIVE = ("resolved", "cancelled", "expired", "escalated", "reassigned")

Act = Callable[[Store, HoldRow], Awaitable[Any]]
Opener = Callable[[], Awaitable[Store]]


class Gate:
    """Opens when everybody has come to it or has gone home; each waits at it once a round."""

    def __init__(self, contenders: int) -> None:
        self._contenders = contenders
        self._moved = threading.Condition()
        self._settled: set[int] = set()
        self.favoured = 0

    def shut(self, favoured: int) -> None:
        """For the next round; whoever is favoured goes through it a little before the others."""
        with self._moved:
            self._settled.clear()
            self.favoured = favoured

    def wait(self, number: int) -> None:
        if not self._settle(number):
            return
        with self._moved:
            assert self._moved.wait_for(lambda: len(self._settled) == self._contenders, HANG), "nobody came"
        if number != self.favoured:
            time.sleep(0.0003)

    def leave(self, number: int) -> None:
        self._settle(number)

    def _settle(self, number: int) -> bool:
        with self._moved:
            fresh = number not in self._settled
            self._settled.add(number)
            self._moved.notify_all()
            return fresh


class Poised:
    """A handle whose first change of a hold waits until all the others are about to make theirs."""

    def __init__(self, store: Store, gate: Gate, number: int) -> None:
        self._store, self._gate, self._number = store, gate, number

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def change_hold(self, change: HoldChange) -> HoldRow | ChangeRefusal:
        # Blocking is meant: the loop of this thread has nothing else to run.
        self._gate.wait(self._number)
        return await self._store.change_hold(change)


class Contender:
    def __init__(self, number: int, gate: Gate, opener: Opener) -> None:
        self._number, self._gate, self._opener = number, gate, opener
        self._pool = ThreadPoolExecutor(1)
        self._loop = asyncio.new_event_loop()
        self._store: Store | None = None

    async def act(self, what: Act, row: HoldRow, *, poised: bool) -> Any:
        """What it came to: a value, or the error."""
        here = asyncio.get_running_loop()
        return await here.run_in_executor(self._pool, self._run, self._act(what, row, poised))

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._pool, self._end)
        self._pool.shutdown()

    def _run(self, work: Any) -> Any:
        return self._loop.run_until_complete(work)

    async def _act(self, what: Act, row: HoldRow, poised: bool) -> Any:
        self._store = self._store or await self._opener()
        store: Any = Poised(self._store, self._gate, self._number) if poised else self._store
        try:
            if not poised:
                self._gate.wait(self._number)
            return await what(store, row)
        except Exception as error:
            return error
        finally:
            self._gate.leave(self._number)

    def _end(self) -> None:
        if self._store is not None:
            self._run(self._store.close())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


class Arena:
    """Where runs ask, contenders race for what they ask, and the run goes on with what is left."""

    def __init__(
        self, hf: Holdfast, store: Store, clock: FakeClock, opener: Opener, *, at_most: int | None = None
    ) -> None:
        """`at_most`: rounds of a race, where only a few can be afforded."""
        self.hf, self.store, self.clock, self._opener = hf, store, clock, opener
        self._at_most = at_most
        self.holds = HoldService(store)
        self.paid: list[str] = []
        self.seen: set[str] = set()
        self.flow = Flow("none")

    def asking(self, **asked: Any) -> None:
        """What the runs ask from now on; a payment follows where it is approved."""
        given = {"options": ["approve", "reject"], "assignee": "group:finance", **asked}
        self.flow = flow = Flow("refund", effect="pure")
        ask = flow.hold("approve", prompt="Pay 250?", **given)

        @flow.node(effect="external", idempotency_key="{{n}}")
        async def pay(_s: dict[str, Any], ctx: Any) -> dict[str, Any]:
            self.paid.append(ctx.run_id)
            return {"paid": True}

        flow.edge(ask, pay, when="decision == 'approve'")

    async def asked(self) -> HoldRow:
        result = await self.flow.run({"n": 1}, on=self.hf)
        # Where the store is slow the runtime may still watch its runs: it would be one more contender.
        watching = (await self.hf.service()).runtime._watch_task
        if watching is not None:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        (hold,) = result.holds
        return await self.row(hold.id)

    async def race(
        self,
        *acts: Act,
        judge: Callable[[HoldRow, Sequence[Any]], Awaitable[str]],
        before: Callable[[HoldRow], Awaitable[None]] | None = None,
        over: Callable[[], Awaitable[Any]] | None = None,
        rounds: int = ROUNDS,
    ) -> None:
        """Again and again: `judge` gets the row and what each act came to, and names the outcome.

        `over`: what they race for, if it is no hold that was asked before."""
        gate, dice = Gate(len(acts)), random.Random(len(acts))
        ring = [Contender(number, gate, self._opener) for number in range(len(acts))]
        hurried = sys.getswitchinterval()
        sys.setswitchinterval(2e-5)
        try:
            for number in range(min(rounds, self._at_most or rounds)):
                row = await (over or self.asked)()
                if before is not None:
                    await before(row)
                gate.shut(dice.randrange(len(acts)))
                racing = zip(ring, acts, strict=True)
                poised = number % 2 == 0
                done = await asyncio.gather(*(who.act(what, row, poised=poised) for who, what in racing))
                self.seen.add(await judge(row, done))
        finally:
            sys.setswitchinterval(hurried)
            for who in ring:
                await who.close()
        assert (await verify_audit(self.store, "default")).whole

    @property
    def is_short(self) -> bool:
        """In a few rounds not every outcome has to come about."""
        return self._at_most is not None and self._at_most < ENOUGH

    def saw(self, *outcomes: str) -> None:
        """These, and no other."""
        assert self.seen <= set(outcomes), self.seen
        assert self.is_short or self.seen == set(outcomes), self.seen

    # ------------------------------------------------------------------ looking at what is left
    async def row(self, hold: str) -> HoldRow:
        found = await self.store.hold(HoldId(hold))
        assert found is not None
        return found

    async def audit(self, row: HoldRow, action: str | None = None) -> list[AuditRow]:
        found = await self.store.audit(row.tenant, hold=row.id)
        return [each for each in found if action in (None, each.action)]

    async def effective(self, row: HoldRow) -> list[str]:
        return [each.action for each in await self.audit(row) if each.action in EFFECTIVE]

    async def topics(self, row: HoldRow) -> list[str]:
        return [each.topic for each in await self.store.list_outbox(hold=row.id)]

    async def drafts(self, row: HoldRow) -> list[Note]:
        return await self.store.hold_notes(row.id, kinds=("draft",))

    async def mail(self, row: HoldRow) -> list[str]:
        return [each.kind for each in (await self.store.pending(row.run))[1]]

    async def goes_on(self, row: HoldRow) -> Result:
        """The run takes its mail; then nothing is left to take. (One that failed would ask anew.)"""
        result = await self.flow.resume(row.run, on=self.hf)
        if result.status is not RunStatus.failed:
            again = await self.flow.resume(row.run, on=self.hf)
            assert again.status is result.status, (again, result)
        return result

    def payments(self, row: HoldRow) -> int:
        return self.paid.count(row.run)


def said(row: HoldRow) -> dict[str, Any]:
    return msgspec.json.decode(row.resolution) if row.resolution else {}
