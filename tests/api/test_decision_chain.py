"""Whoever made a credential counts as having taken part in what is decided with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast import Context, Flow
from holdfast.types.hold import CONSUME
from holdfast.types.status import HoldStatus
from tests.api.harness import Harness, harness_of

pytestmark = pytest.mark.anyio

TWO: dict[str, Any] = {
    "assignee": "group:finance",
    "approval": {"mode": "quorum", "need": 2, "exclude": ["initiator"]},
}


@pytest.fixture
async def harness(anyio_backend: str) -> AsyncIterator[Harness]:
    async with harness_of() as found:
        yield found


@pytest.mark.covers("SAFE-CHAIN-02")
async def test_tokens_made_for_two_others_do_not_pass_a_rule_of_two(harness: Harness) -> None:
    hold = await harness.asks(**TWO)
    for name in ("dana", "sam"):
        token = await harness.mint("ada", f"user:{name}")
        refused = await harness.decide(token, hold.id)
        assert refused.status_code == 403, refused.text
    assert (await harness.row(hold.id)).status is HoldStatus.pending
    # The people themselves can still agree.
    assert (await harness.decide("dana", hold.id)).status_code == 200
    assert (await harness.decide("sam", hold.id)).status_code == 200
    assert (await harness.row(hold.id)).status is HoldStatus.resolved


@pytest.mark.covers("SAFE-CHAIN-02")
async def test_links_made_for_two_others_do_not_pass_a_rule_of_two(harness: Harness) -> None:
    hold = await harness.asks(**TWO)
    for name in ("dana", "sam"):
        made = await harness.ask(
            "ada", "POST", f"/v1/holds/{hold.id}/links", {"to": f"user:{name}"}, status=201
        )
        assert made.get("token") is None
        assert made["sent_to"] == [f"{name}@acme"]
    await harness.delivers()
    assert (await harness.row(hold.id)).status is HoldStatus.pending
    # What was sent to their own addresses works.
    assert await harness.decide_by_link(harness.mail.links("dana@acme")[-1])
    assert await harness.decide_by_link(harness.mail.links("sam@acme")[-1])
    assert (await harness.row(hold.id)).status is HoldStatus.resolved


@pytest.mark.covers("SAFE-CHAIN-03")
async def test_a_link_for_another_person_is_sent_and_audited_and_one_for_oneself_is_returned(
    harness: Harness,
) -> None:
    hold = await harness.asks(**TWO)
    path = f"/v1/holds/{hold.id}/links"
    await harness.ask("ada", "POST", path, {"to": "user:dana"}, status=201)
    own = await harness.ask("ada", "POST", path, {"to": "ada@acme"}, status=201)
    assert own["token"]
    unknown = await harness.send("ada", "POST", path, {"to": "user:nobody"})
    assert unknown.status_code == 409
    made = [each for each in await harness.audit() if each["action"] == "link_made"]
    assert [(each["actor"], each["data"]["to"]) for each in made] == [
        ("user:ada", "user:dana"),
        ("user:ada", "user:ada@acme"),
    ]
    # Ada's own link is a credential of hers, and changes nothing for her.
    assert not await harness.decide_by_link(own["token"])


@pytest.mark.covers("SAFE-CHAIN-03")
async def test_minting_a_token_is_audited_with_its_chain(harness: Harness) -> None:
    first = await harness.mint("ada", "user:dana", rights=["admin:manage"], roles=[])
    await harness.mint(first, "user:sam")
    made = [each for each in await harness.audit() if each["action"] == "token_created"][-1]
    assert made["actor"] == "user:dana"
    assert [(each["by"], each["to"]) for each in made["data"]["chain"]] == [
        ("system:operator", "user:ada"),
        ("user:ada@acme", "user:ada"),
        ("user:ada", "user:dana"),
        ("user:dana@acme", "user:dana"),
        ("user:dana", "user:sam"),
    ]


@pytest.mark.covers("SAFE-CHAIN-02")
async def test_the_maker_of_a_credential_has_voted_with_it(harness: Harness) -> None:
    """Without an exclusion the maker may take part, once."""
    hold = await harness.asks(assignee="group:finance", approval={"mode": "quorum", "need": 2})
    for name in ("dana", "sam"):
        harness.tokens[f"{name}'s"] = await harness.mint("kim-admin", f"user:{name}")
    assert (await harness.decide("dana's", hold.id)).status_code == 200
    again = await harness.decide("sam's", hold.id)
    assert (again.status_code, again.json()["code"]) == (409, "already_voted")
    assert "kim" in again.json()["detail"]
    assert (await harness.decide("sam", hold.id)).status_code == 200
    said = (await harness.ask("ada", "GET", f"/v1/holds/{hold.id}"))["resolution"]
    assert [vote.get("took_part", []) for vote in said["votes"]] == [["kim", "kim@acme"], []]


@pytest.mark.covers("SAFE-CHAIN-02")
async def test_a_run_started_by_a_service_is_not_approved_by_the_maker_of_its_token(harness: Harness) -> None:
    robot = await harness.mint("ada", "service:robot", roles=["operator"])
    run = await harness.starts(robot, assignee="user:ada", approval={"exclude": ["initiator"]})
    (hold,) = await harness.open_holds(run)
    refused = await harness.decide("ada", hold)
    assert (refused.status_code, refused.json()["code"]) == (403, "excluded")


@pytest.mark.covers("SAFE-CHAIN-02")
@pytest.mark.parametrize("first", ["parent", "child"])
async def test_who_approved_in_a_child_run_or_its_parent_is_an_earlier_approver(
    harness: Harness, first: str
) -> None:
    asks: dict[str, Any] = {"options": ["approve", "reject"], "assignee": "group:finance"}
    later = {"approval": {"exclude": ["earlier_approvers"]}}
    child = Flow("inner", effect="pure")
    child.hold("ask", prompt="Pay?", **asks, **(later if first == "parent" else {}))
    flow = Flow("outer", effect="pure")

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        if first == "parent":
            await ctx.ask("Pay?", **asks)
        found = await ctx.call(child, {})
        if first == "child":
            await ctx.ask("Pay?", **asks, **later)
        return {"said": found["decision"]}

    for each in (child, flow):
        harness.hf.register(each.program())
    result = await flow.run({}, on=harness.hf, started_by="user:lee")
    for number in range(2):
        runs = [
            result.run_id,
            *(each.id for each in await (await harness.hf.service()).children(result.run_id)),
        ]
        found = [await harness.row(each) for run in runs for each in await harness.open_holds(run)]
        (hold,) = [each.id for each in found if each.type != CONSUME]
        answered = await harness.decide("dana", hold)
        assert answered.status_code == (403 if number else 200)
        if len(runs) > 1:
            await child.resume(runs[1], on=harness.hf)
        await flow.resume(result.run_id, on=harness.hf)


@pytest.mark.covers("SAFE-CHAIN-02")
@pytest.mark.parametrize("copied", ["by code", "by a sub-flow", "shown"])
async def test_who_says_what_an_effect_did_changes_nothing_that_was_decided(
    harness: Harness, copied: str
) -> None:
    asks: dict[str, Any] = {"options": ["approve", "reject"], **TWO}
    flow = Flow("payment", effect="pure")
    inner = Flow("inner", effect="pure")
    (inner if copied == "by a sub-flow" else flow).hold("ask", prompt="Pay {{amount}}?", **asks)
    if copied == "by a sub-flow":
        flow.subflow("ask", inner, outputs={"approved": "state.decision"})
    flow.node(id="copy")(lambda s: {"approved": s["decision"] == "approve"} if "decision" in s else {})

    @flow.node(effect="external")
    async def notify() -> None:
        raise OSError("perhaps it was sent")

    flow.chain("ask", "copy", notify)
    result = await flow.run({"amount": 5}, on=harness.hf, started_by="user:lee")
    for name in ("dana", "sam"):
        await harness.decide(name, result.holds[0].id, "reject")
    result = await flow.resume(result.run_id, on=harness.hf)
    changed = {"amount": 5000} if copied == "shown" else {"approved": "approve"}
    doubt = result.holds[0].id
    refused = await harness.decide("ada", doubt, "happened", response_data={"update": changed})
    assert (refused.status_code, refused.json()["code"]) == (422, "answer_invalid")
    # What the node itself has made is new.
    update = {"update": {"sent": True}}
    assert (await harness.decide("ada", doubt, "happened", response_data=update)).status_code == 200
    result = await flow.resume(result.run_id, on=harness.hf)
    assert (result.completed, result.state["sent"], result.state["amount"]) == (True, True, 5)
