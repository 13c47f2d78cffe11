"""Random operations by random people over time, with sweeps and deliveries, on two stores at once.

After each of them: what is decided stays as it is, the audit agrees with the row, and both stores agree.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from holdfast import Holdfast
from holdfast.holds.permissions.actor import ActorMemberships
from holdfast.holds.permissions.assignees import parse_assignee
from holdfast.holds.queries.audit import verify_audit
from holdfast.holds.queries.list import VIEWS
from holdfast.testing.clock import FakeClock
from holdfast.types.audit import AuditRow
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus, RunStatus
from holdfast.types.terms import Assignee
from tests.holds.races.checks import audit_of, check_audit, check_change, check_row
from tests.holds.races.model import ACTS, KINDS, PEOPLE, World, decision_of

FEW = settings(
    max_examples=12, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
MANY = settings(FEW, max_examples=1500, stateful_step_count=60)

some = st.integers(min_value=0, max_value=5)
people = st.sampled_from(sorted(PEOPLE))
likely = st.sampled_from(["ann", "bob", "cid", "ada"])
BY_ID = {actor.id: name for name, actor in PEOPLE.items() if actor.tenant == "default"}
DECIDING = ["approve", "reject", "place", "keyed", "undo", "approve"]
ARRANGING = [
    "claim",
    "release",
    "reassign",
    "extend",
    "cancel",
    "ask back",
    "reply",
    "place",
    "drop question",
]
TALKING = sorted(set(ACTS) - {*DECIDING, *ARRANGING})


class Holds(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = FakeClock()
        self.folder = tempfile.TemporaryDirectory()
        self.holds: list[str] = []
        self.before: dict[str, HoldRow] = {}
        self.worlds = [
            self.now(self._world(address))
            for address in ("memory:", f"sqlite:{Path(self.folder.name) / 'h.db'}?sync=normal")
        ]

    def now(self, work: Awaitable[Any]) -> Any:
        return self.loop.run_until_complete(work)

    async def _world(self, address: str) -> World:
        hf = Holdfast(address, clock=self.clock)
        return World(hf, await hf.open(), self.clock)

    def both(self, act: Callable[[World], Awaitable[Any]]) -> Any:
        """The same in both worlds, to the same end."""
        first, second = (self.now(act(world)) for world in self.worlds)
        assert first == second, (first, second)
        return first

    # ------------------------------------------------------------------ what happens
    @initialize(kind=st.sampled_from(sorted(KINDS)))
    def begins(self, kind: str) -> None:
        self.asks(kind)

    @precondition(lambda self: len(self.holds) < 6)
    @rule(kind=st.sampled_from(sorted(KINDS)))
    def asks(self, kind: str) -> None:
        number = len(self.holds) + 1
        self.holds.append(self.both(lambda world: world.asks(kind, number)))

    @rule(act=st.sampled_from(sorted(ACTS)), who=people, which=some, number=some)
    def does_anything(self, act: str, who: str, which: int, number: int) -> None:
        self._do(act, who, self.holds[which % len(self.holds)], number)

    @rule(act=st.sampled_from(DECIDING), who=likely, which=some, number=some)
    def decides(self, act: str, who: str, which: int, number: int) -> None:
        self._do(act, who, self._open(which), number)

    @rule(act=st.sampled_from(ARRANGING), who=likely, which=some, number=some)
    def arranges(self, act: str, who: str, which: int, number: int) -> None:
        self._do(act, who, self._open(which), number)

    @rule(act=st.sampled_from(TALKING), who=likely, which=some, number=some)
    def talks(self, act: str, who: str, which: int, number: int) -> None:
        self._do(act, who, self._open(which), number)

    @rule(which=some)
    def is_followed_up(self, which: int) -> None:
        """Whoever began something ends it."""
        hold = self._open(which)
        row = self.before[hold]
        if row.placed_by is not None:
            self._do("undo", BY_ID[row.placed_by], hold, 0)
        elif row.paused_at is not None:
            self._do("reply", "ada", hold, 0)
        elif row.claimed_by is not None:
            self._do("release", BY_ID[row.claimed_by], hold, 0)

    def _open(self, which: int) -> str:
        """One that is still to be decided, if there is any."""
        found = [hold for hold in self.holds if self.before[hold].status is HoldStatus.pending]
        return (found or self.holds)[which % len(found or self.holds)]

    def _do(self, act: str, who: str, hold: str, number: int) -> None:
        self.both(lambda world: world.does(act, who, hold, number))

    @rule(seconds=st.sampled_from([1, 60, 900, 3600, 18_000]), swept=st.booleans(), told=st.booleans())
    def time_passes(self, seconds: int, swept: bool, told: bool) -> None:
        self.clock.advance(seconds=seconds)
        if swept:
            self.both(lambda world: world.sweeper.sweep())
        if told:
            self._deliver()

    def _deliver(self) -> None:
        # That it is over is told after what was on its way: how many rounds that takes is chance.
        for _ in range(3):
            for world in self.worlds:
                self.now(world.deliverer.deliver())
            self.clock.advance(seconds=1)

    @rule(which=some)
    def goes_on(self, which: int) -> None:
        hold = self.holds[which % len(self.holds)]
        self.both(lambda world: world.goes_on(hold))

    @precondition(lambda self: len(self.holds) > 3)
    @rule()
    def run_is_cancelled(self) -> None:
        hold = self.holds[0]

        async def cancel(world: World) -> RunStatus:
            await world.is_caught_up()
            row = await world.row(hold)
            service = await world.hf.service()
            if (await service.get(row.run)).status not in (RunStatus.completed, RunStatus.failed):
                await service.cancel(row.run)
            return await world.goes_on(hold)

        self.both(cancel)

    # ------------------------------------------------------------------ what always holds
    @rule(who=people, view=st.sampled_from(VIEWS))
    def looks(self, who: str, view: str) -> None:
        self.both(lambda world: _listed(world, who, view))

    @invariant()
    def rows_and_audit_agree(self) -> None:
        audits = [self.now(audit_of(world.store)) for world in self.worlds]
        first, second = (sorted(each[:3] for each in audit) for audit in audits)
        assert first == second, (first, second)
        for hold in self.holds:
            row = self.both(lambda world, hold=hold: world.row(hold))
            check_row(row)
            check_change(self.before.get(hold), row)
            for audit in audits:
                check_audit(row, [each for each in audit if each[0] == hold])
            self.before[hold] = row

    def teardown(self) -> None:
        try:
            for hold in self.holds:
                self.both(lambda world, hold=hold: world.goes_on(hold))
            for world in self.worlds:
                self.now(_check_end(world, self.holds))
        finally:
            for world in self.worlds:
                self.now(world.hf.close())
            self.now(self.loop.shutdown_default_executor())
            self.loop.close()
            self.folder.cleanup()


async def _listed(world: World, who: str, view: str) -> Any:
    """The list is what may be seen of that view, asked row by row; the count is its length."""
    ctx, actor = world.holds.ctx, PEOPLE[who]
    if view == "unassigned" and "holds:manage" not in actor.rights:
        return None
    found = await world.holds.list(actor, view=view, limit=100)
    assert await world.holds.count(actor, view=view) == len(found.rows)
    standing = await ctx.standing(actor, world.clock.now())
    rows = await world.store.holds(tenant=actor.tenant)
    seen = {row.id for row in rows if await ctx.may(standing, "view", row, world.clock.now())}
    assert {row.id for row in found.rows} <= seen
    if view == "all":
        # Whoever has no right beyond their own has there what waits for them, and not what did or will.
        theirs = {row.id for row in rows if actor.rights or _waits_for(row, standing)}
        assert {row.id for row in found.rows} == seen & theirs, (found.rows, seen, theirs)
    return [row.id for row in found.rows]


def _waits_for(row: HoldRow, standing: ActorMemberships) -> bool:
    whose = [Assignee(row.assignee_type, row.assignee_value), *map(parse_assignee, row.terms.also_for)]
    return any(standing.own.fits(each) for each in whose)


async def _check_end(world: World, holds: list[str]) -> None:
    assert (await verify_audit(world.store, "default")).whole
    paid = {run: world.paid.count(run) for run in world.paid}
    for hold in holds:
        row = await world.row(hold)
        run = await world.store.get_run(row.run)
        assert run is not None
        if row.status is HoldStatus.pending:
            assert run.status is RunStatus.pending_input
        # Once where it was approved, and never otherwise. A run that was cancelled pays nothing.
        cancelled = run.status is RunStatus.cancelled
        assert paid.get(row.run, 0) == (decision_of(row) == "approve" and not cancelled)
        records = await world.store.audit("default", hold=hold, limit=10_000)
        await _check_history(world, hold, records)


async def _check_history(world: World, hold: str, records: list[AuditRow]) -> None:
    entries = await world.holds.history(PEOPLE["ada"], hold)
    # A form that was not valid is a refusal in the audit; people read that it was returned.
    actions = ["refused" if each.action == "returned" else each.action for each in entries]
    assert [(each.seq, action, each.actor) for each, action in zip(entries, actions, strict=True)] == [
        (each.seq, each.action, each.actor) for each in records
    ]


@pytest.mark.covers("HOLD-PROOF-02", "RC-13", "HOLD-LIFE-01", "LI-3", "HI-3")
def test_what_is_decided_stays_and_both_stores_agree_whatever_is_done() -> None:
    run_state_machine_as_test(Holds, settings=FEW)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.covers("HOLD-PROOF-02", "RC-13")
def test_what_is_decided_stays_and_both_stores_agree_in_long_lives() -> None:
    run_state_machine_as_test(Holds, settings=MANY)
