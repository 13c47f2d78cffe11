"""Where several people have to agree."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.errors import AlreadyVotedError, HoldDecidedError, NotAssignedError
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor
from tests.holds.actions.scene import BOSS, CLERK, FINN, SAM, Scene, said

pytestmark = pytest.mark.anyio

FAY = Actor(id="user:fay@acme", groups=frozenset({"finance"}))
CFO = Actor(id="user:cora@acme", roles=frozenset({"cfo"}))
QUORUM = {"mode": "quorum", "need": 2, "of": ["group:finance"]}


@pytest.mark.covers("RS-10", "HOLD-LIFE-06")
async def test_the_closing_vote_resolves_and_the_others_keep_it_pending(scene: Scene) -> None:
    row = await scene.asks(assignee="group:finance", approval=QUORUM)
    first = await scene.holds.vote(SAM, row.id, {"decision": "approve", "comment": "ok"})
    assert (first.row.status, first.row.version) == (HoldStatus.pending, row.version + 1)
    with pytest.raises(AlreadyVotedError) as caught:
        await scene.holds.vote(SAM, row.id, "reject")
    assert caught.value.status == 409
    with pytest.raises(NotAssignedError):
        await scene.holds.resolve(CLERK, row.id, "approve")
    closing = await scene.holds.resolve(FINN, row.id, "approve")
    assert (closing.row.status, closing.row.resolved_by) == (HoldStatus.resolved, FINN.id)
    kept = said(closing.row)
    assert [(vote["person"], vote["decision"]) for vote in kept["votes"]] == [
        (SAM.id, "approve"),
        (FINN.id, "approve"),
    ]
    lines = [each.action for each in await scene.audit(row)]
    assert lines == ["created", "voted", "refused", "refused", "voted", "resolved"]
    assert (await scene.goes_on(row)).state["decision"] == "approve"
    with pytest.raises(HoldDecidedError):
        await scene.holds.vote(FAY, row.id, "approve")


@pytest.mark.covers("RS-10")
async def test_a_veto_ends_it_and_an_override_does(scene: Scene) -> None:
    row = await scene.asks(assignee="group:finance", approval={**QUORUM, "veto": ["role:cfo"]})
    await scene.holds.vote(SAM, row.id, "approve")
    ended = await scene.holds.vote(CFO, row.id, "reject")
    assert (ended.row.status, said(ended.row)["outcome_by"]) == (HoldStatus.resolved, "veto")
    assert said(ended.row)["decision"] == "reject"
    other = await scene.asks(assignee="group:finance", approval=QUORUM)
    over = await scene.holds.resolve(BOSS, other.id, "reject", reason="nobody is in")
    assert said(over.row)["authority"] == "override"


@pytest.mark.covers("SAFE-CHAIN-02")
@pytest.mark.parametrize("mode", [QUORUM, {"mode": "sequential", "of": ["group:finance", "role:cfo"]}])
async def test_an_override_is_one_vote_and_not_that_of_the_others(scene: Scene, mode: dict[str, Any]) -> None:
    row = await scene.asks(assignee="group:finance", approval=mode)
    first = await scene.holds.resolve(BOSS, row.id, "approve", reason="nobody is in")
    assert first.row.status is HoldStatus.pending
    with pytest.raises(AlreadyVotedError):
        await scene.holds.resolve(BOSS, row.id, "approve", reason="still nobody")
    second = SAM if mode is QUORUM else CFO
    ended = await scene.holds.resolve(second, row.id, "approve")
    assert (ended.row.status, said(ended.row)["decision"]) == (HoldStatus.resolved, "approve")


@pytest.mark.covers("RS-10")
async def test_a_quorum_that_cannot_be_reached_is_a_rejection(scene: Scene) -> None:
    users = ["user:sam@acme", "user:finn@acme", "user:fay@acme"]
    row = await scene.asks(
        assignee="group:finance",
        options=["approve", "reject", "later"],
        approval={"mode": "quorum", "need": 3, "of": users},
    )
    await scene.holds.vote(SAM, row.id, "approve")
    ended = await scene.holds.vote(FINN, row.id, "later")
    assert (ended.row.status, said(ended.row)["decision"]) == (HoldStatus.resolved, "reject")
    assert (said(ended.row)["outcome_by"], said(ended.row)["response_data"]) == ("unreachable", None)


@pytest.mark.covers("RS-10")
async def test_signing_in_order_waits_for_whose_turn_it_is(scene: Scene) -> None:
    steps = {"mode": "sequential", "of": ["group:finance", "role:cfo"]}
    row = await scene.asks(assignee="group:finance", approval=steps)
    with pytest.raises(NotAssignedError, match="group:finance"):
        await scene.holds.vote(CFO, row.id, "approve")
    assert (await scene.holds.vote(SAM, row.id, "approve")).row.status is HoldStatus.pending
    with pytest.raises(NotAssignedError, match="role:cfo"):
        await scene.holds.vote(FINN, row.id, "approve")
    assert (await scene.holds.vote(CFO, row.id, "approve")).row.status is HoldStatus.resolved


@pytest.mark.covers("RS-10", "RC-1")
async def test_votes_at_once_all_count_and_one_of_them_closes(scene: Scene) -> None:
    people = [Actor(id=f"user:p{n}@acme", groups=frozenset({"finance"})) for n in range(8)]
    row = await scene.asks(assignee="group:finance", approval={**QUORUM, "need": 8})
    after = await asyncio.gather(*(scene.holds.vote(each, row.id, "approve") for each in people))
    assert sorted(each.row.status for each in after).count(HoldStatus.resolved) == 1
    assert len(said(await scene.row(row.id))["votes"]) == 8
    assert len(await scene.audit(row, "resolved")) == 1
