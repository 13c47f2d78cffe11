from __future__ import annotations

import pytest

from tests.api.conftest import Server
from tests.api.flows import refund

pytestmark = pytest.mark.anyio

START = {"flow": "refund", "input": {"order": "A1", "amount": 7}, "wait": 60}


@pytest.mark.covers("SERVER-API-06", "R-8")
async def test_message_to_a_thread_answers_the_run_that_waits_in_it(shop: Server) -> None:
    run = await shop.json("POST", "/v1/threads/t1/runs", 201, json=START)
    assert (run["status"], run["thread"]) == ("pending_input", "t1")
    wrong = {**START, "content": "perhaps"}
    await shop.json("POST", "/v1/threads/t1/runs", 422, json=wrong)
    said = await shop.json("POST", "/v2/threads/t1/runs", 200, json={**START, "content": "approve"})
    assert said["id"] == run["id"]
    done = await shop.json("GET", f"/v1/runs/{run['id']}/result", params={"wait": 60})
    assert done["status"] == "completed"
    # Nobody waits any more: the next message begins a run of its own.
    second = await shop.json("POST", "/v1/threads/t1/runs", 201, json={**START, "content": "approve"})
    assert second["id"] != run["id"]
    apart = {"auto_resume_pending": "false"}
    third = await shop.json("POST", "/v1/threads/t1/runs", 201, json={**START, "content": "x"}, params=apart)
    several = await shop.json("POST", "/v1/threads/t1/runs", 409, json={**START, "content": "approve"})
    assert sorted(several["holds"]) == sorted(each["metadata"]["checkpoint_id"] for each in (second, third))
    named = {**START, "content": "reject", "request_id": third["metadata"]["checkpoint_id"]}
    assert (await shop.json("POST", "/v1/threads/t1/runs", 200, json=named))["id"] == third["id"]
    listed = await shop.json("GET", "/v1/threads/t1/runs")
    assert [each["id"] for each in listed["items"]] == [third["id"], second["id"], run["id"]]
    assert (await shop.json("GET", "/v1/threads/t2/runs"))["items"] == []


@pytest.mark.covers("SERVER-API-06", "R-6-http")
async def test_message_that_comes_twice_is_said_once(shop: Server) -> None:
    run = await shop.json("POST", "/v1/threads/t1/runs", 201, json=START)
    key, said = {"Idempotency-Key": "m1"}, {**START, "content": "approve"}
    for _ in range(2):
        reply = await shop.json("POST", "/v1/threads/t1/runs", 200, json=said, headers=key)
        assert reply["id"] == run["id"]
    await shop.json("GET", f"/v1/runs/{run['id']}/result", params={"wait": 60})
    again = await shop.json("POST", "/v1/threads/t1/runs", 200, json=said, headers=key)
    assert (again["id"], again["status"]) == (run["id"], "completed")
    body = {"content": "approve"}
    assert (await shop.json("POST", f"/v1/runs/{run['id']}/input", json=body, headers=key))["run_id"] == run[
        "id"
    ]
    other = {"content": "reject"}
    problem = await shop.json("POST", f"/v1/runs/{run['id']}/input", 422, json=other, headers=key)
    assert problem["code"] == "idempotency_key_reused"
    assert len((await shop.json("GET", "/v1/threads/t1/runs"))["items"]) == 1


@pytest.mark.covers("SAFE-READ-04")
async def test_answer_to_a_named_question_never_starts_a_run(shop: Server) -> None:
    run = await shop.json("POST", "/v1/threads/t1/runs", 201, json=START)
    asked = run["metadata"]["checkpoint_id"]
    elsewhere = await shop.json("POST", "/v1/threads/t2/runs", 201, json=START)
    for wrong in ("misspelt", elsewhere["metadata"]["checkpoint_id"]):
        body = {**START, "content": "approve", "request_id": wrong}
        problem = await shop.json("POST", "/v1/threads/t1/runs", 404, json=body)
        assert problem["code"] == "hold_not_found"
    named = {**START, "content": "approve", "request_id": asked}
    assert (await shop.json("POST", "/v1/threads/t1/runs", 200, json=named))["id"] == run["id"]
    # Sent again, because the answer was lost on its way; and by another person, too late.
    late = await shop.json("POST", "/v1/threads/t1/runs", 409, json={**named, "content": "reject"})
    assert late["code"] == "hold_decided"
    await shop.json("POST", "/v1/threads/t1/runs", 422, json={**START, "request_id": asked})
    assert len((await shop.json("GET", "/v1/threads/t1/runs"))["items"]) == 1


@pytest.mark.covers("SAFE-READ-05")
async def test_threads_are_listed_page_by_page_and_by_tenant(shop: Server) -> None:
    for thread in ("t1", "t2", "t1", "t3"):
        await shop.json("POST", f"/v1/threads/{thread}/runs", 201, json={**START, "content": None})
    service = await shop.hf.service()
    await service.create(refund().program(), START["input"], thread="x", tenant="acme")
    listed = await shop.json("GET", "/v1/threads")
    assert [each["id"] for each in listed["items"]] == ["t3", "t1", "t2"]
    first = listed["items"][1]
    assert (first["runs"], first["open_runs"], first["pending_input_runs"]) == (2, 2, 2)
    assert first["created_at"] < first["last_run_at"] <= first["updated_at"]
    found, cursor = [], None
    while True:
        more = {} if cursor is None else {"cursor": cursor}
        page = await shop.json("GET", "/v2/threads", params={"limit": 2, **more})
        found += [each["id"] for each in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert found == ["t3", "t1", "t2"]
    await shop.json("GET", "/v1/threads", 422, params={"cursor": "nonsense"})
