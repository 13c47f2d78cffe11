"""A flow as an agent of AG-UI: its events are read by the protocol's own library and client."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import Event
from pydantic import TypeAdapter

from holdfast import Agent, Approval, Flow, Worker, tool
from holdfast.agents.scripted import Scripted, tool_call
from holdfast.api.ag_ui.events import AgUiRenderer
from holdfast.api.schemas.events import EventWire
from tests.api.conftest import Server
from tests.deadlines import HANG
from tests.services.ag_ui import front_end

pytestmark = pytest.mark.anyio
READS: TypeAdapter[Any] = TypeAdapter(Event)
PAID: list[int] = []
EXAMPLE = Path(__file__).parents[2] / "examples" / "ag_ui.py"


@tool(effect="external", approval=Approval(prompt="Refund {{amount}}?"))
async def refund(amount: int) -> str:
    PAID.append(amount)
    return f"refunded {amount}"


def support() -> Flow:
    model = Scripted(tool_call("refund", amount=250), "It is on its way.", name="tiny")
    flow = Flow("support", effect="read")
    flow.agent("help", Agent("helper", model=model, tools=[refund]), prompt="{{prompt}}", output="answer")
    return flow


def broken() -> Flow:
    flow = Flow("broken", effect="read")

    @flow.node
    async def fall(s: Any) -> None:
        raise ValueError("out of order")

    return flow


@pytest.fixture
async def harness(server: Server) -> AsyncIterator[Server]:
    PAID.clear()
    async with Worker(support(), broken(), on=server.hf):
        yield server


def _given(**more: Any) -> dict[str, Any]:
    said = [{"id": "m1", "role": "user", "content": "My order is broken."}]
    return {"threadId": "t-1", "runId": "r-1", "messages": said, "tools": [], "context": [], **more}


async def _events(
    server: Server, flow: str = "support", headers: Any = None, **more: Any
) -> list[dict[str, Any]]:
    path = f"/v1/flows/{flow}/ag-ui"
    answer = await server.client.post(path, json=_given(**more), headers=headers or {}, timeout=HANG)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    found = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    for event in found:
        READS.validate_python(event)
    return found


def _kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def _resume(events: list[dict[str, Any]], payload: Any) -> list[dict[str, Any]]:
    asked = events[-1]["outcome"]["interrupts"]
    return [{"interruptId": each["id"], "status": "resolved", "payload": payload} for each in asked]


@pytest.mark.covers("IN-70", "IN-71", "USERS-AGUI")
async def test_a_hold_ends_the_stream_as_an_interrupt_and_an_entry_of_resume_answers_it(
    harness: Server,
) -> None:
    events = await _events(harness)
    assert _kinds(events) == [
        "RUN_STARTED",
        "STEP_STARTED",
        "STEP_FINISHED",
        "STATE_SNAPSHOT",
        "RUN_FINISHED",
    ]
    assert events[0] | {"metadata": None} == {
        "type": "RUN_STARTED", "threadId": "t-1", "runId": "r-1", "protocolVersion": "1.0", "metadata": None,
    }  # fmt: skip
    (asked,) = events[-1]["outcome"]["interrupts"]
    assert asked["message"] == "Refund 250?"
    assert asked["responseSchema"]["required"] == ["decision"]
    assert PAID == []
    more = await _events(harness, runId="r-2", resume=_resume(events, {"decision": "approve"}))
    assert PAID == [250]
    assert (
        _kinds(more)[-4:] == ["TEXT_MESSAGE_END", "STEP_FINISHED", "STATE_SNAPSHOT", "RUN_FINISHED"] or more
    )
    assert "TOOL_CALL_START" in _kinds(more)
    said = "".join(event["delta"] for event in more if event["type"] == "TEXT_MESSAGE_CONTENT")
    assert said == "It is on its way."
    assert more[-1]["outcome"] == {"type": "success"}
    assert more[-1]["result"]["answer"] == "It is on its way."
    run = events[0]["metadata"]["holdfast"]["run"]
    assert more[0]["metadata"]["holdfast"]["run"] == run
    assert (await harness.json("GET", f"/v1/runs/{run}"))["thread"] == "t-1"


@pytest.mark.covers("IN-71")
async def test_the_same_request_again_follows_the_same_run_and_pays_once(harness: Server) -> None:
    events = await _events(harness)
    assert await _events(harness) == events
    resume = _resume(events, "approve")
    more = await _events(harness, runId="r-2", resume=resume)
    assert await _events(harness, runId="r-2", resume=resume) == more
    assert PAID == [250]
    whole = await _events(harness)
    assert _kinds(whole)[-1] == "RUN_FINISHED"
    assert whole[-1]["outcome"] == {"type": "success"}


@pytest.mark.covers("IN-70")
async def test_a_client_that_was_cut_off_goes_on_after_its_last_event(harness: Server) -> None:
    events = await _events(harness)
    await _events(harness, runId="r-2", resume=_resume(events, "approve"))
    answer = await harness.client.post("/v1/flows/support/ag-ui", json=_given())
    lines = answer.text.split("\n\n")
    cut = next(index for index, frame in enumerate(lines) if frame.startswith("id:") and index > 2)
    last = lines[cut].partition("\n")[0].removeprefix("id: ")
    rest = await harness.client.post(
        "/v1/flows/support/ag-ui", json=_given(), headers={"Last-Event-ID": last}
    )
    assert rest.text.split("\n\n") == lines[cut + 1 :]


@pytest.mark.covers("IN-73")
async def test_bad_input_is_a_problem_before_the_stream_and_an_error_event_in_it(harness: Server) -> None:
    async def refused(status: int, body: Any, flow: str = "support") -> str:
        answer = await harness.client.post(f"/v1/flows/{flow}/ag-ui", json=body)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        return answer.json()["code"]

    assert await refused(422, {"threadId": "t"}) == "invalid_input"
    assert await refused(422, _given(state=[1])) == "invalid_input"
    assert await refused(422, _given(runId="")) == "invalid_input"
    for wrong in ({"role": "root"}, {"role": ["user"]}, {"role": None}, {}, {"role": "user", "id": ""}):
        message = {"id": "m1", "content": "x", **wrong}
        assert await refused(422, _given(messages=[message])) == "invalid_input"
    assert await refused(422, _given(messages=[{"role": "user", "content": "x"}])) == "invalid_input"
    assert await refused(404, _given(), flow="nowhere") == "flow_not_found"
    nobody = [{"interruptId": "h-none", "status": "resolved", "payload": "approve"}]
    assert await refused(404, _given(resume=nobody)) == "hold_not_found"
    events = await _events(harness)
    resume = _resume(events, "approve")
    assert await refused(422, _given(runId="r-2", resume=_resume(events, 7))) == "answer_invalid"
    assert await refused(422, _given(runId="r-2", resume=_resume(events, "perhaps"))) == "answer_invalid"
    assert await refused(422, _given(threadId="t-2", runId="r-2", resume=resume)) == "invalid_input"
    await _events(harness, runId="r-2", resume=resume)
    assert await refused(409, _given(runId="r-3", resume=_resume(events, "reject"))) == "hold_decided"
    # The same answer is that of another request, whose stream this one is not.
    assert await refused(409, _given(runId="r-3", resume=resume)) == "hold_decided"
    await _events(harness, runId="r-2", resume=resume)
    assert PAID == [250]
    failed = await _events(harness, "broken", runId="r-4")
    assert failed[-1]["type"] == "RUN_ERROR"
    assert "out of order" in failed[-1]["message"]


@pytest.mark.covers("IN-71")
async def test_what_an_attempt_has_said_is_taken_back_when_its_step_starts_again() -> None:
    render = AgUiRenderer("t", "r", "run", [{"id": "m1", "role": "user", "content": "hello"}])

    def events(name: str, number: int, **data: Any) -> list[dict[str, Any]]:
        wire = EventWire(run="run", number=number, at=None, type=name, node="help", scope="", data=data)
        return list(render.render(wire))

    events("node.started", 1)
    events("node.emitted", 2, kind="text", data="It is")
    ended, snapshot = events("node.restarted", 3)
    assert (ended["type"], snapshot["type"]) == ("TEXT_MESSAGE_END", "MESSAGES_SNAPSHOT")
    assert [message["id"] for message in snapshot["messages"]] == ["m1"]
    READS.validate_python(snapshot)
    again = events("node.emitted", 4, kind="text", data="It was")
    assert [event["type"] for event in again] == ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT"]
    assert again[0]["messageId"] == "run:4"
    assert [event["delta"] for event in events("node.emitted", 5, kind="text", data=" late")] == [" late"]
    *_, snapshot = events("node.retried", 6)
    assert [message["id"] for message in snapshot["messages"]] == ["m1"]
    assert events("node.emitted", 7, kind="log", data={"level": "info", "text": "x"}) == []


async def test_the_example_asks_answers_and_prints_the_events(server: Server) -> None:
    spec = importlib.util.spec_from_file_location("ag_ui_example", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    async with Worker(module.desk, on=server.hf):
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(EXAMPLE),
            env={**os.environ, "HOLDFAST_URL": server.serving.address, "HOLDFAST_TOKEN": server.token},
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await process.communicate()
    lines = out.decode().splitlines()
    assert "? Refund 250 for A17? approve" in lines
    assert lines[-1].strip() == "RUN_FINISHED"
    assert "TOOL_CALL_START refund" in lines


@pytest.mark.covers("IN-74", "USERS-AGUI")
async def test_the_official_javascript_client_reads_text_tool_hold_answer_and_reconnect_in_two_tabs(
    harness: Server,
) -> None:
    said = [{"id": "m1", "role": "user", "content": "My order is broken."}]
    seen = await front_end(
        url=f"{harness.serving.address}/v1/flows/support/ag-ui",
        token=harness.token,
        thread="t-1",
        runId="js-1",
        messages=said,
        state={},
        decision="approve",
    )
    cut, one, other, *answers, again, _ = seen
    assert "RUN_FINISHED" not in cut["seen"]
    assert one["seen"][0] == "RUN_STARTED"
    # Both tabs have given the same answer: one of them decided, and the other one is told so.
    (resumed,) = [each for each in answers if "refused" not in each]
    (told,) = [each["refused"] for each in answers if "refused" in each]
    assert "409" in str(told), told
    assert one["outcome"]["type"] == other["outcome"]["type"] == "interrupt"
    assert one["outcome"] == other["outcome"]
    assert resumed["outcome"] == again["outcome"] == {"type": "success"}
    assert PAID == [250]
    assert "TOOL_CALL_START" in resumed["seen"]
    assert [message["content"] for message in resumed["messages"] if message.get("content")] == [
        "My order is broken.",
        "It is on its way.",
    ]
    assert again["messages"][-1]["content"] == "It is on its way."
    assert again["state"]["answer"] == "It is on its way."
