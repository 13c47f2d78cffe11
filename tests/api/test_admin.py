from __future__ import annotations

import pytest

from holdfast import Worker
from holdfast.store.rows import ClaimRequest
from tests.api.conftest import Server
from tests.api.flows import refund

pytestmark = pytest.mark.anyio


@pytest.mark.covers("SERVER-API-11")
async def test_a_caller_who_looks_after_it_sees_workers_figures_and_the_store(shop: Server) -> None:
    workers = (await shop.json("GET", "/v1/workers"))["items"]
    assert [(each["alive"], each["flows"]) for each in workers] == [(True, ["both", "refund"])]
    body = {"flow": "refund", "input": {"order": "A", "amount": 1}, "wait": 60}
    await shop.json("POST", "/v1/runs", 201, json=body)
    figures = await shop.json("GET", "/v1/figures")
    assert figures["pending_holds"] == 1
    status = await shop.json("GET", "/v1/admin/status")
    assert (status["problems"], status["workers"], status["missing_blobs"]) == ([], 1, 0)
    assert status["schema"] > 0


@pytest.mark.covers("WB-44-leases")
async def test_leases_name_the_run_its_process_and_until_when_it_has_it(server: Server) -> None:
    assert (await server.json("GET", "/v1/leases"))["items"] == []
    service = await server.hf.service()
    runs: list[str] = []
    for number, worker in enumerate(("two", "two", "one")):
        row, _ = await service.create(refund().program(), {"order": "o", "amount": number})
        # The last one has expired at once. There is no worker, which would take or free them.
        ttl = 60_000_000 if worker == "two" else 0
        assert await service.store.claim(ClaimRequest(worker=worker, ttl=ttl, run=row.id))
        runs.append(row.id)
    found = (await server.json("GET", "/v1/leases"))["items"]
    assert [each["run"] for each in found] == runs[::-1]
    assert [(each["worker"], each["expired"], each["term"]) for each in found] == [
        ("one", True, 1), ("two", False, 1), ("two", False, 1),
    ]  # fmt: skip
    assert all(
        (each["flow"], each["tenant"], bool(each["until"])) == ("refund", "default", True) for each in found
    )
    first = await server.json("GET", "/v1/leases?worker=two&limit=1")
    rest = await server.json("GET", f"/v1/leases?worker=two&limit=1&cursor={first['next']}")
    assert [each["run"] for each in (*first["items"], *rest["items"])] == [runs[1], runs[0]]
    assert rest["next"] is None
    await server.json("GET", "/v1/leases?cursor=nonsense", 422)


@pytest.mark.covers("SERVER-API-11")
async def test_limit_is_set_and_cleared(shop: Server) -> None:
    limit = await shop.json("PUT", "/v1/limits/flow:refund", json={"concurrency": 2, "rate": "100/min"})
    assert (limit["concurrency"], limit["rate"], limit["fixed"]) == (2, "100/min", True)
    assert [each["name"] for each in (await shop.json("GET", "/v1/limits"))["items"]] == ["flow:refund"]
    await shop.json("DELETE", "/v1/limits/flow:refund", 204)
    await shop.json("DELETE", "/v1/limits/flow:refund", 404)
    for name, body in (
        ("refund", {"concurrency": 1}),
        ("flow:refund", {}),
        ("flow:refund", {"rate": "fast"}),
    ):
        await shop.json("PUT", f"/v1/limits/{name}", 422, json=body)


@pytest.mark.covers("SERVER-API-11")
async def test_dead_letters_are_listed_and_a_living_run_is_none(shop: Server) -> None:
    assert (await shop.json("GET", "/v1/dead"))["items"] == []
    body = {"flow": "refund", "input": {"order": "A", "amount": 1}, "wait": 60}
    run = (await shop.json("POST", "/v1/runs", 201, json=body))["id"]
    assert (await shop.json("GET", f"/v1/dead/{run}"))["deaths"] == []
    for act in ("retry", "discard"):
        assert (await shop.json("POST", f"/v1/dead/{run}/{act}", 409))["code"] == "run_ended"
        await shop.json("POST", f"/v1/dead/nothing/{act}", 404)


async def given_up(server: Server, worker: str = "gone") -> str:
    """A run whose worker fell silent too often, of a flow that nobody here carries."""
    service = await server.hf.service()
    created = await service.create(refund().program(), {"order": "o", "amount": 1}, started_by="user:ada")
    assert await service.store.claim(ClaimRequest(worker=worker, ttl=0, run=created[0].id))
    (row,) = await service.store.reclaim(limit=1, max_recoveries=0)
    assert row.dead
    return str(row.id)


async def test_dead_run_that_nobody_serves_is_ended_unread_only_where_that_is_said(server: Server) -> None:
    run = await given_up(server)
    assert [each["id"] for each in (await server.json("GET", "/v1/dead"))["items"]] == [run]
    for body in ({"unread": "perhaps"}, {"reason": ""}, {"read": True}):
        await server.json("POST", f"/v1/dead/{run}/discard", 422, json=body)
    said = {"unread": True, "reason": "the flow is gone"}
    ended = await server.json("POST", f"/v1/dead/{run}/discard", json=said)
    assert ended["status"] == "cancelled"
    assert "the flow is gone" in ended["error"]
    assert (await server.json("GET", "/v1/dead"))["items"] == []


async def test_dead_run_waits_for_a_worker_that_serves_it_when_it_is_discarded(server: Server) -> None:
    run = await given_up(server)
    asked = await server.json("POST", f"/v1/dead/{run}/discard")
    assert asked["status"] != "cancelled"
    worker = Worker(refund(), on=server.hf)
    await worker.run_until_idle()
    await worker.close()
    assert (await server.json("GET", f"/v1/runs/{run}"))["status"] == "cancelled"


@pytest.mark.covers("WB-44-dead", "WB-64")
async def test_many_dead_letters_are_retried_or_discarded_after_a_preview(server: Server) -> None:
    first, second = [await given_up(server, name) for name in ("one", "two")]
    body = {"flow": "refund", "input": {"order": "A", "amount": 1}}
    living = (await server.json("POST", "/v1/runs", 201, json=body))["id"]
    both = {"runs": [first, second, living], "action": "retry"}
    preview = await server.json("POST", "/v1/runs/bulk", json=both)
    assert [(each["done"], each["dead"]) for each in preview["items"]] == [
        (True, True),
        (True, True),
        (False, False),
    ]
    assert preview["items"][0]["text"][0] == "What failed runs again, with all its attempts."
    refused = await server.json("POST", "/v1/runs/bulk", json={"runs": [first, living], "action": "cancel"})
    assert "discard cancels it" in refused["items"][0]["why"]
    assert len((await server.json("GET", "/v1/dead"))["items"]) == 2

    wanted = {"runs": [first, living], "action": "discard", "reason": "the flow is gone", "preview": False}
    discarded = await server.json("POST", "/v1/runs/bulk", json=wanted)
    assert [each["done"] for each in discarded["items"]] == [True, False]
    assert "not a dead letter" in discarded["items"][1]["why"]
    retried = await server.json("POST", "/v1/runs/bulk", json={**both, "runs": [second], "preview": False})
    assert (retried["done"], retried["items"][0]["text"]) == (1, [])
    assert (await server.json("GET", "/v1/dead"))["items"] == []
