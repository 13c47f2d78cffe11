"""Assignments, deadlines, reminders and links at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.errors import (
    HoldChangedError,
    HoldClaimedError,
    HoldDecidedError,
    HoldReassignedError,
)
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.actions.decide import ResolveResult
from holdfast.holds.actions.submission import Submission
from holdfast.holds.links.keys import LinkKeys
from holdfast.holds.links.open import Links
from holdfast.holds.links.tokens import LinkGrant, LinkKey, mint
from holdfast.holds.service import HoldService
from holdfast.holds.timing.sweeper import SweepCounts
from holdfast.store.protocols import Store
from holdfast.types.clock import MICROS
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor
from tests.holds.races.acts import ADMIN, DANA, PEOPLE, overdue, resolves, sweeps
from tests.holds.races.race import ROUNDS, Act, Arena, said

pytestmark = [pytest.mark.anyio, pytest.mark.covers("FLEET-PG-14")]

KEY = LinkKey("k1", b"1" * 32)


def reassigns(to: str, *, seen: bool) -> Act:
    """`seen`: only the version that was seen."""

    async def act(store: Store, row: HoldRow) -> Any:
        wanted = row.version if seen else None
        return await HoldService(store).reassign(ADMIN, row.id, to, if_match=wanted)

    return act


def is_consistent(row: HoldRow) -> bool:
    return row.assignee == f"{row.assignee_type}:{row.assignee_value}"


@pytest.mark.covers("RC-5", "HOLD-PROOF-01", "RA-1")
async def test_decision_or_reassignment_comes_first_and_the_other_sees_it(arena: Arena) -> None:
    arena.asking()

    async def judge(row: HoldRow, done: Sequence[Any]) -> str:
        after, (answer, moved) = await arena.row(row.id), done
        result = (await arena.topics(row)).count("hold.assigned")
        assert is_consistent(after)
        if after.status is HoldStatus.resolved:
            assert isinstance(answer, ResolveResult), answer
            assert isinstance(moved, HoldDecidedError), moved
            assert (after.assignee, result, await arena.effective(row)) == ("group:finance", 0, ["resolved"])
            assert (await arena.goes_on(row)).completed
            return "decided"
        assert isinstance(answer, HoldReassignedError), answer
        assert answer.facts["your_draft_saved"]
        assert (after.assignee, result, await arena.effective(row)) == ("group:leads", 1, ["reassigned"])
        assert (after.epoch, await arena.mail(row)) == (2, [])
        return "reassigned"

    await arena.race(resolves(DANA), reassigns("group:leads", seen=False), judge=judge)
    arena.saw("decided", "reassigned")


@pytest.mark.covers("RC-5", "HOLD-PROOF-01", "RS-7")
async def test_one_reassignment_counts_when_two_have_seen_the_same_version(arena: Arena) -> None:
    arena.asking()

    async def judge(row: HoldRow, done: Sequence[Any]) -> str:
        after = await arena.row(row.id)
        (loser,) = [each for each in done if isinstance(each, Exception)]
        assert isinstance(loser, HoldChangedError), loser
        assert (loser.status, loser.facts["version"]) == (412, after.version)
        assert (after.version, after.epoch) == (row.version + 1, 2)
        assert is_consistent(after)
        assert (await arena.topics(row)).count("hold.assigned") == 1
        return after.assignee or ""

    acts = [reassigns(to, seen=True) for to in ("group:leads", "user:sam@acme")]
    await arena.race(*acts, judge=judge)
    arena.saw("group:leads", "user:sam@acme")


@pytest.mark.covers("RC-5", "HOLD-PROOF-01", "RA-2")
async def test_both_reassignments_count_one_after_the_other_when_no_version_is_asked(arena: Arena) -> None:
    arena.asking()

    async def judge(row: HoldRow, done: Sequence[Any]) -> str:
        after = await arena.row(row.id)
        assert not [each for each in done if isinstance(each, Exception)], done
        assert (after.version, after.epoch) == (row.version + 2, 3)
        assert is_consistent(after)
        # One notice for each change, and they are told apart.
        assigned = [each for each in await arena.store.list_outbox(hold=row.id) if "assigned" in each.topic]
        assert len({each.key for each in assigned}) == 2
        return after.assignee or ""

    acts = [reassigns(to, seen=False) for to in ("group:leads", "user:sam@acme")]
    await arena.race(*acts, judge=judge)
    arena.saw("group:leads", "user:sam@acme")


@pytest.mark.covers("RC-6", "HOLD-PROOF-01", "HOLD-PROOF-04", "EX-1", "EX-6")
@pytest.mark.parametrize("action", ["cancel", "default", "escalate:group:leads"])
async def test_two_sweeps_have_one_effect(arena: Arena, action: str) -> None:
    arena.asking(timeout="100ms", on_timeout=action)
    effect = {"cancel": "cancelled", "default": "resolved"}.get(action, "escalated")

    async def judge(row: HoldRow, done: Sequence[Any]) -> str:
        assert all(isinstance(each, SweepCounts) for each in done), done
        assert sorted(each.expired for each in done) == [0, 1]
        after = await arena.row(row.id)
        assert await arena.effective(row) == [effect]
        assert after.version == row.version + 1
        assert (after.escalation_count, after.epoch) == ((1, 2) if effect == "escalated" else (0, 1))
        text = "hold.escalated" if effect == "escalated" else "hold.closed"
        assert (await arena.topics(row)).count(text) == 1
        assert len(await arena.mail(row)) == (effect != "escalated")
        return effect

    await arena.race(sweeps(arena), sweeps(arena), judge=judge, before=overdue(arena))


@pytest.mark.covers("EX-11", "HOLD-PROOF-01")
async def test_more_time_or_the_deadline_comes_first(arena: Arena) -> None:
    arena.asking(timeout="100ms", on_timeout="cancel")

    async def extends(store: Store, row: HoldRow) -> Any:
        return await HoldService(store).extend(ADMIN, row.id, arena.clock.now() + 10**6 * MICROS)

    async def judge(row: HoldRow, done: Sequence[Any]) -> str:
        after, (extended, swept) = await arena.row(row.id), done
        if after.status is HoldStatus.pending:
            assert (extended, swept.expired) == (after, 0)
            assert await arena.effective(row) == []
            return "extended"
        assert isinstance(extended, HoldDecidedError), extended
        assert swept.expired == 1
        return "cancelled"

    await arena.race(extends, sweeps(arena), judge=judge, before=overdue(arena), rounds=ROUNDS // 2)
    arena.saw("extended", "cancelled")


@pytest.mark.covers("AS-10", "HOLD-PROOF-01")
async def test_one_admin_has_an_unrouted_hold_when_two_claim_it(arena: Arena) -> None:
    arena.asking(assignee=None)
    admins = [ADMIN, Actor(id="user:bo@acme", rights=ADMIN.rights)]

    def claims(who: Any) -> Act:
        async def act(store: Store, row: HoldRow) -> Any:
            return await HoldService(store).claim(who, row.id)

        return act

    async def judge(row: HoldRow, done: Sequence[Any]) -> str:
        after = await arena.row(row.id)
        (loser,) = [each for each in done if isinstance(each, Exception)]
        assert isinstance(loser, (HoldClaimedError, HoldReassignedError)), loser
        assert loser.status == 409
        assert after.claimed_by == after.assignee
        assert (after.epoch, await arena.effective(row)) == (2, ["reassigned"])
        return after.claimed_by or ""

    await arena.race(*(claims(who) for who in admins), judge=judge, rounds=ROUNDS // 2)
    arena.saw(*(who.id for who in admins))


@pytest.mark.covers("RC-12", "HOLD-PROOF-01", "HOLD-SEC-02")
async def test_a_link_is_used_once_and_shows_the_outcome_after_that(arena: Arena) -> None:
    arena.asking(assignee=DANA.id)

    def posts(decision: str) -> Act:
        async def act(store: Store, row: HoldRow) -> Any:
            links = Links(HoldContext(store), LinkKeys(store, [KEY]))
            return await links.decide(tokens[row.id], Submission(decision=decision))

        return act

    tokens: dict[str, str] = {}

    async def minted(row: HoldRow) -> None:
        tokens[row.id] = mint(row, LinkGrant(to=DANA.id, purpose="decide"), KEY, arena.clock.now())

    async def judge(row: HoldRow, done: Sequence[Any]) -> str:
        after = await arena.row(row.id)
        (won,) = [each for each in done if isinstance(each, ResolveResult)]
        (lost,) = [each for each in done if isinstance(each, Exception)]
        assert won.row == after
        assert isinstance(lost, HoldDecidedError), lost
        assert (lost.facts["decision"], lost.facts["resolved_by"]) == (said(after)["decision"], DANA.id)
        assert await arena.effective(row) == ["resolved"]
        assert said(after)["auth_method"] == "link"
        shown = await Links(arena.holds.ctx, LinkKeys(arena.store, [KEY])).look(tokens[row.id])
        assert (shown.way, shown.row) == ("over", after)
        return said(after)["decision"]

    await arena.race(posts("approve"), posts("reject"), judge=judge, before=minted)
    arena.saw("approve", "reject")


@pytest.mark.covers("HOLD-PROOF-01", "HOLD-LIFE-10")
async def test_a_placed_decision_is_made_or_taken_back_when_its_time_is_up(arena: Arena) -> None:
    arena.asking()

    async def placed(row: HoldRow) -> None:
        await arena.holds.place(DANA, row.id, "approve", seconds=1)
        arena.clock.advance(milliseconds=999)

    async def undoes(store: Store, row: HoldRow) -> Any:
        return await HoldService(store).undo(DANA, row.id)

    async def elapses(store: Store, row: HoldRow) -> Any:
        arena.clock.advance(milliseconds=1)
        return await sweeps(arena)(store, row)

    async def judge(row: HoldRow, done: Sequence[Any]) -> str:
        after, (taken_back, swept) = await arena.row(row.id), done
        assert isinstance(swept, SweepCounts), swept
        assert after.placed is None
        if after.status is HoldStatus.pending:
            assert (taken_back, await arena.mail(row)) == (after, [])
            return "taken back"
        assert isinstance(taken_back, HoldDecidedError), taken_back
        assert (await arena.effective(row), await arena.mail(row)) == (["resolved"], ["answer"])
        return "made"

    await arena.race(undoes, elapses, judge=judge, before=placed, rounds=ROUNDS // 2)
    arena.saw("taken back", "made")


@pytest.mark.covers("HOLD-PROOF-01", "RS-10")
async def test_the_closing_vote_resolves_once_when_three_vote_at_once(arena: Arena) -> None:
    arena.asking(approval={"mode": "quorum", "need": 2, "of": ["group:finance"]})

    async def judge(row: HoldRow, done: Sequence[Any]) -> str:
        after = await arena.row(row.id)
        assert (after.status, await arena.effective(row)) == (HoldStatus.resolved, ["resolved"])
        assert len(await arena.audit(row, "voted")) == 2
        (late,) = [each for each in done if isinstance(each, Exception)]
        assert isinstance(late, HoldDecidedError), late
        voters = {each["person"] for each in said(after)["votes"]}
        assert len(voters) == 2
        assert len(await arena.mail(row)) == 1
        return " ".join(sorted(voters))

    await arena.race(*(resolves(who) for who in PEOPLE), judge=judge, rounds=ROUNDS // 2)
    assert arena.is_short or len(arena.seen) > 1


@pytest.mark.covers("RS-6", "HOLD-PROOF-01")
async def test_the_same_request_is_answered_alike_when_it_is_sent_twice_at_once(arena: Arena) -> None:
    arena.asking()

    async def sends(store: Store, row: HoldRow) -> Any:
        return await HoldService(store).resolve(DANA, row.id, "approve", idempotency_key="k")

    async def judge(row: HoldRow, done: Sequence[Any]) -> str:
        assert not [each for each in done if isinstance(each, Exception)], done
        assert {each.row.version for each in done} == {row.version + 1}
        assert sorted(each.replay for each in done) == [False, True]
        assert (await arena.effective(row), await arena.mail(row)) == (["resolved"], ["answer"])
        return "once"

    await arena.race(sends, sends, judge=judge, rounds=ROUNDS // 2)
