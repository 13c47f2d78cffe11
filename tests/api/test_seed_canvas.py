"""The document about the canvas, line by line over HTTP: its own form, its own bodies, its own paths."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

from holdfast import Holdfast, Worker
from holdfast.holds.notify.channels import Channels
from holdfast.holds.notify.deliverer import Deliverer
from holdfast.types.clock import SystemClock
from tests.api.people import Hall, hall_of
from tests.holds.notify.scene import Diary

pytestmark = pytest.mark.anyio

PROXY: Final = "/v1/scaicore/checkpoints"
# As the document has it, without its name for the format.
SECTIONS: Final = """[
  { "type": "context", "title": "Customer", "content": "{{customer_id}}" },
  { "type": "input",
    "field": "amount",
    "kind": "currency",
    "default": "{{amount}}",
    "extras": { "confidence": "{{confidence}}" } },
  { "type": "decision",
    "field": "decision",
    "options": [
      { "id": "approve", "label": "Approve", "variant": "primary" },
      "reject"
    ] }
]"""
INPUT: Final = {"customer_id": "c-17", "amount": 250, "confidence": 0.83}


def document(kind: str = "hitl_review", **config: Any) -> Any:
    more = {"queue": "reviews", "sections": json.loads(SECTIONS)} if kind == "hitl_review" else {}
    return {
        "holdfast": "1.0",
        "name": "review",
        "config": {"scaiqueue": {"scope": "support"}},
        "input": {"type": "object", "properties": {name: {} for name in INPUT}},
        "nodes": [
            {"id": "start", "type": "start"},
            {"id": "ask", "type": kind, "config": {**more, **config}},
            {"id": "seen", "type": "set", "config": {"values": {"seen": "{{customer_id}}"}}},
            {"id": "done", "type": "end"},
        ],
        "edges": [
            {"source": "start", "target": "ask"},
            {"source": "ask", "target": "seen"},
            {"source": "seen", "target": "done"},
        ],
    }


@pytest.fixture
async def hall(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Hall]:
    async with Holdfast(f"sqlite:{tmp_path / 'h.db'}") as hf, hall_of(hf) as found, Worker(on=hf):
        yield found


async def invoke(hall: Hall, sent: Any) -> Any:
    """Deployed and invoked; the run waits for somebody."""
    await hall.ask("ada", "POST", "/v1/flows", status=201, json={"document": sent})
    body = {"flow": "review", "input": INPUT, "wait": 60}
    run = await hall.ask("ada", "POST", "/v1/runs", status=201, json=body)
    assert run["status"] == "pending_input"
    return run


async def waiting(hall: Hall, **where: Any) -> Any:
    (row,) = (await hall.ask("olga", "GET", PROXY, params=where))["items"]
    return await hall.ask("olga", "GET", f"{PROXY}/{row['id']}")


async def end(hall: Hall, run: Any) -> Any:
    ended = await hall.ask("ada", "GET", f"/v1/runs/{run['id']}/result?wait=60")
    assert ended["status"] == "completed"
    return ended["state"]


@pytest.mark.covers("FM-3", "FM-4", "FM-5", "FM-8", "FM-9", "FL-4", "PLATFORM-PROOF-03")
async def test_form_of_the_document_is_shown_as_it_says_and_answered_by_its_body(hall: Hall) -> None:
    run = await invoke(hall, document())
    row = await waiting(hall)
    context, entry, decision = row["schema"]["x-form"]["sections"]

    assert (context["type"], context["title"], context["content"]) == ("context", "Customer", "c-17")
    assert (entry["field"], entry["kind"], entry["default"]) == ("amount", "currency", 250)
    assert entry["extras"]["confidence"] == 0.83
    assert decision["field"] == "decision"
    assert [each["id"] for each in decision["options"]] == ["approve", "reject"]
    assert decision["options"][0]["variant"] == "primary"

    page = await hall.send("olga", "GET", f"/holds/{row['id']}", headers={"Accept": "text/html"})
    shown = page.text
    assert "c-17" in shown
    assert re.search(r'<input [^>]*name="[^"]*amount[^"]*" inputmode="decimal" value="250"', shown)
    assert "83% sure" in shown
    for option in ("approve", "reject"):
        assert re.search(rf'<button [^>]*value="{option}"', shown)
    assert not re.search(r'<(input|textarea) [^>]*name="[^"]*customer', shown, re.IGNORECASE)

    bad = {"decision": "approve", "response_data": {"amount": "much"}}
    assert (await hall.send("olga", "POST", f"{PROXY}/{row['id']}/resolve", json=bad)).status_code == 422
    wrong = await hall.send("olga", "POST", f"{PROXY}/{row['id']}/resolve", json={"resolution": "Approve!"})
    assert wrong.status_code == 422
    body = {"decision": "approve", "response_data": {"amount": 200}, "comment": "Within team budget."}
    done = await hall.ask("olga", "POST", f"{PROXY}/{row['id']}/resolve", json=body)

    assert done["status"] == "resolved"
    state = await end(hall, run)
    # Of a context section nothing is in the answer; the chosen button's id is the value of its field.
    assert state["decision"] == "approve"
    assert float(state["ask"]["amount"]) == 200
    assert "Customer" not in state["ask"]
    assert state["decision_result"]["comment"] == "Within team budget."


@pytest.mark.covers("FL-4", "RM-2", "PLATFORM-PROOF-03")
async def test_sample_call_of_the_document_resolves_a_review_by_the_id_of_its_option(hall: Hall) -> None:
    run = await invoke(hall, document(decision_bind="verdict", assignee="group:finance"))
    row = await waiting(hall)
    assert (row["assignee_raw"], row["assignee_type"]) == ("group:finance", "group")
    body = {"resolution": "reject", "comment": "Within team budget."}
    assert (await hall.send("vera", "POST", f"{PROXY}/{row['id']}/resolve", json=body)).status_code == 403
    await hall.ask("olga", "POST", f"{PROXY}/{row['id']}/resolve", json=body)

    state = await end(hall, run)
    assert state["verdict"] == "reject"
    assert "decision" not in state or state["decision"] is None


@pytest.mark.covers("CP-1", "QB-1", "QB-2", "PLATFORM-PROOF-03")
async def test_review_is_published_to_its_queue_under_the_id_of_its_row(hall: Hall) -> None:
    await invoke(hall, document())
    messages = "/v1/queues/support/reviews/messages"
    (message,) = (await hall.ask("ada", "POST", f"{messages}/claim", json={"wait": 30}))["items"]
    row = await waiting(hall)
    assert str(UUID(row["id"])) == row["id"] == message["correlation_id"]
    assert (message["type"], message["id"]) == ("hitl_request", row["hitl_message_id"])
    assert message["payload"]["sections"][0]["content"] == "c-17"


@pytest.mark.covers("SC-1", "PLATFORM-PROOF-03")
async def test_four_node_types_without_a_scope_use_that_of_their_flow(hall: Hall) -> None:
    sent = document()
    middle = {
        "tell": ("queue_publish", {"queue": "work", "payload": {"n": 1}}),
        "take": ("queue_consume", {"queue": "work"}),
        "more": ("queue_publish", {"queue": "other", "payload": 1}),
        "move": ("queue_escalation", {"message": "{{more.message_id}}", "queue": "leads"}),
    }
    sent["nodes"][1:1] = [
        {"id": name, "type": kind, "config": config} for name, (kind, config) in middle.items()
    ]
    order = ["start", *middle, "ask", "seen", "done"]
    sent["edges"] = [{"source": a, "target": b} for a, b in pairwise(order)]
    await hall.ask("ada", "POST", "/v1/flows", status=201, json={"document": sent})
    body = {"flow": "review", "input": INPUT}
    run = await hall.ask("ada", "POST", "/v1/runs", status=201, json=body)

    reviews = "/v1/queues/support/reviews/messages"
    (review,) = (await hall.ask("ada", "POST", f"{reviews}/claim", json={"wait": 30}))["items"]
    assert review["run"] == run["id"]
    (moved,) = (await hall.ask("ada", "GET", "/v1/queues/support/leads/messages"))["items"]
    assert moved["payload"] == 1
    assert {each["scope"] for each in (await hall.ask("ada", "GET", "/v1/queues"))["items"]} == {"support"}


@pytest.mark.covers("FL-2", "FL-3", "QB-1", "PLATFORM-PROOF-03")
@pytest.mark.parametrize("kind", ["checkpoint", "hitl_decision"])
async def test_outside_system_resumes_a_question_that_is_published_nowhere(hall: Hall, kind: str) -> None:
    run = await invoke(hall, document(kind, options=["go", "stop"], timeout="1h", on_timeout="cancel"))
    row = await waiting(hall)
    assert (row["checkpoint_type"], row["hitl_message_id"]) == ("approval", None)
    assert (row["execution_id"], row["flow_name"], row["block_index"]) == (run["id"], "review", 1)
    assert row["expiry_action"] == "cancel"
    assert row["expires_at"] is not None
    assert (await hall.ask("ada", "GET", "/v1/queues"))["items"] == []
    await hall.ask("olga", "POST", f"{PROXY}/{row['id']}/resolve", json={"resolution": "go"})

    assert (await end(hall, run))["decision"] == "go"


@pytest.mark.covers("BP-1", "BP-7", "BP-8", "PLATFORM-PROOF-03")
async def test_breakpoint_of_any_node_is_listed_by_its_type_and_continued(hall: Hall) -> None:
    sent = document("checkpoint", options=["go"])
    sent["nodes"][2]["config"]["breakpoint"] = True
    run = await invoke(hall, sent)
    first = await waiting(hall, checkpoint_type="approval")
    assert first["node_id"] == "ask"
    await hall.ask("olga", "POST", f"{PROXY}/{first['id']}/resolve", json={"resolution": "go"})
    assert (await hall.ask("ada", "GET", f"/v1/runs/{run['id']}/result?wait=60"))["status"] == "pending_input"

    paused = await waiting(hall, checkpoint_type="debug_breakpoint")
    assert (paused["node_id"], paused["execution_id"]) == ("seen__breakpoint", run["id"])
    await hall.ask("olga", "POST", f"{PROXY}/{paused['id']}/resolve", json={"resolution": "continue"})
    state = await end(hall, run)
    assert (state["seen"], state["decision"]) == ("c-17", "go")


@pytest.mark.covers("SC-5", "PLATFORM-HOLD-02", "PLATFORM-PROOF-03")
async def test_deployment_without_queue_or_scope_fails_and_says_where(hall: Hall) -> None:
    sent = document()
    del sent["config"]
    del sent["nodes"][1]["config"]["queue"]
    refused = await hall.ask("ada", "POST", "/v1/flows", status=422, json={"document": sent})
    found = {each["rule"]: each for each in refused["errors"] if each["node"] == "ask"}
    assert found["required"]["fix"] == "add 'queue'"
    assert (await hall.ask("ada", "GET", "/v1/flows"))["items"] == []
    sent["nodes"][1]["config"]["queue"] = "reviews"
    refused = await hall.ask("ada", "POST", "/v1/flows", status=422, json={"document": sent})
    assert [(each["rule"], each["node"], each["field"]) for each in refused["errors"]] == [
        ("scope-missing", "ask", "scope")
    ]


@pytest.mark.covers("HI-1", "NO-1", "PLATFORM-PROOF-03")
async def test_history_lists_created_notified_and_resolved(hall: Hall) -> None:
    run = await invoke(hall, document("checkpoint", options=["go"], assignee="user:dana@acme.example"))
    row = await waiting(hall)
    diary = Diary()
    store, clock = await hall.hf.open(), SystemClock()
    await Deliverer(store, clock, Channels(store, clock, given=[diary])).deliver()
    assert diary.told() == [("hold.created", "dana@acme.example")]
    assert (await waiting(hall))["notification_sent"] is True
    await hall.ask("olga", "POST", f"{PROXY}/{row['id']}/resolve", json={"resolution": "go"})
    await end(hall, run)

    history = (await hall.ask("olga", "GET", f"/checkpoints/{row['id']}/history"))["items"]
    assert [each["action"] for each in history] == ["created", "notified", "resolved"]
