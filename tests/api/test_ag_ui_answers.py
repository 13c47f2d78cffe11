"""Answers through AG-UI, and callers who send what they should not: everything or nothing is taken, and a
stream that waits changes nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Flow, Holdfast, Worker
from holdfast.api.auth.grants import CredentialGrant
from holdfast.api.auth.rights import Right
from holdfast.api.auth.tokens import ApiTokens
from tests.api.flows import both
from tests.api.people import Hall, hall_of
from tests.runtime.people import until

pytestmark = pytest.mark.anyio


def one(name: str, **asked: Any) -> Flow:
    flow = Flow(name, effect="pure")
    flow.hold("approve", **{"prompt": "Pay?", "options": ["approve", "reject"], **asked})
    return flow


def echo() -> Flow:
    flow = Flow("echo", effect="pure")

    @flow.node
    async def say(s: Any) -> dict[str, Any]:
        return {"answer": f"re: {s['prompt']}"}

    return flow


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Hall]:
    quorum = {"mode": "quorum", "need": 2, "of": ["user:olga@acme", "user:ada@acme"]}
    flows = [
        both(),
        echo(),
        one("own", assignee="user:ada@acme", approval={"exclude": ["initiator"]}),
        one("signed", step_up="5m"),
        one("sam", assignee="user:sam@acme", strict_assignee=True),
        one("two-people", approval=quorum),
    ]
    async with (
        Holdfast(f"sqlite:{tmp_path / 's.db'}") as hf,
        hall_of(hf) as hall,
        Worker(*flows, on=hf),
    ):
        made, rights = ApiTokens(await hf.open()), (Right.runs_write,)
        grant = CredentialGrant(subject="user:olga@acme", rights=rights)
        hall.tokens["starter"] = (await made.create(grant, by="user:test"))[1]
        yield hall


async def _send(hall: Hall, who: str, flow: str, **more: Any) -> Any:
    said = [{"id": "m1", "role": "user", "content": "hello"}]
    body = {"threadId": "t-1", "runId": "r-1", "messages": said, **more}
    return await hall.send(who, "POST", f"/v1/flows/{flow}/ag-ui", json=body)


async def _events(hall: Hall, who: str, flow: str, **more: Any) -> list[dict[str, Any]]:
    answer = await _send(hall, who, flow, **more)
    assert answer.status_code == 200, answer.text
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]


async def _refused(hall: Hall, who: str, flow: str, **more: Any) -> tuple[int, str]:
    answer = await _send(hall, who, flow, **more)
    return answer.status_code, answer.json()["code"]


def _asked(events: list[dict[str, Any]]) -> dict[str, str]:
    outcome = events[-1]["outcome"]
    return {each["metadata"]["holdfast"]["node"]: each["id"] for each in outcome["interrupts"]}


def _entry(hold: str, payload: Any = None, status: str = "resolved") -> dict[str, Any]:
    return {"interruptId": hold, "status": status, "payload": payload}


async def _decisions(hall: Hall) -> dict[str, str | None]:
    rows = await (await hall.hf.open()).holds(limit=100)
    return {row.node: row.resolved_by for row in rows}


@pytest.mark.covers("IN-71")
async def test_no_entry_is_taken_when_another_is_refused(harness: Hall) -> None:
    holds = _asked(await _events(harness, "olga", "both"))
    left, right = holds["left"], holds["right"]
    resume = [_entry(left, "yes"), _entry(right, "perhaps")]
    assert await _refused(harness, "olga", "both", runId="r-2", resume=resume) == (422, "answer_invalid")
    resume = [_entry(left, "yes"), _entry(right, {"decision": "yes", "unknown": 1})]
    assert await _refused(harness, "olga", "both", runId="r-3", resume=resume) == (422, "answer_invalid")
    resume = [_entry(left, "yes"), _entry(left, "no")]
    assert await _refused(harness, "olga", "both", runId="r-4", resume=resume) == (422, "invalid_input")
    assert await _decisions(harness) == {"left": None, "right": None}
    resume = [_entry(left, "yes"), _entry(right, "no")]
    for _ in range(2):
        events = await _events(harness, "olga", "both", runId="r-5", resume=resume)
        assert events[-1]["outcome"] == {"type": "success"}
    again = [_entry(left, "no"), _entry(right, "no")]
    assert (await _refused(harness, "olga", "both", runId="r-5", resume=again))[0] == 422
    assert events[-1]["result"]["decision_result"]["resolved_by"] == "user:olga@acme"


@pytest.mark.covers("IN-71")
async def test_a_stream_ends_with_the_questions_that_are_still_open(harness: Hall) -> None:
    holds = _asked(await _events(harness, "olga", "both"))
    for first, other in (("left", "right"), ("right", "left")):
        given = [_entry(holds[first], status="cancelled")]
        events = await _events(harness, "olga", "both", runId=f"none-{first}", resume=given)
        assert _asked(events).keys() == {first, other}
    events = await _events(harness, "olga", "both", runId="r-2", resume=[_entry(holds["right"], "no")])
    assert _asked(events).keys() == {"left"}
    # One of two votes: the question stays open.
    hold = _asked(await _events(harness, "olga", "two-people", threadId="t-2"))["approve"]
    vote = [_entry(hold, "approve")]
    events = await _events(harness, "olga", "two-people", threadId="t-2", runId="r-3", resume=vote)
    assert _asked(events) == {"approve": hold}
    events = await _events(harness, "ada", "two-people", threadId="t-2", runId="r-4", resume=vote)
    assert events[-1]["outcome"] == {"type": "success"}


@pytest.mark.covers("IN-70")
async def test_a_stream_that_waits_for_the_decision_of_others_writes_nothing(harness: Hall) -> None:
    store = await harness.hf.open()
    waiting = asyncio.create_task(_events(harness, "starter", "sam"))
    found = await until(lambda: store.holds(limit=10))
    # As many looks as a stream has in its first seconds.
    await asyncio.sleep(1.5)
    (hold,) = found
    assert [row.action for row in await store.audit("default", limit=100) if row.hold == hold.id] == [
        "created"
    ]
    sent = await harness.send("sam", "POST", f"/v1/holds/{hold.id}/resolve", json={"decision": "approve"})
    assert sent.status_code == 200
    assert (await waiting)[-1]["outcome"] == {"type": "success"}


@pytest.mark.covers("IN-71")
async def test_the_rules_of_a_hold_are_those_of_its_inbox(harness: Hall) -> None:
    mine = [_entry(_asked(await _events(harness, "olga", "own"))["approve"], "approve")]
    assert await _refused(harness, "olga", "own", runId="r-2", resume=mine) == (403, "excluded")
    # A token that may start runs only, of the same person; and a person of another tenant.
    assert await _refused(harness, "starter", "own", runId="r-2", resume=mine) == (403, "forbidden")
    assert await _refused(harness, "eve", "own", runId="r-2", resume=mine) == (404, "hold_not_found")
    signed = [_entry(_asked(await _events(harness, "olga", "signed", runId="s"))["approve"], "approve")]
    status, code = await _refused(harness, "olga", "signed", runId="r-3", resume=signed)
    assert (status, code) == (403, "step_up_required")
    assert set((await _decisions(harness)).values()) == {None}


@pytest.mark.covers("IN-71")
async def test_what_is_said_now_comes_before_the_state_that_a_client_sends_back(harness: Hall) -> None:
    def state(events: list[dict[str, Any]]) -> dict[str, Any]:
        return next(each["snapshot"] for each in events if each["type"] == "STATE_SNAPSHOT")

    first = state(await _events(harness, "olga", "echo"))
    assert first["answer"] == "re: hello"
    said = [{"id": "m1", "role": "user", "content": "hello"}, {"id": "m2", "role": "user", "content": "Bye"}]
    events = await _events(harness, "olga", "echo", runId="r-2", state=first, messages=said)
    assert state(events)["answer"] == "re: Bye"
    events = await _events(harness, "olga", "echo", runId="r-3", state={"prompt": "From a form"}, messages=[])
    assert state(events)["answer"] == "re: From a form"
    # The decision of the last run is none about this one.
    ada = {"threadId": "t-2", "runId": "r-4"}
    hold = _asked(await _events(harness, "olga", "own", **ada))["approve"]
    ada["runId"] = "r-5"
    first = state(await _events(harness, "ada", "own", **ada, resume=[_entry(hold, "approve")]))
    assert first["decision"] == "approve"
    events = await _events(harness, "olga", "own", threadId="t-2", runId="r-6", state=first)
    assert "decision" not in state(events)


@pytest.mark.covers("IN-71")
async def test_a_run_id_of_another_thread_is_refused(harness: Hall) -> None:
    await _events(harness, "olga", "echo")
    assert await _refused(harness, "olga", "echo", threadId="t-2") == (422, "idempotency_key_reused")
    body = {"flow": "echo", "input": {"prompt": "x"}, "thread": "a"}
    key = {"Idempotency-Key": "k"}
    assert (await harness.send("olga", "POST", "/v1/runs", json=body, headers=key)).status_code == 201
    assert (await harness.send("olga", "POST", "/v1/runs", json=body, headers=key)).status_code == 200
    other = await harness.send("olga", "POST", "/v1/runs", json={**body, "thread": "b"}, headers=key)
    assert other.json()["code"] == "idempotency_key_reused"


async def test_a_credential_that_may_only_start_runs_answers_no_question_in_a_thread(harness: Hall) -> None:
    body = {"flow": "both", "input": {}, "wait": 60}
    run = (await harness.send("olga", "POST", "/v1/threads/t-9/runs", json=body)).json()["id"]
    (hold, other) = (row.id for row in await (await harness.hf.open()).holds(run=run, limit=9))
    said = {**body, "content": "yes", "request_id": hold}
    refused = await harness.send("starter", "POST", "/v1/threads/t-9/runs", json=said)
    assert (refused.status_code, refused.json()["right"]) == (403, "holds:write")
    assert set((await _decisions(harness)).values()) == {None}
    # The same key does not say that another question was answered.
    key, path = {"Idempotency-Key": "k"}, f"/v1/runs/{run}/input"
    taken = await harness.send("olga", "POST", path, json={"content": "yes", "request_id": hold}, headers=key)
    assert taken.status_code == 200
    more = await harness.send("olga", "POST", path, json={"content": "yes", "request_id": other}, headers=key)
    assert (more.status_code, more.json()["code"]) == (422, "idempotency_key_reused")


async def test_who_lists_the_questions_of_a_pipeline_leaves_no_refusals_in_the_audit(harness: Hall) -> None:
    dot = (
        'digraph g { start [shape=Mdiamond]; done [shape=Msquare]; gate [shape=hexagon, label="Ship?", '
        'human.assignee="user:sam@acme"]; start -> gate; gate -> done [label="[A] Approve"] }'
    )
    made = await harness.send("olga", "POST", "/v1/pipelines", json={"dot": dot})
    assert made.status_code == 201, made.text
    store, path = await harness.hf.open(), f"/v1/pipelines/{made.json()['id']}/questions"
    await until(lambda: store.holds(limit=10))
    for _ in range(2):
        assert (await harness.send("dana", "GET", path)).json()["items"] == []
    assert len((await harness.send("sam", "GET", path)).json()["items"]) == 1
    assert "refused" not in [row.action for row in await store.audit("default", limit=100)]
