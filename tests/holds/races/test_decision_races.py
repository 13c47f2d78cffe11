"""Decisions against decisions, deadlines, withdrawals and the run's end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from holdfast import Flow, Holdfast
from holdfast.errors import HoldDecidedError, HoldReassignedError
from holdfast.holds.actions.decide import ResolveResult
from holdfast.holds.timing.sweeper import SweepCounts
from holdfast.store.protocols import Store
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus, RunStatus
from tests.holds.races.acts import ADMIN, DANA, PEOPLE, cancels, overdue, resolves, sweeps
from tests.holds.races.conftest import LONG
from tests.holds.races.race import ROUNDS, Arena, said

pytestmark = [pytest.mark.anyio, pytest.mark.covers("FLEET-PG-14")]


@pytest.mark.covers("RC-1", "HOLD-PROOF-01", "RM-1", "HOLD-LIFE-13")
@pytest.mark.parametrize(
    "arena",
    ["memory", "sqlite", "encrypted", "few", "postgres", "few_mariadb", "mariadb", *LONG],
    indirect=True,
)
async def test_one_decision_counts_and_the_others_learn_whose_when_three_people_decide(arena: Arena) -> None:
    arena.asking()

    async def judge(row: HoldRow, done: Sequence[Any]) -> str:
        after = await arena.row(row.id)
        (won,) = [each for each in done if isinstance(each, ResolveResult)]
        assert won.row == after
        assert await arena.effective(row) == ["resolved"]
        for who, error in zip(PEOPLE, done, strict=True):
            if error is not won:
                assert isinstance(error, HoldDecidedError), error
                assert error.facts["resolved_by"] == after.resolved_by != who.id
                assert error.facts["decision"] == said(after)["decision"]
                assert error.facts["your_draft_saved"]
        assert {note.person for note in await arena.drafts(row)} == {
            who.id for who in PEOPLE if who.id != after.resolved_by
        }
        assert (await arena.mail(row), await arena.topics(row)) == (
            ["answer"],
            ["hold.created", "hold.closed"],
        )
        assert (await arena.goes_on(row)).completed
        assert arena.payments(row) == (said(after)["decision"] == "approve")
        assert (await arena.row(row.id)).resumed_at is not None
        return after.resolved_by or ""

    acts = [resolves(PEOPLE[0]), resolves(PEOPLE[1], "reject"), resolves(PEOPLE[2])]
    await arena.race(*acts, judge=judge)
    arena.saw(*(who.id for who in PEOPLE))


ENDS = {
    "cancel": ({"on_timeout": "cancel"}, "cancelled", RunStatus.cancelled),
    "default": ({"on_timeout": "default", "default_option": "reject"}, "resolved", RunStatus.completed),
    "expired": ({}, "expired", RunStatus.failed),
}


@pytest.mark.covers("RC-2", "HOLD-PROOF-01", "EX-3", "EX-8")
@pytest.mark.parametrize("action", ENDS)
async def test_the_deadline_or_the_decision_counts_and_never_both(arena: Arena, action: str) -> None:
    terms, status, ending = ENDS[action]
    arena.asking(timeout="100ms", **terms)

    async def judge(row: HoldRow, done: Sequence[Any]) -> str:
        after, (answer, swept) = await arena.row(row.id), done
        assert isinstance(swept, SweepCounts), swept
        by_hand = after.resolved_by == DANA.id
        assert await arena.effective(row) == [str(after.status)]
        assert (await arena.topics(row)).count("hold.closed") == 1
        assert len(await arena.mail(row)) == 1
        if by_hand:
            assert (isinstance(answer, ResolveResult), swept.expired) == (True, 0), answer
            assert said(after)["late"] is True
        else:
            assert (after.status, swept.expired) == (status, 1)
            assert isinstance(answer, HoldDecidedError), answer
            assert answer.facts["your_draft_saved"]
            assert "system:expiry" in (answer.facts["resolved_by"], answer.facts["closed_by"])
        result = await arena.goes_on(row)
        assert result.status is (RunStatus.completed if by_hand else ending)
        # What nobody has approved is not paid.
        assert arena.payments(row) == by_hand
        return "person" if by_hand else "deadline"

    await arena.race(resolves(DANA), sweeps(arena), judge=judge, before=overdue(arena))
    arena.saw("person", "deadline")


@pytest.mark.covers("RC-3", "HOLD-PROOF-01", "EX-6")
async def test_the_old_assignee_is_reported_and_keeps_a_draft_when_the_escalation_was_first(
    arena: Arena,
) -> None:
    arena.asking(timeout="100ms", on_timeout="escalate:group:leads")

    async def judge(row: HoldRow, done: Sequence[Any]) -> str:
        after, (answer, swept) = await arena.row(row.id), done
        assert isinstance(swept, SweepCounts), swept
        if after.status is HoldStatus.resolved:
            assert (isinstance(answer, ResolveResult), swept.expired) == (True, 0)
            assert await arena.effective(row) == ["resolved"]
            assert (after.escalation_count, after.epoch, after.assignee) == (0, 1, "group:finance")
            assert (await arena.goes_on(row)).completed
            return "decided"
        assert isinstance(answer, HoldReassignedError), answer
        assert (answer.status, answer.facts["your_draft_saved"]) == (409, True)
        assert await arena.effective(row) == ["escalated"]
        assert (after.status, after.escalation_count, after.epoch) == (HoldStatus.pending, 1, 2)
        assert (after.assignee_type, after.assignee_value) == ("group", "leads")
        (draft,) = await arena.drafts(row)
        assert draft.person == DANA.id
        assert (await arena.topics(row)).count("hold.escalated") == 1
        assert not await arena.mail(row)
        assert after.expires_at is not None
        assert after.expires_at > arena.clock.now()
        return "escalated"

    await arena.race(resolves(DANA), sweeps(arena), judge=judge, before=overdue(arena))
    arena.saw("decided", "escalated")


@pytest.mark.covers("RC-4", "HOLD-PROOF-01", "CA-1")
async def test_a_run_goes_on_or_is_cancelled_when_its_hold_is_decided_and_withdrawn(arena: Arena) -> None:
    arena.asking()

    async def judge(row: HoldRow, done: Sequence[Any]) -> str:
        after, (answer, withdrawn) = await arena.row(row.id), done
        assert await arena.effective(row) == [str(after.status)]
        loser = withdrawn if after.status is HoldStatus.resolved else answer
        assert isinstance(loser, HoldDecidedError), loser
        winner = loser.facts["resolved_by"] or loser.facts["closed_by"]
        assert winner == (DANA.id if after.status is HoldStatus.resolved else ADMIN.id)
        assert len(await arena.mail(row)) == 1
        result = await arena.goes_on(row)
        assert result.completed is (after.status is HoldStatus.resolved)
        assert arena.payments(row) == (after.status is HoldStatus.resolved)
        return str(after.status)

    await arena.race(resolves(DANA), cancels, judge=judge)
    arena.saw("resolved", "cancelled")


@pytest.mark.covers("RC-4", "HOLD-PROOF-01", "CA-3")
async def test_a_cancelled_run_never_goes_on_when_its_hold_is_decided_meanwhile(arena: Arena) -> None:
    arena.asking()

    async def ends(store: Store, row: HoldRow) -> Any:
        hf = Holdfast(store, clock=arena.clock)
        try:
            await (await hf.service()).cancel(row.run)
            return await arena.flow.resume(row.run, on=hf)
        finally:
            await hf.close()

    async def judge(row: HoldRow, done: Sequence[Any]) -> str:
        after, (answer, ended) = await arena.row(row.id), done
        assert not isinstance(ended, Exception), ended
        assert (await arena.goes_on(row)).status is RunStatus.cancelled
        assert await arena.effective(row) == [str(after.status)]
        assert (await arena.topics(row)).count("hold.closed") == 1
        if after.status is HoldStatus.resolved:
            assert isinstance(answer, ResolveResult), answer
        else:
            assert after.status is HoldStatus.cancelled
            assert isinstance(answer, HoldDecidedError), answer
        assert arena.payments(row) == 0
        return str(after.status)

    await arena.race(resolves(DANA), ends, judge=judge)
    arena.saw("resolved", "cancelled")


@pytest.mark.covers("RC-1", "HOLD-PROOF-01", "RM-1")
async def test_the_first_of_two_questions_is_enough_when_both_are_answered_at_once(arena: Arena) -> None:
    """The other one is closed, or was answered too; the run goes on once."""
    arena.flow = flow = Flow("first of two", effect="pure")
    asks = [
        flow.hold(name, prompt="Pay?", options=["approve", "reject"], assignee="group:finance", bind=name)
        for name in ("one", "two")
    ]

    @flow.node(join="any", effect="external", idempotency_key="{{n}}")
    async def pay(_s: dict[str, Any], ctx: Any) -> dict[str, Any]:
        arena.paid.append(ctx.run_id)
        return {"paid": True}

    for ask in asks:
        flow.edge(ask, pay)

    async def both() -> Any:
        result = await flow.run({"n": 1}, on=arena.hf)
        return sorted(result.holds, key=lambda hold: hold.node)

    def answers(number: int, *, driving: bool) -> Any:
        async def act(store: Store, rows: Any) -> Any:
            done = await resolves(PEOPLE[number])(store, rows[number])
            if driving:
                hf = Holdfast(store, clock=arena.clock)
                await flow.resume(rows[number].run, on=hf)
                await hf.close()
            return done

        return act

    async def judge(rows: Any, done: Sequence[Any]) -> str:
        after = [await arena.row(row.id) for row in rows]
        for row, answer in zip(after, done, strict=True):
            assert isinstance(
                answer, ResolveResult if row.status is HoldStatus.resolved else HoldDecidedError
            ), answer
            assert await arena.effective(row) == [str(row.status)]
        result = await arena.goes_on(rows[0])
        assert (result.status, arena.payments(rows[0])) == (RunStatus.completed, 1)
        ended = [await arena.row(row.id) for row in rows]
        assert HoldStatus.pending not in [row.status for row in ended]
        return " ".join(str(row.status) for row in ended)

    await arena.race(
        answers(0, driving=True), answers(1, driving=False), judge=judge, over=both, rounds=ROUNDS // 2
    )
    assert arena.seen <= {"resolved resolved", "resolved cancelled", "cancelled resolved"}
