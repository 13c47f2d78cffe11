from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from holdfast import Flow
from holdfast.queues.inbound import InboundQueue
from holdfast.queues.review_request import request_id
from holdfast.testing.conformance.transports import BINDING
from holdfast.types.ids import derived_id, new_id
from holdfast.types.terms import Actor
from tests.api.conftest import Server
from tests.api.sign_in import bearer, token

pytestmark = pytest.mark.anyio

TASKS = "/v1/queues/support/tasks/messages"


async def published(server: Server, **given: Any) -> Any:
    return await server.json("POST", TASKS, 201, json={"payload": {"order": 7}, **given})


async def claimed(server: Server, **given: Any) -> list[Any]:
    return (await server.json("POST", f"{TASKS}/claim", json=given))["items"]


async def sent(
    server: Server, method: str, path: str, *rights: str, tenant: str = "default", **more: Any
) -> httpx2.Response:
    """As the owner of a token with these rights."""
    made = await token(server, tenant=tenant, rights=rights)
    return await server.client.request(method, path, headers=bearer(made), **more)


@pytest.mark.covers("QU-10", "QU-7", "PLATFORM-QUEUE-03")
async def test_worker_claims_extends_and_completes_a_message(shop: Server) -> None:
    made = await published(shop, id="order-7", priority="high", correlation_id="A7")
    assert (made["state"], made["payload"], made["attempts"]) == ("ready", {"order": 7}, 0)
    (mine,) = await claimed(shop, limit=5, ttl="1m")
    assert (mine["id"], mine["state"]) == ("order-7", "claimed")
    token = mine["claim_token"]
    one = f"{TASKS}/order-7"
    longer = await shop.json("POST", f"{one}/extend", json={"token": token, "ttl": "10m"})
    assert longer["claim_until"] > mine["claim_until"]
    done = await shop.json("POST", f"{one}/complete", json={"token": token, "result": {"ok": True}})
    assert (done["state"], done["result"], done["claim_token"]) == ("completed", {"ok": True}, None)
    shown = await shop.json("GET", one)
    assert shown["completed_by"] == done["completed_by"] is not None
    lost = await shop.json("POST", f"{one}/release", 409, json={"token": token})
    assert lost["code"] == "claim_lost"


@pytest.mark.covers("QU-7", "QU-10")
async def test_worker_without_the_token_cannot_end_the_claim_of_another(shop: Server) -> None:
    await published(shop, id="m1")
    (mine,) = await claimed(shop)
    one = f"{TASKS}/m1"
    for verb in ("extend", "complete", "release", "dead"):
        for guess in ("1", "2", str(int(mine["claim_token"]) ^ 1)):
            no = await sent(shop, "POST", f"{one}/{verb}", "queues:work", json={"token": guess})
            assert (no.status_code, no.json()["code"]) == (409, "claim_lost"), (verb, guess)
    no = await sent(shop, "POST", f"{one}/dead", "queues:work", json={})
    assert (no.status_code, "give the token" in no.json()["hint"]) == (409, True)
    assert f"is claimed by {mine['claimed_by']}, and no token was given" in no.json()["detail"]
    for wrong in (1, "", "x", "9" * 20, "-1"):
        await shop.json("POST", f"{one}/release", 422, json={"token": wrong})
    assert (await shop.json("GET", one))["claim_until"] == mine["claim_until"]
    listed = await sent(shop, "GET", one, "queues:read")
    assert listed.json()["claim_token"] is None


@pytest.mark.covers("QU-5")
async def test_message_is_published_once_for_its_id_or_key(shop: Server) -> None:
    first = await published(shop, id="m1")
    assert await published(shop, id="m1") == first
    other = await shop.json("POST", TASKS, 409, json={"payload": 8, "id": "m1"})
    assert other["code"] == "message_differs"
    key = {"Idempotency-Key": "once"}
    by_key = [(await shop.json("POST", TASKS, 201, json={"payload": 1}, headers=key))["id"] for _ in range(2)]
    assert by_key[0] == by_key[1]
    assert len((await shop.json("GET", TASKS))["items"]) == 2


@pytest.mark.covers("QU-8", "QU-10", "PLATFORM-QUEUE-03")
async def test_message_is_released_given_up_requeued_and_withdrawn(shop: Server) -> None:
    await published(shop, id="m1")
    one = f"{TASKS}/m1"
    mine = await shop.json("POST", f"{one}/claim", json={})
    taken = await shop.json("POST", f"{one}/claim", 409, json={})
    assert taken["code"] == "claim_lost"
    back = await shop.json(
        "POST", f"{one}/release", json={"token": mine["claim_token"], "delay": "0s", "error": "busy"}
    )
    assert (back["state"], back["attempts"], back["error"]) == ("ready", 1, "busy")
    gone = await shop.json("POST", f"{one}/dead", json={"error": "unreadable"})
    assert gone["state"] == "dead"
    assert [each["dead"] for each in (await shop.json("GET", "/v1/queues"))["items"]] == [1]
    again = await shop.json("POST", f"{one}/requeue")
    assert (again["state"], again["attempts"]) == ("ready", 0)
    refused = await shop.json("POST", f"{one}/requeue", 409)
    assert refused["code"] == "message_ended"
    token = (await shop.json("POST", f"{one}/claim", json={}))["claim_token"]
    await shop.json("DELETE", one, 204)
    lost = await shop.json("POST", f"{one}/complete", 409, json={"token": token, "result": 1})
    assert (lost["code"], "it is withdrawn" in lost["detail"]) == ("claim_lost", True)
    assert "Claim it again" not in lost["hint"]
    ended = await shop.json("POST", f"{one}/claim", 409, json={})
    assert ended["code"] == "message_ended"
    assert (await shop.json("GET", "/v1/queues"))["items"] == []


@pytest.mark.covers("QU-10")
async def test_claim_waits_for_a_message_that_is_not_there_yet(shop: Server) -> None:
    waiting = asyncio.create_task(claimed(shop, wait=20))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    await published(shop, id="late")
    assert [each["id"] for each in await waiting] == ["late"]
    assert await claimed(shop) == []


@pytest.mark.covers("QU-10")
async def test_messages_are_listed_by_state_in_pages(shop: Server) -> None:
    for i in range(5):
        await published(shop, id=f"m{i}", type="task" if i else "note")
    await shop.json("DELETE", f"{TASKS}/m3", 204)
    first = await shop.json("GET", TASKS, params={"limit": 2, "state": "ready"})
    assert [each["id"] for each in first["items"]] == ["m4", "m2"]
    rest = await shop.json("GET", TASKS, params={"limit": 9, "state": "ready", "cursor": first["next"]})
    assert [each["id"] for each in rest["items"]] == ["m1", "m0"]
    assert rest["next"] is None
    notes = await shop.json("GET", TASKS, params={"type": "note"})
    assert [each["id"] for each in notes["items"]] == ["m0"]


@pytest.mark.covers("QU-2", "QU-10")
async def test_wrong_requests_are_refused_and_change_nothing(shop: Server) -> None:
    for path in ("/v1/queues/Support/tasks/messages", "/v1/queues/support/-x/messages"):
        await shop.json("POST", path, 422, json={"payload": 1})
    for body in (
        {"payload": 1, "priority": "urgent"},
        {"payload": 1, "id": "no spaces"},
        {"payload": 1, "delay": "soon"},
        {"payload": 1, "type": "hitl_request"},
        {},
    ):
        await shop.json("POST", TASKS, 422, json=body)
    await shop.json("POST", TASKS, 413, json={"payload": "x" * 300_000})
    await shop.json("POST", f"{TASKS}/claim", 422, json={"limit": 101})
    await shop.json("POST", f"{TASKS}/claim", 422, json={"ttl": "2w"})
    for verb in ("claim", "requeue"):
        body = {"json": {}} if verb == "claim" else {}
        await shop.json("POST", f"{TASKS}/unknown/{verb}", 404, **body)
    await published(shop, id="m1")
    await shop.json("GET", "/v1/queues/support/other/messages/m1", 404)
    assert len((await shop.json("GET", TASKS))["items"]) == 1


def review() -> Flow:
    flow = Flow("review", effect="pure")
    flow.hold("ask", prompt="Pay 250?", options=["yes", "no"], assignee="user:dana", queue="support/reviews")
    return flow


@pytest.mark.covers("QU-9", "PLATFORM-QUEUE-03")
async def test_review_is_claimed_and_completed_over_http_under_the_rights_of_its_hold(shop: Server) -> None:
    (hold,) = (await review().run({}, on=shop.hf)).holds
    reviews = "/v1/queues/support/reviews/messages"
    work = ("queues:work", "holds:write")
    dana, eve = [await token(shop, f"user:{name}", rights=work) for name in ("dana", "eve")]

    async def post(path: str, who: str, **body: Any) -> httpx2.Response:
        return await shop.client.post(f"{reviews}/{path}", headers=bearer(who), json=body)

    (own,) = (await post("claim", dana, wait=20)).json()["items"]
    assert (own["hold"], own["payload"]["prompt"]) == (hold.id, "Pay 250?")
    back = {"token": own["claim_token"], "delay": "0s"}
    await post(f"{own['id']}/release", dana, **back)
    # Assigned to another person: it cannot be taken out of the queue.
    assert (await post("claim", eve)).json()["items"] == []
    for verb in ("claim", "dead"):
        no = await post(f"{own['id']}/{verb}", eve)
        assert (no.status_code, no.json()["code"]) == (403, "not_assigned"), verb
    made = bearer(await token(shop, "user:eve", rights=("queues:write", "holds:write")))
    no = await shop.client.delete(f"{reviews}/{own['id']}", headers=made)
    assert (no.status_code, no.json()["code"]) == (403, "not_assigned")
    (own,) = (await post("claim", dana)).json()["items"]
    answer = {"token": own["claim_token"], "result": {"decision": "yes"}}
    no = await post(f"{own['id']}/complete", eve, **answer)
    assert (no.status_code, no.json()["code"]) == (403, "not_assigned")
    done = await post(f"{own['id']}/complete", dana, **answer)
    assert (done.status_code, done.json()["state"]) == (200, "completed")
    shown = await shop.json("GET", f"/v1/holds/{hold.id}")
    assert (shown["status"], shown["resolved_by"]) == ("resolved", "user:dana")


@pytest.mark.covers("QU-9", "QU-24")
@pytest.mark.parametrize("payload", [{"order": 7}, [1]], ids=["object", "list"])
@pytest.mark.parametrize("ends", [True, False], ids=["completed", "open"])
async def test_message_with_the_id_of_a_review_decides_and_hides_nothing(
    shop: Server, payload: Any, ends: bool
) -> None:
    """The ids of reviews can be computed from the run's: a caller may be first to use one."""
    run = new_id()
    hold = derived_id(run, "", "ask", 1, "node:", 0)
    bait = f"/v1/queues/support/bait/messages/{request_id(hold)}"
    rights = ("queues:write", "queues:work", "queues:read")
    body = {"payload": payload, "id": request_id(hold)}
    assert (await sent(shop, "POST", bait.rpartition("/")[0], *rights, json=body)).status_code == 201
    if ends:
        made = (await sent(shop, "POST", f"{bait}/claim", *rights, json={})).json()
        done = {"token": made["claim_token"], "result": {"decision": "yes"}}
        assert (await sent(shop, "POST", f"{bait}/complete", *rights, json=done)).status_code == 200
    (asked,) = (await review().run({}, on=shop.hf, run_id=run)).holds
    assert asked.id == hold
    queues = await shop.hf.queues()
    for _ in range(2):
        await queues.work()
        await queues.bridge.reconcile()
    assert (await shop.json("GET", f"/v1/holds/{hold}"))["status"] == "pending"
    (own,) = await queues.list("support", "reviews")
    assert (own.hold, own.state) == (hold, "ready")
    seen = (await sent(shop, "GET", bait, *rights)).json()
    assert (seen["payload"], seen["hold"]) == (payload, None)


@pytest.mark.covers("QU-10")
async def test_content_of_a_review_is_shown_to_those_who_may_see_its_hold(shop: Server) -> None:
    await review().run({}, on=shop.hf)
    queues = await shop.hf.queues()
    (row,) = await queues.claim(Actor(id="user:dana"), "support", "reviews", wait=20)
    await queues.publish("support", "reviews", {"order": 7}, id="plain")
    reviews = "/v1/queues/support/reviews/messages"
    for subject, rights, visible in (
        ("user:eve", ("queues:read",), False),
        ("user:eve", ("queues:work", "queues:write", "holds:write"), False),
        ("user:dana", ("queues:read",), True),
        ("user:eve", ("queues:read", "holds:view"), True),
    ):
        made = bearer(await token(shop, subject, rights=rights))
        listed = (await shop.client.get(reviews, headers=made)).json()["items"]
        one = (await shop.client.get(f"{reviews}/{row.id}", headers=made)).json()
        assert [each["payload"] is not None for each in listed] == [True, visible], (subject, rights)
        assert (one["payload"] is not None) is visible


@pytest.mark.covers("QU-10", "QU-21")
async def test_what_a_broker_brought_in_vain_is_listed_with_the_reason(shop: Server) -> None:
    queues = await shop.hf.queues()
    event = b'{"type": "x\\u0000", "data": {"correlation_id": "h", "result": {"decision": "yes"}}}'
    await InboundQueue(queues).record_rejected(BINDING, event, "no such hold\0")
    reviews = "/v1/queues/support/reviews/messages"
    found = await sent(shop, "GET", f"{reviews}?state=dead", "queues:read")
    (shown,) = found.json()["items"]
    assert (shown["type"], shown["error"], shown["correlation_id"]) == ("rejected", "no such hold ", "h")
    assert "decision" not in found.text
    no = await sent(shop, "POST", f"{reviews}/{shown['id']}/requeue", "queues:write")
    assert (no.status_code, "send it again" in no.json()["hint"]) == (422, True)
    assert (await sent(shop, "DELETE", f"{reviews}/{shown['id']}", "queues:write")).status_code == 204
    await shop.json("POST", reviews, 422, json={"payload": 1, "type": "rejected"})


@pytest.mark.covers("QU-10")
async def test_right_decides_what_a_caller_may_do_and_other_tenants_find_nothing(shop: Server) -> None:
    await published(shop, id="m1")
    one = f"{TASKS}/m1"
    body = {"json": {"payload": 1}}
    requests: list[tuple[str, str, dict[str, Any], str]] = [
        ("GET", "/v1/queues", {}, "queues:read"),
        ("GET", TASKS, {}, "queues:read"),
        ("GET", one, {}, "queues:read"),
        ("POST", f"{TASKS}/claim", {"json": {}}, "queues:work"),
        ("POST", TASKS, body, "queues:write"),
        ("DELETE", one, {}, "queues:write"),
    ]
    for method, path, more, right in requests:
        for given in ("queues:read", "queues:work", "queues:write"):
            answer = await sent(shop, method, path, given, **more)
            allowed = given == right or right == "queues:read"
            assert (answer.status_code != 403) is allowed, (method, path, given)
    rights = ("queues:work", "queues:write")
    for method, path, more in (("GET", one, {}), ("POST", f"{one}/claim", {"json": {}})):
        answer = await sent(shop, method, path, *rights, tenant="acme", **more)
        assert answer.status_code == 404
    listed = await sent(shop, "GET", TASKS, *rights, tenant="acme")
    assert listed.json()["items"] == []


@pytest.mark.covers("USERS-EVENT-SEND", "USERS-BAD-EVENT")
async def test_an_event_is_sent_kept_and_refused_over_http(shop: Server) -> None:
    first = await shop.json("POST", "/v1/events", json={"name": "paid", "key": "A7", "id": "e1"}, status=201)
    assert (first["id"], first["delivered"]) == ("e1", False)
    wrong = {"name": "paid", "key": "A7", "id": "e1", "data": 2}
    await shop.json("POST", "/v1/events", json=wrong, status=409)
    await shop.json("POST", "/v1/events", json={"name": "paid", "run": "0" * 36}, status=404)
    await shop.json("POST", "/v1/events", json={"name": ""}, status=422)
    await shop.json("POST", "/v1/events", json={"name": "paid", "keep": "9000d"}, status=422)
