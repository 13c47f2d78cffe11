"""A simulated person: their answers, and how long they take, are planned before the run.

    human.approves(within="2h")
    result = await human.runs(refund, {"order_id": "A17", "amount": 250})

Several people: `human.as_("user:dana@acme")` is another person, with that person's rights.

Time is a `FakeClock`: two hours pass at once, and everything that becomes due in them (a timeout, a reminder,
an escalation) happens first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from holdfast.testing.planned_actions import DECIDING, NO, YES, ActingPerson, PlannedAction, perform
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
    """Acts on the holds of a Holdfast instance as planned, in the planned order."""

    def __init__(self, hf: Holdfast, clock: FakeClock, *, name: str = "user:human") -> None:
        self.hf = hf
        self.clock = clock
        self.who = ActingPerson(name=name)
        self.promised: list[PlannedAction] = []
        self.asked: list[HoldRow] = []  # the holds that were shown, in the order of the answers

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
        """Another person, with exactly these rights, on the same instance and in the same planned order.
        If the instance has a directory, groups and roles come from there."""
        other = Human(self.hf, self.clock)
        other.who = ActingPerson(
            name=name,
            every=False,
            groups=frozenset(groups),
            roles=frozenset(roles),
            rights=frozenset(rights),
        )
        # Shared on purpose: the plan is one sequence for all people.
        other.promised, other.asked = self.promised, self.asked
        return other

    # ------------------------------------------------------------------ decisions
    def approves(
        self, *, within: Duration = 0, to: str | None = None, comment: str | None = None, data: Any = None
    ) -> None:
        """Approves the next hold (of node `to`), with the option that the hold offers for it."""
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
        """Answers exactly this: the id of an option, or free text. A vote, if several people must agree."""
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
        """The same from an inbox: it can be undone (`undoes`) until its undo window ends."""
        self._promise("place", (decision,), within, to, data=data, comment=comment)

    def undoes(self, *, within: Duration = 0, to: str | None = None) -> None:
        """Undoes their placed decision."""
        self._promise("undo", (), within, to)

    def cancels(self, reason: str = "cancelled", *, within: Duration = 0, to: str | None = None) -> None:
        """Withdraws the question."""
        self._promise("cancel", (reason,), within, to)

    # ------------------------------------------------------------------ other actions
    def comments(self, text: str, *, within: Duration = 0, to: str | None = None) -> None:
        """Adds a comment; the hold stays open."""
        self._promise("comment", (text,), within, to)

    def claims(self, *, within: Duration = 0, to: str | None = None) -> None:
        """Claims the hold for a while."""
        self._promise("claim", (), within, to)

    def releases(self, *, within: Duration = 0, to: str | None = None) -> None:
        """Releases their claim."""
        self._promise("release", (), within, to)

    def reassigns(self, whom: str, *, within: Duration = 0, to: str | None = None) -> None:
        """Reassigns it to `whom`: `user:NAME`, `group:KEY` or `role:KEY`."""
        self._promise("reassign", (whom,), within, to)

    def asks_back(
        self, text: str, *, of: str = "requester", within: Duration = 0, to: str | None = None
    ) -> None:
        """Asks the requester, the agent or a colleague (`of`); pauses the deadline until the answer."""
        self._promise("ask_back", (text, of), within, to)

    def answers_question(self, text: str, *, within: Duration = 0, to: str | None = None) -> None:
        """Answers a question that was asked back."""
        self._promise("reply", (text,), within, to)

    def _promise(self, do: str, says: Sequence[str], within: Duration, to: str | None, **more: Any) -> None:
        after = parse_duration(within, allow_zero=True)
        self.promised.append(PlannedAction(do=do, says=tuple(says), within=after, to=to, by=self.who, **more))

    # ------------------------------------------------------------------ runs
    async def runs(self, flow: Flow, given: Any = None, **options: Any) -> Result:
        """Start a run and drive it until it ends, or asks a question without a planned answer."""
        return await self._attend(flow, await flow.run(given, on=self.hf, **options))

    async def resumes(self, flow: Flow, run_id: str) -> Result:
        """Resume a run, after an answer, a crash, or when time has passed."""
        await self._notice()
        return await self._attend(flow, await flow.resume(run_id, on=self.hf))

    async def replies(self) -> int:
        """Answer all holds that are open now, of any run: for runs that a worker drives."""
        store = await self.hf.open()
        given = 0
        while await self._reply(await (await self.hf.service()).holds(), store):
            given += 1
        return given

    async def waits(self, duration: Duration) -> None:
        """Let time pass; everything that becomes due happens: timers, reminders, escalations, expiry."""
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
        """A placed decision counts when its undo window ends."""
        placed = [hold.placed_until for hold in holds if hold.placed_until is not None]
        if placed:
            await self._wait(store, min(placed))
        return bool(placed)

    async def _let_time_pass(self, store: Store) -> None:
        """Advance to the next timer, for a run that waits only for time."""
        due = await store.next_timer()
        if due is not None and due > self.clock.now():
            self.clock.advance(timedelta(microseconds=due - self.clock.now()))
        await self._notice()

    async def _notice(self) -> None:
        """What a worker would do by now: fire due timers, process passed deadlines."""
        store = await self.hf.open()
        await store.fire_timers(limit=1000)
        await (await self.hf.service()).runtime.sweep_holds()

    async def _wait(self, store: Store, until: int) -> None:
        """One deadline after another: an escalation counts from the time at which it was due."""
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
        # Read again: during the wait it may have been reassigned, escalated or decided.
        now = await store.hold(hold.id)
        if now is None or now.status is not HoldStatus.pending:
            return  # too late: the hold's timeout action has already happened
        await perform(reply, now, await self.hf.holds())
