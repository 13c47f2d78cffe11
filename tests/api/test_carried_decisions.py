"""Decisions that a fork, rewind, resume, import or patch would take along."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from holdfast import Context, Flow
from holdfast.runs.service import RunService
from holdfast.runs.transfer.archive import pack
from holdfast.runs.transfer.import_run import read_archive
from holdfast.store.rows import RunFilter
from holdfast.types.status import HoldStatus, RunStatus
from tests.api.harness import Harness, harness_of

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-CHAIN-04")]

RULES: dict[str, dict[str, Any]] = {
    "quorum": {"assignee": "group:finance", "approval": {"mode": "quorum", "need": 2}},
    "order": {
        "assignee": "group:finance",
        "approval": {"mode": "sequential", "of": ["user:dana", "user:sam"]},
    },
    "exclusion": {"assignee": "group:finance", "approval": {"exclude": ["initiator"]}},
    "strict": {"assignee": "user:dana", "strict_assignee": True},
}


@pytest.fixture
async def harness(anyio_backend: str) -> AsyncIterator[Harness]:
    async with harness_of() as found:
        yield found


async def decided(harness: Harness, decision: str, rule: dict[str, Any]) -> str:
    """A run of Kim's that others have decided, and that has ended."""
    flow = Flow("refund", effect="pure")
    hold = flow.hold("approve", prompt="Pay?", options=["approve", "reject"], **rule)
    paid: list[str] = []

    @flow.node(effect="pure")
    async def pay(s: dict[str, Any]) -> dict[str, Any]:
        paid.append(s["decision"])
        return {"paid": True}

    @flow.node(effect="pure")
    async def drop(s: dict[str, Any]) -> dict[str, Any]:
        return {"paid": False}

    flow.start(hold)
    flow.edge(hold, pay, when="decision == 'approve'")
    flow.edge(hold, drop, otherwise=True)
    asked = await flow.run({}, on=harness.hf, started_by="user:kim")
    for name in ("dana", "sam"):
        row = await harness.row(asked.holds[0].id)
        if row.status is HoldStatus.pending:
            await harness.ask(name, "POST", f"/v1/holds/{row.id}/resolve", {"decision": decision})
    ended = await flow.resume(asked.run_id, on=harness.hf)
    assert (ended.status, ended.state["paid"]) == ("completed", decision == "approve")
    harness.flows[asked.run_id] = flow
    paid.clear()
    harness.paid = paid
    return asked.run_id


async def advanced(harness: Harness, flow: Flow, run: str) -> RunStatus:
    return RunStatus((await flow.resume(run, on=harness.hf)).status)


WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "fork": ("fork", {}),
    "fork with another answer": ("fork", {"patch": {"scratch": {"decision": "approve"}}}),
    "fork with another state": ("fork", {"patch": {"scratch": {"amount": 9_000}}}),
    "resume as a fork": ("resume", {"mode": "fork"}),
    "resume with an input": ("resume", {"input_data": {"amount": 9_000}}),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rule", RULES)
async def test_the_question_is_asked_again_where_the_caller_may_not_decide_it_alone(
    harness: Harness, rule: str, way: str
) -> None:
    path, body = WAYS[way]
    run = await decided(harness, "reject" if "answer" in way else "approve", RULES[rule])
    made = await harness.ask("ada", "POST", f"/v1/runs/{run}/{path}", body, status=201)
    assert await advanced(harness, harness.flows[run], made["id"]) is RunStatus.pending_input
    assert harness.paid == []
    # A fork of that fork does not get past it either.
    again = await harness.ask("ada", "POST", f"/v1/runs/{made['id']}/{path}", body, status=201)
    assert await advanced(harness, harness.flows[run], again["id"]) is RunStatus.pending_input
    assert harness.paid == []


async def asks_in_a_child(harness: Harness, *, detached: bool) -> tuple[Flow, Flow, str, str]:
    """A run of Kim's that pays after what a run that it has started decides; with that run, which waits."""
    child = Flow("approval", effect="pure")
    child.hold("approve", prompt="Pay?", options=["approve", "reject"], **RULES["quorum"])
    flow = Flow("payment", effect="pure")

    @flow.script
    async def pay(ctx: Context) -> dict[str, Any]:
        asked = await ctx.start(child, {}, detached=detached)
        if (await asked.result())["decision"] == "approve":
            await ctx.step("pay", harness.paid.append, ctx.run_id, effect="pure")
        return {"asked": asked.run_id}

    for each in (child, flow):
        harness.hf.register(each.program())
    made = await harness.ask("kim-admin", "POST", "/v1/runs", {"flow": "payment", "input": {}}, status=201)
    await flow.resume(made["id"], on=harness.hf)
    runs = await (await harness.hf.service()).list(RunFilter(flow="approval"))
    return flow, child, made["id"], runs[0].id


async def agree(harness: Harness, child: Flow, run: str) -> None:
    (hold,) = await harness.open_holds(run)
    for name in ("dana", "sam"):
        await harness.ask(name, "POST", f"/v1/holds/{hold}/resolve", {"decision": "approve"})
    await child.resume(run, on=harness.hf)
    # The end of a detached run is found when somebody looks.
    harness.clock.advance(minutes=2)
    await (await harness.hf.queues()).bridge.work()


@pytest.mark.parametrize("when", ["decided", "asked"])
@pytest.mark.parametrize("detached", [False, True])
async def test_what_a_child_run_has_decided_is_asked_again_in_a_branch_of_its_parent(
    harness: Harness, detached: bool, when: str
) -> None:
    flow, child, run, asked = await asks_in_a_child(harness, detached=detached)
    if when == "decided":
        await agree(harness, child, asked)
        ended = await flow.resume(run, on=harness.hf)
        assert ended.completed, ended
        assert harness.paid == [run]
        harness.paid.clear()
        last = (await (await harness.hf.service()).get(ended.run_id)).head
    else:
        last = (await (await harness.hf.service()).get(run)).head
    for seq in range(1, last + 1):
        body = {"seq": seq, "repeat_effects": True}
        made = await harness.ask("ada", "POST", f"/v1/runs/{run}/fork", body, status=201)
        assert await advanced(harness, flow, made["id"]) is RunStatus.pending_input
    if when == "asked":
        # The branches have not been waiting for the same decision.
        await agree(harness, child, asked)
        for each in await (await harness.hf.service()).list(RunFilter(flow="payment")):
            await flow.resume(each.id, on=harness.hf)
        assert harness.paid == [run]
    else:
        assert harness.paid == []


async def test_a_decision_that_the_caller_could_make_alone_is_taken_along(harness: Harness) -> None:
    run = await decided(harness, "approve", {"assignee": "user:dana"})
    made = await harness.ask("ada", "POST", f"/v1/runs/{run}/fork", {}, status=201)
    assert await advanced(harness, harness.flows[run], made["id"]) is RunStatus.completed
    # A member without the right to decide any hold is asked again.
    harness.tokens["kim"] = await harness.mint("ada", "user:kim", rights=["runs:write"])
    asked = await harness.ask("kim", "POST", f"/v1/runs/{run}/fork", {}, status=201)
    assert await advanced(harness, harness.flows[run], asked["id"]) is RunStatus.pending_input
    # And so is a fork of the fork that took it along.
    other = await harness.ask("kim", "POST", f"/v1/runs/{made['id']}/fork", {}, status=201)
    assert await advanced(harness, harness.flows[run], other["id"]) is RunStatus.pending_input


async def test_the_starter_of_the_source_is_an_initiator_of_its_fork(harness: Harness) -> None:
    run = await decided(harness, "approve", {"assignee": "user:kim,user:dana", **RULES["exclusion"]})
    made = await harness.ask("ada", "POST", f"/v1/runs/{run}/fork", {}, status=201)
    await advanced(harness, harness.flows[run], made["id"])
    (hold,) = await harness.open_holds(made["id"])
    for name in ("kim-admin", "ada"):
        refused = await harness.decide(name, hold, reason="I may")
        assert (refused.status_code, refused.json()["code"]) == (403, "excluded")
    assert (await harness.decide("dana", hold)).status_code == 200


async def test_an_import_proves_no_decision(harness: Harness) -> None:
    run = await decided(harness, "approve", RULES["quorum"])
    data = (await harness.send("ada", "GET", f"/v1/runs/{run}/export")).content
    store = await harness.hf.open()
    await RunService.delete(await harness.hf.service(), run)
    media = {"Content-Type": "application/octet-stream"}
    made = await harness.ask(
        "ada",
        "POST",
        "/v1/runs/import",
        status=201,
        params={"as_new_run": "true"},
        content=data,
        headers=media,
    )
    assert (await store.get_run(made["id"])).started_by == "user:ada"  # type: ignore[union-attr]
    assert await advanced(harness, harness.flows[run], made["id"]) is RunStatus.pending_input
    # Nor does a fork of the history that was imported.
    forked = await harness.ask("ada", "POST", f"/v1/runs/{run}/fork", {}, status=201)
    assert await advanced(harness, harness.flows[run], forked["id"]) is RunStatus.pending_input
    assert harness.paid == []


async def test_a_file_without_its_questions_starts_again_with_its_input(harness: Harness) -> None:
    """The caller can write such a file: it says that the run is past a question that it does not have."""
    run = await decided(harness, "approve", RULES["quorum"])
    data = (await harness.send("ada", "GET", f"/v1/runs/{run}/export")).content
    archive = read_archive(data)
    forged = msgspec.structs.replace(archive, history=msgspec.structs.replace(archive.history, holds=[]))
    await RunService.delete(await harness.hf.service(), run)
    media = {"Content-Type": "application/octet-stream"}
    for as_new, path in (("true", "/v1/runs/import"), ("false", "/v1/runs/import")):
        more = {"params": {"as_new_run": as_new}, "content": pack(forged), "headers": media}
        made = await harness.ask("ada", "POST", path, status=201, **more)
        if as_new == "true":
            assert await advanced(harness, harness.flows[run], made["id"]) is RunStatus.pending_input
    for seq in range(2, 5):
        made = await harness.ask("ada", "POST", f"/v1/runs/{run}/fork", {"seq": seq}, status=201)
        assert await advanced(harness, harness.flows[run], made["id"]) is RunStatus.pending_input
    assert harness.paid == []


@pytest.mark.parametrize("rule", RULES)
async def test_a_rewind_asks_again(harness: Harness, rule: str) -> None:
    flow = Flow("two-steps", effect="pure")
    first = flow.hold("approve", prompt="Pay?", options=["approve", "reject"], **RULES[rule])
    second = flow.hold("sent", prompt="Sent?", options=["yes", "no"], assignee="user:dana", bind="sent")
    flow.chain(first, second)
    asked = await flow.run({}, on=harness.hf, started_by="user:kim")
    for name in ("dana", "sam"):
        if (await harness.row(asked.holds[0].id)).status is HoldStatus.pending:
            assert (await harness.decide(name, asked.holds[0].id)).status_code == 200
    waits = await flow.resume(asked.run_id, on=harness.hf)
    assert waits.holds[0].node == "sent"
    made = await harness.ask("ada", "POST", f"/v1/runs/{asked.run_id}/rewind", {}, status=201)
    (hold,) = (await flow.resume(made["id"], on=harness.hf)).holds
    assert hold.node == "approve"
    replaced = await harness.ask("ada", "GET", f"/v1/runs/{asked.run_id}")
    assert replaced["status"] == "cancelled"


@pytest.mark.parametrize("seq", [0, 1])
async def test_a_patch_does_not_answer_a_hold_that_it_leads_around(harness: Harness, seq: int) -> None:
    flow = Flow("gate", effect="pure")
    paid: list[int] = []

    @flow.node(effect="pure")
    async def look(s: dict[str, Any]) -> None:
        return None

    @flow.node(effect="pure")
    async def pay(s: dict[str, Any]) -> None:
        paid.append(1)

    options = ["approve", "reject"]
    hold = flow.hold("approve", prompt="Pay?", options=options, **RULES["quorum"])
    flow.start(look)
    flow.edge(look, pay, when="decision == 'approve'")
    flow.edge(look, hold, otherwise=True)
    flow.edge(hold, pay, when="decision == 'approve'")
    asked = await flow.run({"decision": ""}, on=harness.hf, started_by="user:kim")
    body = {"seq": seq, "patch": {"scratch": {"decision": "approve"}}}
    made = await harness.ask("ada", "POST", f"/v1/runs/{asked.run_id}/fork", body, status=201)
    assert await advanced(harness, flow, made["id"]) is RunStatus.pending_input
    assert paid == []
