"""The person who answers: what they will say, and how long they take, is said before the run.

    human.approves(within="2h")
    result = await human.runs(refund, {"order_id": "A17", "amount": 250})

Several people: `human.as_("user:dana@acme")` is another one, who may do what that person may.

Time is a `FakeClock`: two hours pass in no time, and whatever falls due in them (a timeout, a reminder, an
escalation) happens first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from holdfast.testing.recorded_effects import DECIDING, NO, YES, ActingPerson, PlannedAction, perform
from holdfast.types.clock import micros
from holdfast.types.duration import parse_duration
from holdfast.types.status import HoldStatus, RunStatus

if TYPE_CHECKING:
    from holdfast.app.flow import Flow
    from holdfast.app.holdfast import Holdfast
    from holdfast.app.result import Result
    from holdfast.store.protocols import Store
    from holdfast.testing.clock import FakeClock
    from holdfast.types.hold import HoldRow

Duration = str | int | float | timedelta


class Human:
    """Does to the holds of a house what was promised, in the order in which it was promised."""

    def __init__(self, hf: Holdfast, clock: FakeClock, *, name: str = "user:human") -> None:
        self.hf = hf
        self.clock = clock
        self.who = ActingPerson(name=name)
        self.promised: list[PlannedAction] = []
        self.asked: list[HoldRow] = []  # what was shown, in the order of the answers

    @property
    def name(self) -> str:
        return self.who.name

    def as_(
        self,
        name: str,
        *,
        groups: Iterable[str] = (),
        roles: Iterable[str] = (),
        rights: Iterable[str] = (),
    ) -> Human:
        """Somebody else in the same house and the same order of promises, with these rights and no others.
        Where the house has a directory, what that says they belong to counts instead."""
        other = Human(self.hf, self.clock)
        other.who = ActingPerson(
            name=name,
            every=False,
            groups=frozenset(groups),
            roles=frozenset(roles),
            rights=frozenset(rights),
        )
        other.promised, other.asked = self.promised, self.asked
        return other

    # ------------------------------------------------------------------ what will be decided
    def approves(
        self, *, within: Duration = 0, to: str | None = None, comment: str | None = None, data: Any = None
    ) -> None:
        """Says yes to the next hold (of node `to`), in whatever word the hold has for it."""
        self._promise("answer", YES, within, to, data=data, comment=comment)

    def rejects(
        self, *, within: Duration = 0, to: str | None = None, comment: str | None = None, data: Any = None
    ) -> None:
        """Says no."""
        self._promise("answer", NO, within, to, data=data, comment=comment)

    def answers(
        self,
        decision: str,
        *,
        data: Any = None,
        within: Duration = 0,
        to: str | None = None,
        comment: str | None = None,
    ) -> None:
        """Says exactly this: the id of an option, or free text. Where several have to agree, it is a vote."""
        self._promise("answer", (decision,), within, to, data=data, comment=comment)

    votes = answers

    def places(
        self,
        decision: str,
        *,
        data: Any = None,
        within: Duration = 0,
        to: str | None = None,
        comment: str | None = None,
    ) -> None:
        """The same from an inbox: it can be taken back (`undoes`) until its window is over."""
        self._promise("place", (decision,), within, to, data=data, comment=comment)

    def undoes(self, *, within: Duration = 0, to: str | None = None) -> None:
        """Takes back what they placed."""
        self._promise("undo", (), within, to)

    def cancels(self, reason: str = "cancelled", *, within: Duration = 0, to: str | None = None) -> None:
        """Withdraws the question."""
        self._promise("cancel", (reason,), within, to)

    # ------------------------------------------------------------------ what else will be done
    def comments(self, text: str, *, within: Duration = 0, to: str | None = None) -> None:
        """Says something about it; it stays open."""
        self._promise("comment", (text,), within, to)

    def claims(self, *, within: Duration = 0, to: str | None = None) -> None:
        """Takes it for a while."""
        self._promise("claim", (), within, to)

    def releases(self, *, within: Duration = 0, to: str | None = None) -> None:
        """Lets go of what they claimed."""
        self._promise("release", (), within, to)

    def reassigns(self, whom: str, *, within: Duration = 0, to: str | None = None) -> None:
        """Hands it on to `whom`: `user:NAME`, `group:KEY` or `role:KEY`."""
        self._promise("reassign", (whom,), within, to)

    def asks_back(
        self, text: str, *, of: str = "requester", within: Duration = 0, to: str | None = None
    ) -> None:
        """Asks the requester, the agent or a colleague (`of`). Pauses the deadline until `answers_question`."""
        self._promise("ask_back", (text, of), within, to)

    def answers_question(self, text: str, *, within: Duration = 0, to: str | None = None) -> None:
        """Answers what was asked back."""
        self._promise("reply", (text,), within, to)

    def _promise(self, do: str, says: Sequence[str], within: Duration, to: str | None, **more: Any) -> None:
        after = parse_duration(within, allow_zero=True)
        self.promised.append(PlannedAction(do=do, says=tuple(says), within=after, to=to, by=self.who, **more))

    # ------------------------------------------------------------------ runs
    async def runs(self, flow: Flow, given: Any = None, **options: Any) -> Result:
        """Start a run and see it through: until it ends, or asks something that nobody promised to answer."""
        return await self._attend(flow, await flow.run(given, on=self.hf, **options))

    async def resumes(self, flow: Flow, run_id: str) -> Result:
        """Go on with a run, after an answer, a crash, or when time has passed."""
        await self._notice()
        return await self._attend(flow, await flow.resume(run_id, on=self.hf))

    async def replies(self) -> int:
        """Answer the holds that are open now, whoever's they are: for runs that a worker drives."""
        store = await self.hf.open()
        given = 0
        while await self._reply(await (await self.hf.service()).holds(), store):
            given += 1
        return given

    async def waits(self, duration: Duration) -> None:
        """Time passes, and what falls due in it happens: timers, reminders, escalations, expiry."""
        store = await self.hf.open()
        await self._wait(store, self.clock.now() + micros(parse_duration(duration)))

    async def _attend(self, flow: Flow, result: Result) -> Result:
        store = await self.hf.open()
        while result.waiting:
            if result.status is RunStatus.waiting:
                await self._let_time_pass(store)
            elif not await self._reply(result.holds, store) and not await self._confirm_placed(
                result.holds, store
            ):
                break
            result = await flow.resume(result.run_id, on=self.hf)
        return result

    async def _confirm_placed(self, holds: Sequence[HoldRow], store: Store) -> bool:
        """A decision that nobody takes back is made when its window is over."""
        placed = [hold.placed_until for hold in holds if hold.placed_until is not None]
        if placed:
            await self._wait(store, min(placed))
        return bool(placed)

    async def _let_time_pass(self, store: Store) -> None:
        """To the next timer: a run that waits only for time has nobody to wait for."""
        due = await store.next_timer()
        if due is not None and due > self.clock.now():
            self.clock.advance(timedelta(microseconds=due - self.clock.now()))
        await self._notice()

    async def _notice(self) -> None:
        """What a worker would notice by now: timers that are due, deadlines that have passed."""
        store = await self.hf.open()
        await store.fire_timers(limit=1000)
        await (await self.hf.service()).runtime.sweep_holds()

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

    async def _give(self, reply: PlannedAction, hold: HoldRow, store: Store) -> None:
        if reply.do in DECIDING:
            self.asked.append(hold)
        await self._wait(store, self.clock.now() + micros(reply.within))
        now = await store.hold(hold.id)
        if now is None or now.status is not HoldStatus.pending:
            return  # too late: what the hold says about its timeout has happened
        await perform(reply, now, await self.hf.holds())
