"""The paths that the seeds name, with their bodies, statuses and permissions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Flow, Holdfast
from holdfast.api.aliases import alias_of
from holdfast.client import AsyncClient
from tests.api.people import Hall, hall_of

pytestmark = pytest.mark.anyio

PLAIN = ("/checkpoints", "/v1/checkpoints")
PROXY, MODULE = "/v1/scaicore/checkpoints", "/v1/modules/scaicore/checkpoints"
ROW = (
    "id", "core_id", "tenant_id", "execution_id", "flow_name", "block_index", "instance_key",
    "checkpoint_type", "prompt", "options", "assignee_raw", "assignee_type", "assignee_resolved", "context",
    "status", "priority", "expires_at", "expiry_action", "escalation_target", "notification_sent",
    "reminder_count", "reminder_interval_m", "resolution", "resolved_by", "resolved_at",
)  # fmt: skip


@pytest.fixture
async def hall(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Hall]:
    async with Holdfast(f"sqlite:{tmp_path / 'h.db'}") as hf, hall_of(hf) as found:
        yield found


@pytest.mark.covers("SERVER-SEED-02", "CP-2", "CP-7", "CP-15")
@pytest.mark.covers("PLAIN-WIRE-05")
async def test_row_has_the_names_of_the_seed_and_never_where_its_state_is(hall: Hall) -> None:
    hold = await hall.asks("user:Dana@acme")
    row = await hall.ask("dana", "GET", f"/checkpoints/{hold}")
    assert [name for name in ROW if name not in row] == []
    assert (row["assignee_raw"], row["assignee_type"], row["assignee_resolved"]) == (
        "user:Dana@acme", "user", {"type": "user", "value": "dana@acme"},
    )  # fmt: skip
    assert (row["flow_name"], row["core_id"], row["tenant_id"]) == ("refund", "flow:refund", "default")
    assert not [name for name in row if "s3" in name or "blob" in name]


@pytest.mark.covers("PLAIN-WIRE-01", "PLAIN-WIRE-02")
async def test_native_row_and_list_have_the_plain_names_and_options_are_objects(hall: Hall) -> None:
    hold = await hall.asks("user:Dana@acme")
    (listed,) = (await hall.ask("dana", "GET", "/v1/holds"))["items"]
    row = await hall.ask("dana", "GET", f"/v1/holds/{hold}")
    for shown in (row, listed):
        assert (shown["id"], shown["flow"], shown["tenant"], shown["assignee"]) == (
            hold, "refund", "default", "user:Dana@acme",
        )  # fmt: skip
        assert {"run", "node", "type"} <= shown.keys()
        assert not {"execution_id", "flow_name", "tenant_id", "node_id", "checkpoint_type"} & shown.keys()
        assert [each["id"] for each in shown["options"]] == ["approve", "reject"]
    run = await hall.ask("ada", "GET", f"/v1/runs/{row['run']}")
    assert {"id", "flow", "tenant", "status"} <= run.keys()


@pytest.mark.covers("SERVER-SEED-02", "HI-1", "HI-2", "HI-3", "HI-4")
@pytest.mark.parametrize("base", PLAIN)
async def test_checkpoint_is_resolved_cancelled_reassigned_and_has_a_history(hall: Hall, base: str) -> None:
    hold = await hall.asks()
    body = {"decision": "approve", "response_data": {"amount_approved": 500}, "comment": "Within limits."}
    done = await hall.ask("dana", "POST", f"{base}/{hold}/resolve", json=body)
    assert (done["status"], done["resolved_by"]) == ("resolved", "user:dana@acme")
    assert {name: done["resolution"][name] for name in body} == body
    history = (await hall.ask("dana", "GET", f"{base}/{hold}/history"))["items"]
    assert [each["action"] for each in history] == ["created", "resolved"]
    audit = (await hall.ask("ada", "GET", "/v1/audit", params={"checkpoint": hold}))["items"]
    assert [each["seq"] for each in audit] == [each["seq"] for each in history]

    other = await hall.asks()
    moved = await hall.ask("ada", "POST", f"{base}/{other}/reassign", json={"assignee": "group:finance"})
    assert (moved["assignee_raw"], moved["assignee_type"]) == ("group:finance", "group")
    gone = await hall.ask("ada", "POST", f"{base}/{other}/cancel")
    assert (gone["status"], gone["resolution"]) == ("cancelled", None)
    late = await hall.send("ada", "POST", f"{base}/{other}/resolve", json={"decision": "approve"})
    assert (late.status_code, late.json()["checkpoint_status"]) == (409, "cancelled")


@pytest.mark.covers("SERVER-SEED-03", "SERVER-SEED-04")
async def test_proxy_needs_manage_and_module_needs_the_right_to_resolve(hall: Hall) -> None:
    may = {
        PROXY: {"olga": 200, "ada": 200, "clerk": 403, "dana": 403, "vera": 403},
        MODULE: {"olga": 200, "ada": 200, "clerk": 200, "dana": 403, "vera": 403},
    }
    for base, expected in may.items():
        for who, status in expected.items():
            hold = await hall.asks()
            body = {"resolution": "approve", "comment": "Within team budget."}
            answer = await hall.send(who, "POST", f"{base}/{hold}/resolve", json=body)
            assert answer.status_code == status, (base, who, answer.text)
            if status == 403:
                named = "scaicore:manage" if base is PROXY else "scaicore:checkpoint_resolve"
                assert answer.json()["right"] == named
            else:
                assert answer.json()["resolution"]["authority"] == "permission"


@pytest.mark.covers("SERVER-SEED-03")
@pytest.mark.covers("PLAIN-WIRE-07")
async def test_other_prefixes_are_in_no_description_and_in_no_client(hall: Hall) -> None:
    paths = (await hall.ask("ada", "GET", "/openapi.json"))["paths"]
    assert [path for path in paths if not path.startswith("/v1/")] == []
    assert [path for path in paths if alias_of(path) is not None] == []
    client = AsyncClient("http://x", token="x")
    assert not hasattr(client, "scaicore")
    assert client.checkpoints is not None


@pytest.mark.covers("SERVER-SEED-03")
async def test_proxy_answers_as_the_module_does(hall: Hall) -> None:
    """Status, body, request id, idempotency key and caller: nothing of the proxy's own is seen."""
    answers: list[Any] = []
    for base in (PROXY, MODULE):
        hold = await hall.asks()
        headers = {"X-Request-Id": "req-7", "Idempotency-Key": "key-7"}
        said = {"resolution": "approve"}
        seen: list[Any] = []
        for body in (said, said, {"resolution": "reject"}):
            answer = await hall.send("ada", "POST", f"{base}/{hold}/resolve", json=body, headers=headers)
            assert answer.headers["x-request-id"] == "req-7"
            whole = answer.json()
            named = ("status", "code", "resolved_by", "idempotent_replay", "request_id")
            seen.append((answer.status_code, {name: whole.get(name) for name in named}))
        odd = await hall.send("ada", "POST", f"{base}/nosuch/resolve", json=said)
        wrong = await hall.send("ada", "POST", f"{base}/{hold}/resolve", json={"resolution": 7})
        foreign = await hall.send("eve", "POST", f"{base}/{hold}/resolve", json=said)
        late = await hall.send("olga", "POST", f"{base}/{hold}/resolve", json=said)
        seen += [answer.status_code for answer in (odd, wrong, foreign, late)]
        answers.append(seen)
    assert answers[0] == answers[1]
    assert [each[0] for each in answers[0][:3]] == [200, 200, 422]
    assert answers[0][0][1]["resolved_by"] == "user:ada@acme"
    assert answers[0][3:] == [404, 422, 404, 409]


@pytest.mark.covers("SERVER-SEED-03")
async def test_breakpoint_is_continued(hall: Hall) -> None:
    flow = Flow("steps", effect="pure")

    async def work(s: Any) -> dict[str, Any]:
        return {"done": True}

    flow.node(id="work", breakpoint=True)(work)
    stopped = await flow.run({}, on=hall.hf)
    listed = await hall.ask("olga", "GET", PROXY, params={"checkpoint_type": "debug_breakpoint"})
    (paused,) = listed["items"]
    assert (paused["node_id"], paused["checkpoint_type"]) == ("work__breakpoint", "debug_breakpoint")
    assert (await hall.ask("olga", "GET", "/v1/holds", params={"view": "all"}))["items"] == []
    odd = await hall.send("olga", "POST", f"{PROXY}/{paused['id']}/resolve", json={"resolution": "approve"})
    assert odd.status_code == 422
    await hall.ask("olga", "POST", f"{PROXY}/{paused['id']}/resolve", json={"resolution": "continue"})
    assert (await flow.resume(stopped.run_id, on=hall.hf)).completed
