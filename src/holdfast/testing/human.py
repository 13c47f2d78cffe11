"""The person who answers: what they will say, and how long they take, is said before the run.

    human.approves(within="2h")
    result = await human.runs(refund, {"order_id": "A17", "amount": 250})

Time is a `FakeClock`: two hours pass in no time, and whatever falls due in them (a timeout, an escalation)
happens first.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.types.clock import micros
from holdfast.types.duration import parse_duration
from holdfast.types.status import HoldStatus, RunStatus

if TYPE_CHECKING:
    from holdfast.app.flow import Flow
    from holdfast.app.house import Holdfast
    from holdfast.app.result import Result
    from holdfast.store.base import Store
    from holdfast.testing.clock import FakeClock
    from holdfast.types.hold import HoldRow

Duration = str | int | float | timedelta

YES: Final = ("approve", "approved", "yes", "accept", "ok")
NO: Final = ("reject", "rejected", "no", "decline", "deny")


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """One answer to come: the first of `says` that the hold offers, `within` after it was asked."""

    says: tuple[str, ...]
    within: timedelta
    to: str | None
    data: Any
    comment: str | None


class Human:
    """Answers the holds of a house, in the order in which the answers were promised."""

    def __init__(self, house: Holdfast, clock: FakeClock, *, name: str = "user:human") -> None:
        self.house = house
        self.clock = clock
        self.name = name
        self.promised: list[Reply] = []
        self.asked: list[HoldRow] = []  # what was shown, in the order of the answers

    # ------------------------------------------------------------------ what will be said
    def approves(
        self, *, within: Duration = 0, to: str | None = None, comment: str | None = None, data: Any = None
    ) -> None:
        """Says yes to the next hold (of node `to`), in whatever word the hold has for it."""
        self._promise(YES, within, to, data, comment)

    def rejects(
        self, *, within: Duration = 0, to: str | None = None, comment: str | None = None, data: Any = None
    ) -> None:
        """Says no."""
        self._promise(NO, within, to, data, comment)

    def answers(
        self,
        decision: str,
        *,
        data: Any = None,
        within: Duration = 0,
        to: str | None = None,
        comment: str | None = None,
    ) -> None:
        """Says exactly this: the id of an option, or free text."""
        self._promise((decision,), within, to, data, comment)

    def _promise(
        self, says: Sequence[str], within: Duration, to: str | None, data: Any, comment: str | None
    ) -> None:
        after = parse_duration(within, allow_zero=True)
        self.promised.append(Reply(says=tuple(says), within=after, to=to, data=data, comment=comment))

    # ------------------------------------------------------------------ runs
    async def runs(self, flow: Flow, given: Any = None, **options: Any) -> Result:
        """Start a run and see it through: until it ends, or asks something that nobody promised to answer."""
        return await self._attend(flow, await flow.run(given, on=self.house, **options))

    async def resumes(self, flow: Flow, run_id: str) -> Result:
        """Go on with a run, after an answer, a crash, or when time has passed."""
        await self._notice()
        return await self._attend(flow, await flow.resume(run_id, on=self.house))

    async def replies(self) -> int:
        """Answer the holds that are open now, whoever's they are: for runs that a worker drives."""
        store = await self.house.open()
        given = 0
        while await self._reply(await (await self.house.service()).holds(), store):
            given += 1
        return given

    async def _attend(self, flow: Flow, result: Result) -> Result:
        store = await self.house.open()
        while result.waiting:
            if result.status is RunStatus.waiting:
                await self._let_time_pass(store)
            elif not await self._reply(result.holds, store):
                break
            result = await flow.resume(result.run_id, on=self.house)
        return result

    async def _let_time_pass(self, store: Store) -> None:
        """To the next timer: a run that waits only for time has nobody to wait for."""
        due = await store.next_timer()
        if due is not None and due > self.clock.now():
            self.clock.advance(timedelta(microseconds=due - self.clock.now()))
        await self._notice()

    async def _notice(self) -> None:
        """What a worker would notice by now: timers that are due, deadlines that have passed."""
        store = await self.house.open()
        await store.fire_timers(limit=1000)
        await (await self.house.service()).runtime.sweep_holds()

    async def _wait(self, store: Store, until: int) -> None:
        """One thing after another: an escalation counts from the moment at which it was due."""
        while (due := await store.next_due_hold()) is not None and self.clock.now() < due <= until:
            self.clock.advance(timedelta(microseconds=due - self.clock.now()))
            await self._notice()
        self.clock.advance(timedelta(microseconds=until - self.clock.now()))
        await self._notice()

    async def _reply(self, holds: Sequence[HoldRow], store: Store) -> bool:
        for reply in self.promised:
            hold = next((hold for hold in holds if reply.to in (None, hold.node)), None)
            if hold is not None:
                self.promised.remove(reply)
                await self._give(reply, hold, store)
                return True
        return False

    async def _give(self, reply: Reply, hold: HoldRow, store: Store) -> None:
        self.asked.append(hold)
        await self._wait(store, self.clock.now() + micros(reply.within))
        now = await store.hold(hold.id)
        if now is None or now.status is not HoldStatus.pending:
            return  # too late: what the hold says about its timeout has happened
        service = await self.house.service()
        await service.answer(
            hold.id, _word(reply, hold), data=reply.data, comment=reply.comment, by=self.name
        )


def _word(reply: Reply, hold: HoldRow) -> str:
    """Of the words for yes or no, the one that this hold offers."""
    offered = [option.id for option in hold.options or ()]
    return next((word for word in reply.says if word in offered), reply.says[0])
