"""Holds over HTTP: found, decided once, handed on, talked about; by whoever may."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.types.cursor import encode_cursor
from tests.api.people import Hall, hall_of
from tests.services import postgres

pytestmark = pytest.mark.anyio
SCHEMA = "server_holds"


def at(**later: float) -> str:
    return (datetime.now(UTC) + timedelta(**later)).isoformat()


@pytest.fixture(params=["sqlite", "pg"])
async def hall(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Hall]:
    address = f"sqlite:{tmp_path / 'h.db'}"
    if request.param == "pg":
        address = postgres.with_setting(postgres.database(), schema=SCHEMA)
        await postgres.empty(SCHEMA)
    async with Holdfast(address) as hf, hall_of(hf) as found:
        yield found


BODIES: list[dict[str, Any]] = [
    {"decision": "approve", "comment": " Within limits. ", "response_data": {"amount_approved": 500}},
    {"resolution": "approve", "comment": "Within limits.", "response_data": {"amount_approved": 500}},
    {"resolution": {"decision": "approve", "comment": "Within limits.",
                    "response_data": {"amount_approved": 500}}},
]  # fmt: skip


@pytest.mark.covers("SERVER-API-08", "RS-1", "RS-2")
@pytest.mark.parametrize("body", BODIES, ids=["decision", "resolution", "object"])
async def test_hold_is_shown_decided_and_its_run_goes_on(hall: Hall, body: dict[str, Any]) -> None:
    hold = await hall.asks()
    seen = await hall.send("dana", "GET", f"/v1/holds/{hold}")
    shown = seen.json()
    assert (shown["status"], shown["prompt"], shown["title"]) == ("pending", "Pay 250?", "Pay 250?")
    assert seen.headers["etag"].removeprefix("W/") == f'"{shown["version"]}"'
    headers = {"If-Match": seen.headers["etag"], "Idempotency-Key": "k-1"}
    done = await hall.ask("dana", "POST", f"/v1/holds/{hold}/resolve", json=body, headers=headers)
    assert (done["id"], done["status"], done["resolved_by"]) == (hold, "resolved", "user:dana@acme")
    said = done["resolution"]
    assert (said["decision"], said["comment"], said["response_data"]) == (
        "approve", "Within limits.", {"amount_approved": 500},
    )  # fmt: skip
    assert done["resolved_at"].endswith("Z") or "+00:00" in done["resolved_at"]
    assert (await hall.goes_on(hold)).completed


@pytest.mark.covers("RS-5", "RS-6", "RS-7", "RS-8", "SERVER-API-15")
async def test_decision_stands_whatever_comes_after_it(hall: Hall) -> None:
    hold = await hall.asks()
    path, yes = f"/v1/holds/{hold}/resolve", {"decision": "approve"}
    stale = await hall.send("dana", "POST", path, json=yes, headers={"If-Match": '"99"'})
    assert (stale.status_code, stale.json()["code"]) == (412, "version_stale")
    other = await hall.send("dana", "POST", path, json={**yes, "request_hash": "sha256:00"})
    assert (other.status_code, other.json()["code"]) == (409, "content_changed")
    odd = await hall.send("dana", "POST", path, json={"decision": "maybe", "comment": "hm"})
    assert (odd.status_code, odd.json()["type"]) == (422, "/errors/invalid-response")
    assert "approve" in odd.text
    assert (await hall.ask("dana", "GET", f"/v1/holds/{hold}/draft"))["comment"] == "hm"
    key = {"Idempotency-Key": "once"}
    first = await hall.ask("dana", "POST", path, json=yes, headers=key)
    again = await hall.ask("dana", "POST", path, json=yes, headers=key)
    assert (first["version"], again["version"], again["idempotent_replay"]) == (
        first["version"], first["version"], True,
    )  # fmt: skip
    reused = await hall.send("dana", "POST", path, json={"decision": "reject"}, headers=key)
    assert (reused.status_code, reused.json()["code"]) == (422, "idempotency_key_reused")
    late = await hall.send("clerk", "POST", path, json={"decision": "reject"})
    reply = late.json()
    assert (late.status_code, reply["checkpoint_status"], reply["decision"]) == (409, "resolved", "approve")
    assert (reply["status"], reply["resolved_by"]) == (409, "user:dana@acme")
    assert (reply["resolved_at"], reply["your_draft_saved"]) == (first["resolved_at"], False)
    assert (reply["type"], reply["title"]) == ("/errors/already-resolved", "Already resolved")


@pytest.mark.covers("RS-8", "SERVER-AUTH-04")
async def test_nobody_decides_what_is_not_theirs(hall: Hall) -> None:
    hold = await hall.asks()
    path = f"/v1/holds/{hold}/resolve"
    for who, status in (("sam", 403), ("vera", 403), ("eve", 404)):
        answer = await hall.send(who, "POST", path, json={"decision": "approve"})
        assert answer.status_code == status, (who, answer.text)
    assert (await hall.send("eve", "GET", f"/v1/holds/{hold}")).status_code == 404
    for odd in ("nosuch", "%00", "../x", hold[:-1]):
        assert (await hall.send("ada", "GET", f"/v1/holds/{odd}")).status_code == 404, odd
    assert (await hall.ask("ada", "GET", f"/v1/holds/{hold}"))["status"] == "pending"
    refusals = (await hall.ask("ada", "GET", "/v1/audit", params={"action": "refused"}))["items"]
    assert "user:sam@acme" in [each["actor"] for each in refusals]


@pytest.mark.covers("RC-1", "SERVER-API-08")
async def test_one_of_many_who_decide_at_once_wins(hall: Hall) -> None:
    hold = await hall.asks(assignee="group:finance")
    tries = [(who, choice) for who in ("sam", "clerk", "ada") for choice in ("approve", "reject")]
    answers = await asyncio.gather(
        *(hall.send(who, "POST", f"/v1/holds/{hold}/resolve", json={"decision": c}) for who, c in tries)
    )
    won = [answer.json() for answer in answers if answer.status_code == 200]
    lost = [answer.json() for answer in answers if answer.status_code == 409]
    assert (len(won), len(lost)) == (1, 5)
    assert {each["resolved_by"] for each in lost} == {won[0]["resolved_by"]}


WRONG = [
    {"view": "hers"}, {"cursor": "!!"}, {"cursor": encode_cursor("main", [1, 2])},
    {"cursor": encode_cursor("main", [1e99, 1, 1, 1])},
    {"q": "priority:huge"}, {"created_from": "yesterday"}, {"created_from": "2026-01-01T00:00:00"},
    {"status": "x"},
]  # fmt: skip


@pytest.mark.covers("LI-1", "LI-2", "LI-3", "SERVER-API-14")
async def test_lists_have_what_one_may_see_in_pages_that_hang_together(hall: Hall) -> None:
    mine = [await hall.asks(priority=each) for each in ("low", "critical", "normal")]
    theirs = await hall.asks(assignee="group:finance", tags=["q3"], prompt="Close the quarter?")
    seen: list[str] = []
    more: dict[str, Any] = {"view": "mine", "limit": 2}
    while True:
        page = await hall.ask("dana", "GET", "/v1/holds", params=more)
        seen += [each["id"] for each in page["items"]]
        if page["next"] is None:
            break
        more = {**more, "cursor": page["next"]}
    assert seen == [mine[1], mine[2], mine[0]]
    assert await hall.ask("dana", "GET", "/v1/holds/count", params={"view": "mine"}) == {"count": 3}

    async def found(who: str, **params: Any) -> set[str]:
        return {each["id"] for each in (await hall.ask(who, "GET", "/v1/holds", params=params))["items"]}

    everything = {*mine, theirs}
    assert await found("ada") == everything
    assert await found("dana") == {*mine}
    assert await found("sam", view="groups") == {theirs}
    assert await found("ada", group="finance") == {theirs}
    assert await found("ada", tag="q3", priority="normal") == {theirs}
    assert await found("ada", tag="q3", priority="low") == set()
    assert await found("ada", priority=["low", "critical"]) == {mine[0], mine[1]}
    assert await found("ada", text="quarter") == {theirs}
    assert await found("ada", q="priority>=high") == {mine[1]}
    assert await found("dana", assignee="me", type="approval") == {*mine}
    assert await found("ada", flow="refund") == everything
    assert await found("ada", created_from=at(hours=1)) == set()
    assert await found("ada", created_to=at(hours=1), status="pending") == everything
    assert await found("eve") == set()
    for wrong in WRONG:
        assert (await hall.send("ada", "GET", "/v1/holds", params=wrong)).status_code == 422, wrong


@pytest.mark.covers("SERVER-API-08", "RA-1", "CA-1", "AS-12")
async def test_hold_is_claimed_handed_on_extended_and_withdrawn(hall: Hall) -> None:
    hold = await hall.asks(assignee="group:finance", timeout="1h")
    at_hold = f"/v1/holds/{hold}"
    assert (await hall.ask("sam", "POST", f"{at_hold}/claim", json={"seconds": 60}))["claimed_by"]
    assert (await hall.ask("sam", "POST", f"{at_hold}/release"))["claimed_by"] is None
    later = await hall.ask("ada", "POST", f"{at_hold}/extend", json={"expires_at": at(hours=5)})
    assert later["expires_at"] > later["created_at"]
    moved = await hall.ask("ada", "POST", f"{at_hold}/reassign", json={"assignee": "user:dana@acme"})
    assert (moved["assignee_type"], moved["assignee_resolved"]["value"]) == ("user", "dana@acme")
    assert moved["assignment_epoch"] == 2
    gone = await hall.send("sam", "POST", f"{at_hold}/resolve", json={"decision": "approve"})
    assert (gone.status_code, gone.json()["code"]) in [(409, "reassigned"), (403, "not_assigned")]
    nobody = await hall.send("dana", "POST", f"{at_hold}/reassign", json={"assignee": " "})
    assert nobody.status_code in (403, 422)
    ended = await hall.ask("ada", "POST", f"{at_hold}/cancel", json={"reason": "not needed"})
    assert (ended["status"], ended["cancelled_by"], ended["cancel_reason"]) == (
        "cancelled", "user:ada@acme", "not needed",
    )  # fmt: skip
    assert (await hall.send("ada", "POST", f"{at_hold}/claim", json={})).status_code == 409


@pytest.mark.covers("SERVER-API-08", "RS-10")
async def test_votes_are_counted_and_a_placed_decision_is_taken_back(hall: Hall) -> None:
    approval = {"mode": "quorum", "need": 2, "of": ["user:dana@acme", "user:sam@acme"]}
    hold = await hall.asks(approval=approval)
    one = await hall.ask("dana", "POST", f"/v1/holds/{hold}/vote", json={"decision": "approve"})
    assert one["status"] == "pending"
    twice = await hall.send("dana", "POST", f"/v1/holds/{hold}/vote", json={"decision": "reject"})
    assert (twice.status_code, twice.json()["code"]) == (409, "already_voted")
    two = await hall.ask("sam", "POST", f"/v1/holds/{hold}/vote", json={"decision": "approve"})
    assert two["status"] == "resolved"

    other = f"/v1/holds/{await hall.asks()}"
    placed = await hall.ask("dana", "POST", f"{other}/place", json={"decision": "approve", "seconds": 30})
    assert (placed["status"], placed["placed_by"]) == ("pending", "user:dana@acme")
    assert (await hall.ask("dana", "POST", f"{other}/undo"))["placed_by"] is None


@pytest.mark.covers("SERVER-API-08")
async def test_many_are_decided_at_once_after_a_preview(hall: Hall) -> None:
    holds = [await hall.asks() for _ in range(3)]
    theirs = await hall.asks(assignee="user:sam@acme")
    body = {"holds": [*holds, theirs, "nosuch"], "decision": "approve"}
    shown = await hall.ask("dana", "POST", "/v1/holds/bulk", json=body)
    assert (shown["preview"], shown["done"], sum(shown["left_out"].values())) == (True, 3, 2)
    assert (await hall.ask("dana", "GET", f"/v1/holds/{holds[0]}"))["status"] == "pending"
    done = await hall.ask("dana", "POST", "/v1/holds/bulk", json={**body, "preview": False})
    assert [each["status"] for each in done["items"][:3]] == ["resolved"] * 3
    assert (await hall.ask("sam", "GET", f"/v1/holds/{theirs}"))["status"] == "pending"


@pytest.mark.covers("SERVER-API-08")
async def test_many_are_placed_at_once_and_undone_one_by_one(hall: Hall) -> None:
    holds = [await hall.asks() for _ in range(2)]
    body = {"holds": holds, "decision": "approve", "preview": False, "undo": True}
    done = await hall.ask("dana", "POST", "/v1/holds/bulk", json=body)
    assert [each["status"] for each in done["items"]] == ["pending"] * 2
    assert all(each["placed_until"] for each in done["items"])
    assert (await hall.ask("dana", "POST", f"/v1/holds/{holds[0]}/undo"))["placed_by"] is None
    assert (await hall.ask("dana", "GET", f"/v1/holds/{holds[1]}"))["placed_by"] == "user:dana@acme"


@pytest.mark.covers("SERVER-API-08", "HI-1")
async def test_people_talk_about_a_hold_and_keep_their_own_notes(hall: Hall) -> None:
    hold = f"/v1/holds/{await hall.asks()}"
    said = await hall.ask("dana", "POST", f"{hold}/comments", status=201, json={"text": "Let me see."})
    assert (said["by"], said["text"]) == ("user:dana@acme", "Let me see.")
    asked = await hall.ask("dana", "POST", f"{hold}/ask-back", json={"text": "Why?", "to": "user:sam@acme"})
    assert asked["paused_at"] is not None
    assert len((await hall.ask("sam", "GET", "/v1/holds", params={"view": "asked"}))["items"]) == 1
    assert (await hall.ask("sam", "POST", f"{hold}/reply", json={"text": "Because."}))["paused_at"] is None
    notes = (await hall.ask("dana", "GET", f"{hold}/comments"))["items"]
    assert [each["kind"] for each in notes] == ["comment", "question", "reply"]
    assert (notes[1]["open"], notes[2]["question"]) == (False, notes[1]["id"])
    await hall.ask("dana", "PUT", f"{hold}/draft", status=204, json={"comment": "so far"})
    assert (await hall.ask("dana", "GET", f"{hold}/draft"))["comment"] == "so far"
    await hall.ask("dana", "DELETE", f"{hold}/draft", status=204)
    # Not a 404, which a browser would report as an error of the page.
    assert set((await hall.ask("dana", "GET", f"{hold}/draft")).values()) == {None}
    await hall.ask("dana", "PUT", f"{hold}/watch", status=204)
    until = at(hours=1)
    await hall.ask("dana", "PUT", f"{hold}/snooze", status=204, json={"until": until})
    for view, told in (("snoozed", until), ("all", None)):
        (listed,) = (await hall.ask("dana", "GET", "/v1/holds", params={"view": view}))["items"]
        found = listed.get("snoozed_until")
        assert (found and datetime.fromisoformat(found)) == (told and datetime.fromisoformat(told)), view
    await hall.ask("dana", "PUT", f"{hold}/seen", status=204)
    counts = {view: (await hall.ask("dana", "GET", "/v1/holds/count", params={"view": view}))["count"]
              for view in ("mine", "watching", "snoozed")}  # fmt: skip
    assert counts == {"mine": 0, "watching": 1, "snoozed": 1}
    assert (await hall.send("dana", "PUT", f"{hold}/snooze", json={"until": at(hours=-1)})).status_code == 422
    await hall.ask("dana", "DELETE", f"{hold}/snooze", status=204)
    history = (await hall.ask("dana", "GET", f"{hold}/history"))["items"]
    assert [each["action"] for each in history][:2] == ["created", "commented"]
    assert [each["seq"] for each in history] == sorted(each["seq"] for each in history)
    figures = await hall.ask("ada", "GET", "/v1/holds/metrics")
    assert (figures["holds"], figures["time_to_view"]["count"]) == (1, 1)


@pytest.mark.covers("WB-65")
async def test_what_each_option_would_lead_to(hall: Hall) -> None:
    hold = await hall.asks()
    path = f"/v1/holds/{hold}/consequences"
    found = await hall.ask("dana", "GET", path)
    assert (found["hold"], [each["option"] for each in found["options"]]) == (hold, ["approve", "reject"])
    assert [entry["kind"] for entry in found["options"][0]["entries"]] == ["end"]
    only = await hall.ask("dana", "POST", path, json={"decision": "reject"})
    assert [each["option"] for each in only["options"]] == ["reject"]
    # The hold is as open as before.
    assert (await hall.ask("dana", "GET", f"/v1/holds/{hold}"))["status"] == "pending"
    # Only for people who may see the hold, and only while it is open.
    await hall.ask("eve", "GET", path, status=404)
    await hall.ask("dana", "POST", path, json={"decision": "perhaps"}, status=422)
    await hall.ask("dana", "POST", path, json={"answer": "reject"}, status=422)
    await hall.ask("dana", "POST", f"/v1/holds/{hold}/resolve", json={"decision": "approve"})
    refused = await hall.ask("dana", "GET", path, status=409)
    assert refused["code"] == "hold_decided"
