"""Answers of holds come from people: no caller gives them with an input or a patch."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Flow, Policy, Rule
from holdfast.types.terms import ApprovalTerms
from tests.api.harness import Harness, harness_of

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-CHAIN-04"), pytest.mark.covers("SAFE-CHAIN-08")]

FOUR_EYES = Policy(
    "four-eyes",
    Rule(name="all", when="true", assign="group:finance", approval=ApprovalTerms(mode="quorum", need=2)),
)
BOUND: dict[str, tuple[dict[str, Any], list[Policy] | None]] = {
    "by its flow": ({"assignee": "group:finance", "approval": {"mode": "quorum", "need": 2}}, None),
    "by a policy": ({"assignee": "user:dana"}, [FOUR_EYES]),
}
GIVEN = {"decision": "approve"}


def gate(asked: dict[str, Any], paid: list[int]) -> Flow:
    """It pays without a question where the state says that the answer is there."""
    flow = Flow("gate", effect="pure")

    @flow.node(effect="pure")
    async def look(s: dict[str, Any]) -> None:
        return None

    @flow.node(effect="pure")
    async def pay(s: dict[str, Any]) -> None:
        paid.append(1)

    hold = flow.hold("approve", prompt="Pay?", options=["approve", "reject"], **asked)
    flow.start(look)
    flow.edge(look, pay, when="decision == 'approve'")
    flow.edge(look, hold, otherwise=True)
    flow.edge(hold, pay, when="decision == 'approve'")
    return flow


async def by_run(harness: Harness, flow: Flow) -> str | None:
    made = await harness.send("ada", "POST", "/v1/runs", {"flow": "gate", "input": GIVEN})
    assert (made.status_code, made.json()["code"]) == (422, "invalid_input")
    return None


async def by_thread(harness: Harness, flow: Flow) -> str | None:
    made = await harness.send("ada", "POST", "/v1/threads/t/runs", {"flow": "gate", "input": GIVEN})
    assert made.status_code == 422
    return None


async def by_agent(harness: Harness, flow: Flow) -> str | None:
    call = {"name": "start_run", "arguments": {"flow": "gate", "input": GIVEN}}
    said = await harness.mcp("ada", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    assert said is not None
    assert said["result"]["isError"]
    return None


async def by_trigger(harness: Harness, flow: Flow) -> str | None:
    await harness.ask("ada", "PUT", "/v1/schedules/now", {"flow": "gate", "every": "1h"}, status=201)
    made = await harness.send("ada", "POST", "/v1/schedules/now/trigger", {"input": GIVEN})
    assert made.status_code < 500
    return made.json().get("run")


async def by_patch(harness: Harness, flow: Flow) -> str | None:
    asked = await flow.run({"decision": ""}, on=harness.hf, started_by="user:kim")
    body = {"seq": 0, "patch": {"scratch": GIVEN}}
    made = await harness.ask("ada", "POST", f"/v1/runs/{asked.run_id}/fork", body, status=201)
    return str(made["id"])


async def by_input_of_a_branch(harness: Harness, flow: Flow) -> str | None:
    asked = await flow.run({"decision": ""}, on=harness.hf, started_by="user:kim")
    made = await harness.send("ada", "POST", f"/v1/runs/{asked.run_id}/resume", {"input_data": GIVEN})
    assert made.status_code == 201
    return str(made.json()["id"])


WAYS = {
    each.__name__: each for each in (by_run, by_thread, by_agent, by_trigger, by_patch, by_input_of_a_branch)
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("bound", BOUND)
async def test_a_caller_does_not_answer_a_hold_when_they_give_its_field(bound: str, way: str) -> None:
    asked, policies = BOUND[bound]
    async with harness_of(policies=policies) as harness:
        paid: list[int] = []
        flow = gate(asked, paid)
        harness.hf.register(flow.program())
        run = await WAYS[way](harness, flow)
        store = await harness.hf.open()
        if run is not None and await store.get_run(run) is not None:  # type: ignore[arg-type]
            assert (await flow.resume(run, on=harness.hf)).status == "pending_input"
        assert paid == []


@pytest.mark.parametrize("value", ["", None])
async def test_a_caller_may_send_the_field_empty(value: str | None) -> None:
    async with harness_of() as harness:
        flow = gate(BOUND["by its flow"][0], [])
        harness.hf.register(flow.program())
        body = {"flow": "gate", "input": {"decision": value}}
        made = await harness.ask("ada", "POST", "/v1/runs", body, status=201)
        assert (await flow.resume(made["id"], on=harness.hf)).status == "pending_input"
