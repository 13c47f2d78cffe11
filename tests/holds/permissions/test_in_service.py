"""Who may, asked by the service: over real stores, with a directory that changes while holds are open."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import Flow, Holdfast
from holdfast.errors import (
    AlreadyVotedError,
    ExcludedError,
    ForbiddenError,
    HoldNotFoundError,
    InputError,
    NotAssignedError,
)
from holdfast.holds.actions.submission import Submission
from holdfast.holds.permissions.check import PermissionVerdict
from holdfast.holds.service import HoldService
from holdfast.testing.clock import FakeClock
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus
from holdfast.types.terms import MANAGE, OVERRIDE, RESOLVE
from tests.holds.permissions.people import Firm, actor

pytestmark = pytest.mark.anyio

DANA, SAM, KIM = actor("user:dana@acme"), actor("user:sam@acme"), actor("user:kim@acme")
ADMIN, BOSS = actor("user:admin", MANAGE), actor("user:boss", OVERRIDE)


class Place:
    def __init__(self, hf: Holdfast, firm: Firm, holds: HoldService) -> None:
        self.hf, self.firm, self.holds = hf, firm, holds

    async def asks(self, assignee: str | None, *, by: str | None = None, **terms: Any) -> HoldRow:
        flow = Flow("refund", effect="pure")
        flow.hold("approve", prompt="Pay?", options=["approve", "reject"], assignee=assignee, **terms)
        result = await flow.run({}, on=self.hf, started_by=by)
        return await self.holds.get(ADMIN, result.holds[0].id)


def said(row: HoldRow) -> dict[str, Any]:
    assert row.resolution is not None
    return msgspec.json.decode(row.resolution)


@pytest.fixture(params=["memory", "sqlite"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    address = "memory:" if request.param == "memory" else f"sqlite:{tmp_path}/holds.db"
    firm = Firm()
    async with Holdfast(address, clock=FakeClock(), directory=firm) as hf:
        yield Place(hf, firm, await hf.holds())


@pytest.mark.covers("AS-11", "HOLD-AUTH-11")
async def test_membership_is_asked_when_somebody_decides_and_kept_with_the_decision(place: Place) -> None:
    row = await place.asks("group:finance")
    place.firm.groups["finance"] = ("dana",)
    with pytest.raises(NotAssignedError):
        await place.holds.resolve(SAM, row.id, "approve")
    place.firm.groups["finance"] = ("dana", "kim")
    decided = (await place.holds.resolve(KIM, row.id, "approve")).row
    place.firm.groups["finance"] = ()
    members = said(decided)["members"]
    assert (members["matched"], members["groups"], members["roles"]) == (
        "group:finance",
        ["finance"],
        ["cfo"],
    )
    assert said(decided)["authority"] == "assignee"


@pytest.mark.covers("AS-8", "AS-10")
async def test_hold_for_somebody_unknown_waits_for_admins(place: Place) -> None:
    row = await place.asks("group:ghosts")
    assert (row.assignee, row.assignee_type) == ("group:ghosts", "unrouted")
    assert "ghosts" in row.assignee_reason
    with pytest.raises(NotAssignedError):
        await place.holds.get(DANA, row.id)
    for view in ("unassigned", "unrouted"):  # the name of earlier versions
        assert [each.id for each in (await place.holds.list(ADMIN, view=view)).rows] == [row.id]
    with pytest.raises(ForbiddenError):
        await place.holds.list(DANA, view="unrouted")


@pytest.mark.covers("HOLD-AUTH-09", "LI-3")
async def test_substitute_finds_and_decides_what_waits_for_a_caller_who_is_away(place: Place) -> None:
    row = await place.asks("user:dana@acme")
    assert not (await place.holds.list(KIM)).rows
    place.firm.away("dana", "kim")
    assert [each.id for each in (await place.holds.list(KIM)).rows] == [row.id]
    decided = (await place.holds.resolve(KIM, row.id, "approve")).row
    assert (said(decided)["authority"], said(decided)["on_behalf_of"]) == ("substitute", "user:dana")
    assert decided.resolved_by == "user:kim@acme"


@pytest.mark.covers("HOLD-AUTH-08", "RA-6")
async def test_starter_who_is_excluded_neither_decides_nor_is_given_it(place: Place) -> None:
    row = await place.asks("group:finance", by="user:sam@acme", approval={"exclude": ["initiator"]})
    with pytest.raises(ExcludedError):
        await place.holds.resolve(SAM, row.id, "approve")
    with pytest.raises(InputError, match="cannot be assigned to"):
        await place.holds.reassign(DANA, row.id, "user:sam@acme")
    assert (await place.holds.resolve(DANA, row.id, "approve")).row.status is HoldStatus.resolved


@pytest.mark.covers("HOLD-AUTH-08")
async def test_four_eyes_are_those_of_two_people_over_the_holds_of_one_run(place: Place) -> None:
    flow = Flow("refund", effect="pure")
    first = flow.hold("first", prompt="Pay?", options=["approve"], assignee="group:finance")
    second = flow.hold(
        "second",
        prompt="Sure?",
        options=["approve"],
        assignee="group:finance",
        approval={"exclude": ["earlier_approvers"]},
        bind="sure",
    )
    flow.chain(first, second)
    result = await flow.run({}, on=place.hf)
    await place.holds.resolve(SAM, result.holds[0].id, "approve")
    result = await flow.resume(result.run_id, on=place.hf)
    (hold,) = result.holds
    with pytest.raises(ExcludedError, match="approved an earlier hold"):
        await place.holds.resolve(SAM, hold.id, "approve")
    assert (await place.holds.resolve(DANA, hold.id, "approve")).row.status is HoldStatus.resolved


@pytest.mark.covers("HOLD-SEC-10")
async def test_starter_who_joins_the_approvers_afterwards_does_not_count(place: Place) -> None:
    row = await place.asks("group:finance", by="user:kim@acme")
    assert row.terms.starter_in == ("role:cfo",)
    place.firm.groups["finance"] = ("dana", "kim")
    with pytest.raises(ExcludedError, match="only after the hold was opened"):
        await place.holds.resolve(KIM, row.id, "approve")
    other = await place.asks("group:finance", by="user:dana@acme")
    assert (await place.holds.resolve(KIM, other.id, "approve")).row.status is HoldStatus.resolved


@pytest.mark.covers("RS-8", "HOLD-AUTH-10")
async def test_override_takes_a_reason_and_is_flagged_in_decision_and_audit(place: Place) -> None:
    row = await place.asks("user:dana@acme", strict_assignee=True)
    for who in (BOSS, actor("user:api", RESOLVE)):
        with pytest.raises(NotAssignedError):
            await place.holds.resolve(who, row.id, "approve")
    decided = (await place.holds.resolve(BOSS, row.id, "approve", reason="Dana is ill")).row
    assert (said(decided)["authority"], said(decided)["override_reason"]) == ("override", "Dana is ill")
    refusals = [
        each for each in await place.holds.store.audit(row.tenant, hold=row.id) if each.action == "refused"
    ]
    assert [each.actor for each in refusals] == ["user:boss", "user:api"]


@pytest.mark.covers("HOLD-AUTH-05", "RS-10")
async def test_quorum_counts_who_is_left_and_ends_when_it_cannot_be_reached(place: Place) -> None:
    place.firm.groups["finance"] = ("dana", "sam", "kim", "gone")
    terms = {"approval": {"mode": "quorum", "need": 2, "exclude": ["user:kim@acme"]}}
    row = await place.asks("group:finance", **terms)
    with pytest.raises(ExcludedError):
        await place.holds.vote(KIM, row.id, "reject")
    ended = (await place.holds.vote(SAM, row.id, "reject")).row
    assert (ended.status, said(ended)["decision"]) == (HoldStatus.resolved, "reject")
    assert said(ended)["outcome_by"] == "unreachable", "Kim is excluded, one left: two cannot agree any more"


@pytest.mark.covers("HOLD-AUTH-06", "RS-10")
async def test_hold_goes_from_signer_to_signer_who_finds_it_when_it_is_their_turn(place: Place) -> None:
    row = await place.asks(None, approval={"mode": "sequential", "of": ["group:finance", "role:cfo"]})
    assert (row.assignee_type, row.assignee_value) == ("group", "finance")
    assert [each.id for each in (await place.holds.list(SAM, view="groups")).rows] == [row.id]
    assert not (await place.holds.list(KIM, view="groups")).rows
    after = (await place.holds.vote(SAM, row.id, "approve")).row
    assert (after.assignee_type, after.assignee_value, after.epoch) == ("role", "cfo", 2)
    assert [each.id for each in (await place.holds.list(KIM, view="groups")).rows] == [row.id]
    topics = [each.topic for each in await place.holds.store.list_outbox(hold=row.id)]
    assert "hold.assigned" in topics
    with pytest.raises(AlreadyVotedError):
        await place.holds.vote(SAM, row.id, "approve")
    with pytest.raises(NotAssignedError, match="role:cfo"):
        await place.holds.vote(DANA, row.id, "approve")
    assert (await place.holds.vote(KIM, row.id, "approve")).row.status is HoldStatus.resolved


@pytest.mark.covers("HOLD-AUTH-06")
async def test_signature_may_come_from_a_caller_who_the_hold_was_handed_on_to(place: Place) -> None:
    row = await place.asks(None, approval={"mode": "sequential", "of": ["group:finance", "role:cfo"]})
    await place.holds.reassign(ADMIN, row.id, "user:kim@acme")
    place.firm.roles["cfo"] = ("dana",)
    after = (await place.holds.vote(KIM, row.id, "approve")).row
    assert (after.assignee_type, after.assignee_value) == ("role", "cfo")
    assert (await place.holds.vote(DANA, row.id, "approve")).row.status is HoldStatus.resolved


@pytest.mark.covers("HOLD-AUTH-07")
async def test_veto_is_heard_out_of_turn_and_a_yes_is_not(place: Place) -> None:
    terms = {"mode": "sequential", "of": ["group:finance", "role:cfo"], "veto": ["role:cfo"]}
    row = await place.asks(None, approval=terms)
    with pytest.raises(NotAssignedError, match="group:finance"):
        await place.holds.vote(KIM, row.id, "approve")
    ended = (await place.holds.vote(KIM, row.id, "reject")).row
    assert (ended.status, said(ended)["outcome_by"]) == (HoldStatus.resolved, "veto")


@pytest.mark.covers("HOLD-SEC-12")
async def test_service_that_started_the_run_is_refused_and_another_is_not(place: Place) -> None:
    row = await place.asks("user:dana@acme", by="service:agent")
    with pytest.raises(ExcludedError, match="may not decide its own runs"):
        await place.holds.resolve(
            actor("service:agent", RESOLVE, OVERRIDE), row.id, "approve", reason="I am sure"
        )
    with pytest.raises(ForbiddenError, match="reject, comment"):
        await place.holds.resolve(actor("user:dana@acme", channel="mcp"), row.id, "approve")
    await place.holds.comment(actor("user:dana@acme", channel="mcp"), row.id, "looks right to me")
    assert (await place.holds.resolve(DANA, row.id, "approve")).row.status is HoldStatus.resolved


@pytest.mark.covers("RS-8", "HOLD-AUTH-04")
async def test_hold_of_another_tenant_is_not_there_for_anybody(place: Place) -> None:
    row = await place.asks("user:dana@acme")
    foreign = actor("user:dana@acme", RESOLVE, MANAGE, OVERRIDE, tenant="elsewhere")
    for act in (
        place.holds.get(foreign, row.id),
        place.holds.resolve(foreign, row.id, "approve", reason="x"),
        place.holds.cancel(foreign, row.id),
        place.holds.reassign(foreign, row.id, "user:me"),
        place.holds.claim(foreign, row.id),
        place.holds.history(foreign, row.id),
    ):
        with pytest.raises(HoldNotFoundError):
            await act
    assert not (await place.holds.list(foreign, view="all")).rows
    assert (await place.holds.get(ADMIN, row.id)).status is HoldStatus.pending


@pytest.mark.covers("HOLD-AUTH-04", "HOLD-SEC-09")
async def test_every_act_asks_the_one_function(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    row = await place.asks("user:dana@acme")
    asked: list[str] = []

    def nobody(standing: Any, action: str, *_: Any, **__: Any) -> PermissionVerdict:
        asked.append(action)
        return PermissionVerdict(allowed=False, code="forbidden", why="nobody may")

    monkeypatch.setattr("holdfast.holds.actions.context.can", nobody)
    holds, who = place.holds, actor("user:dana@acme", RESOLVE, MANAGE, OVERRIDE)
    acts: dict[str, Any] = {
        "get": holds.get(who, row.id),
        "history": holds.history(who, row.id),
        "resolve": holds.resolve(who, row.id, "approve", reason="x"),
        "vote": holds.vote(who, row.id, "approve"),
        "place": holds.place(who, row.id, "approve"),
        "cancel": holds.cancel(who, row.id),
        "reassign": holds.reassign(who, row.id, "user:sam@acme"),
        "extend": holds.extend(who, row.id, timedelta(days=1)),
        "claim": holds.claim(who, row.id),
        "release": holds.release(who, row.id),
        "ask_back": holds.ask_back(who, row.id, "why?"),
        "comment": holds.comment(who, row.id, "hm"),
        "comments": holds.comments(who, row.id),
        "save_draft": holds.save_draft(who, row.id, Submission(decision="approve")),
        "watch": holds.watch(who, row.id),
        "snooze": holds.snooze(who, row.id, timedelta(days=1)),
        "seen": holds.seen(who, row.id),
    }
    for name, act in acts.items():
        before = len(asked)
        with pytest.raises(ForbiddenError):
            await act
        assert len(asked) > before, name
    (done,) = (await holds.bulk(who, [row.id], "approve", preview=False)).items
    assert (done.done, done.code) == (False, "forbidden")
    assert (await holds.store.hold(row.id)).status is HoldStatus.pending  # type: ignore[union-attr]


@pytest.mark.covers("HOLD-AUTH-04", "LI-3")
async def test_lists_have_exactly_what_may_be_looked_at(place: Place) -> None:
    place.firm.away("dana", "kim")
    rows = [
        await place.asks(to)
        for to in ("user:dana@acme", "user:sam", "group:finance", "role:cfo", "group:ghosts", None)
    ]
    for who in (DANA, SAM, KIM, ADMIN, actor("user:api", RESOLVE), actor("user:nobody@acme")):
        seen = set[str]()
        for row in rows:
            with suppress(NotAssignedError):
                seen.add((await place.holds.get(who, row.id)).id)
        assert {each.id for each in (await place.holds.list(who, view="all")).rows} == seen, who.id
        assert await place.holds.count(who, view="all") == len(seen)
        for view in ("mine", "groups"):
            assert {each.id for each in (await place.holds.list(who, view=view)).rows} <= seen


@pytest.mark.covers("HOLD-AUTH-05", "HOLD-AUTH-07", "LI-3")
async def test_hold_that_several_groups_vote_on_is_in_the_lists_of_all_of_them(place: Place) -> None:
    place.firm.roles["auditor"] = ("gone", "dana")
    terms = {"mode": "quorum", "need": 2, "of": [" Group : finance", "role:cfo"], "veto": ["role:auditor"]}
    row = await place.asks(None, approval=terms)
    for who in (SAM, KIM, DANA):
        assert [each.id for each in (await place.holds.list(who, view="groups")).rows] == [row.id], who.id
        assert await place.holds.count(who, view="groups") == 1
    assert not (await place.holds.list(actor("user:else"), view="groups")).rows
    assert not (await place.holds.list(KIM, view="mine")).rows
    await place.holds.vote(KIM, row.id, "approve")
    await place.holds.vote(SAM, row.id, "approve")
    assert not (await place.holds.list(KIM, view="groups")).rows
