"""Webhooks of other systems: signed, taken once, matched to a hold by its id."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.api.app import ApiSettings
from holdfast.api.inbound.settings import parse_settings
from holdfast.holds.notify.webhook import secret_of, signed
from holdfast.types.terms import RESOLVE
from tests.api.people import Hall, hall_of

pytestmark = pytest.mark.anyio

SECRET = "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo="
OTHER = "whsec_" + "MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDA="
SECRETS = {
    "erp": SECRET,
    "bare": "whsec_" + "MTExMTExMTExMTExMTExMTExMTExMTExMTE=",
    "queue": "whsec_" + "MjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjI=",
    "away": "whsec_" + "MzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzM=",
}
WAYS = [
    {"name": "erp", "kind": "webhook", "secrets": [OTHER, SECRET], "actor": "service:erp",
     "rights": [RESOLVE]},
    {"name": "bare", "kind": "webhook", "secrets": [SECRETS["bare"]], "actor": "service:erp"},
    {"name": "queue", "kind": "webhook", "secrets": [SECRETS["queue"]], "actor": "service:queue",
     "rights": [RESOLVE], "trusted": True},
    {"name": "away", "kind": "webhook", "secrets": [SECRETS["away"]], "actor": "service:erp",
     "rights": [RESOLVE], "tenant": "elsewhere"},
]  # fmt: skip


@pytest.fixture
async def hall(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Hall]:
    settings = ApiSettings(inbound=parse_settings({"way": WAYS}))
    async with Holdfast(f"sqlite:{tmp_path / 'h.db'}") as hf, hall_of(hf, settings) as found:
        yield found


async def send(
    hall: Hall, data: Any, *, way: str = "erp", message: str = "msg_1", at: float = 0, secret: str = ""
) -> tuple[int, Any]:
    body = json.dumps({"type": "scaiqueue.message.completed", "data": data}).encode()
    headers = signed(message, int(time.time() + at), body, [secret_of(secret or SECRETS[way], "test")])
    answer = await hall.client.post(f"/v1/inbound/webhooks/{way}", content=body, headers=headers)
    return answer.status_code, answer.json()


@pytest.mark.covers("SERVER-IN-02")
async def test_completion_decides_and_coming_again_changes_nothing(hall: Hall) -> None:
    hold = await hall.asks()
    said = {"correlation_id": hold, "decision": "approve", "response_data": {"ref": "A-7"}}
    assert await send(hall, said) == (
        200,
        {"outcome": "resolved", "checkpoint_id": hold, "status": "resolved"},
    )
    for _ in range(3):
        assert (await send(hall, said))[1]["outcome"] == "duplicate"
    # The same again by the same is no conflict, another decision is.
    assert (await send(hall, said, message="msg_2"))[1]["outcome"] == "resolved"
    late = await send(hall, {**said, "decision": "reject"}, message="msg_3")
    assert late[1]["outcome"] == "already_decided"
    row = await hall.ask("ada", "GET", f"/v1/holds/{hold}")
    assert (row["resolved_by"], row["resolution"]["auth_method"]) == ("service:erp", "webhook")
    assert row["resolution"]["response_data"] == {"ref": "A-7"}
    audit = await hall.ask("ada", "GET", "/v1/audit", params={"checkpoint": hold, "action": "resolved"})
    assert len(audit["items"]) == 1
    assert (await send(hall, {**said, "comment": "other"}))[1]["code"] == "idempotency_key_reused"
    assert (await hall.goes_on(hold)).completed


@pytest.mark.covers("SERVER-IN-02")
async def test_message_that_is_not_signed_now_is_refused(hall: Hall) -> None:
    hold = await hall.asks()
    said = {"correlation_id": hold, "decision": "approve"}
    for odd in ({"at": -301.0}, {"at": 302.0}, {"message": ""}, {"secret": "whsec_" + "b" * 44}):
        status, text = await send(hall, said, **odd)  # type: ignore[arg-type]
        assert (status, text["code"]) == (401, "signature_invalid"), odd
    bare = await hall.client.post("/v1/inbound/webhooks/erp", json={"data": said})
    nobody = await hall.client.post("/v1/inbound/webhooks/nosuch", json={})
    assert (bare.status_code, nobody.status_code) == (401, 404)
    assert (await send(hall, said, secret=OTHER))[0] == 200  # either secret is good while they are changed


@pytest.mark.covers("SERVER-IN-02")
async def test_what_does_not_fit_leaves_the_hold_open(hall: Hall) -> None:
    hold = await hall.asks()
    said = {"correlation_id": hold, "decision": "approve"}
    for place, odd in enumerate(({**said, "correlation_id": "nosuch"}, {"decision": "approve"})):
        assert (await send(hall, odd, message=f"ignored_{place}"))[1] == {
            "outcome": "ignored", "checkpoint_id": None, "status": None,
        }  # fmt: skip
    assert (await send(hall, said, way="away"))[1]["outcome"] == "ignored"
    status, text = await send(hall, {**said, "decision": "perhaps"})
    assert (status, text["code"]) == (422, "answer_invalid")
    assert (await send(hall, said, way="bare"))[0] == 403
    assert (await send(hall, "text"))[0] == 422
    assert (await hall.ask("ada", "GET", f"/v1/holds/{hold}"))["status"] == "pending"
    assert (await send(hall, said))[1][
        "outcome"
    ] == "resolved"  # what was refused can be mended and sent again


@pytest.mark.covers("SERVER-IN-02")
async def test_trusted_sender_names_who_decided_and_others_do_not(hall: Hall) -> None:
    for way, by in (("queue", "user:dana@acme"), ("erp", "service:erp")):
        hold = await hall.asks()
        said = {"checkpoint_id": hold, "resolution": "approve", "completed_by": "user:dana@acme"}
        assert (await send(hall, said, way=way))[0] == 200
        assert (await hall.ask("ada", "GET", f"/v1/holds/{hold}"))["resolved_by"] == by
    odd = {"checkpoint_id": hold, "resolution": "approve", "completed_by": "system:expiry"}
    assert (await send(hall, odd, way="queue", message="msg_9"))[0] == 422


@pytest.mark.covers("RC-8")
async def test_of_a_completion_and_a_decision_at_once_the_first_wins_and_the_other_ends_cleanly(
    hall: Hall,
) -> None:
    outcomes: set[tuple[int, str]] = set()
    for turn in range(12):
        hold = await hall.asks()
        said = {"correlation_id": hold, "decision": "approve"}
        resolve = hall.send("dana", "POST", f"/v1/holds/{hold}/resolve", json={"decision": "reject"})
        completed = send(hall, said, message=f"race_{turn}")
        both = (completed, resolve) if turn % 2 else (resolve, completed)
        found = await asyncio.gather(*both)
        (status, text), person = found if turn % 2 else found[::-1]  # type: ignore[misc]
        row = await hall.ask("ada", "GET", f"/v1/holds/{hold}")
        assert status == 200
        assert (person.status_code, text["outcome"]) in [(200, "already_decided"), (409, "resolved")]
        assert row["resolution"]["decision"] == ("reject" if person.status_code == 200 else "approve")
        audit = await hall.ask("ada", "GET", "/v1/audit", params={"checkpoint": hold, "action": "resolved"})
        assert len(audit["items"]) == 1
        outcomes.add((person.status_code, text["outcome"]))
    assert outcomes


@pytest.mark.covers("QU-4", "QB-3")
async def test_completion_event_of_a_queue_is_read_with_its_result(hall: Hall) -> None:
    hold = await hall.asks()
    said = {
        "message_id": "m-1", "correlation_id": hold, "scope": "support", "queue": "reviews",
        "completed_by": "user:dana@acme", "result": {"decision": "reject", "comment": "too much"},
    }  # fmt: skip
    assert (await send(hall, said, way="queue"))[1]["outcome"] == "resolved"
    row = await hall.ask("ada", "GET", f"/v1/holds/{hold}")
    assert (row["resolved_by"], row["resolution"]["decision"]) == ("user:dana@acme", "reject")
    assert row["resolution"]["comment"] == "too much"
