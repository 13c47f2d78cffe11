"""Runs over HTTP: started, answered, gone on with, branched off, looked at."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.conftest import Server
from tests.api.sign_in import bearer, token

pytestmark = pytest.mark.anyio

ORDER = {"order": "A1", "amount": 7}


async def asked(shop: Server, **more: Any) -> dict[str, Any]:
    """A run that waits for its approval."""
    body = {"flow": "refund", "input": ORDER, "wait": 60, **more}
    run = await shop.json("POST", "/v1/runs", 201, json=body)
    assert run["status"] == "pending_input", run
    return run


async def ended(shop: Server, run: str) -> dict[str, Any]:
    return await shop.json("GET", f"/v1/runs/{run}/result", params={"wait": 60})


@pytest.mark.covers("SERVER-API-03", "SERVER-SEED-05", "R-67-http", "R-67")
async def test_run_is_created_where_its_location_says(shop: Server) -> None:
    answer = await shop.client.post("/v1/runs", json={"flow": "refund", "input": ORDER})
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert answer.headers["location"] == f"/v1/runs/{made['id']}"
    shown = await shop.json("GET", answer.headers["location"])
    assert (shown["flow"], shown["started_by"]) == ("refund", "user:local")
    again = await shop.client.post(
        "/v1/runs", json={"flow": f"{made['flow']}@{made['version']}", "input": ORDER}
    )
    assert again.status_code == 201
    assert again.json()["version"] == made["version"]


@pytest.mark.covers("SERVER-API-03")
async def test_same_key_gives_the_same_run_and_another_input_is_refused(shop: Server) -> None:
    headers = {"Idempotency-Key": "order-1"}
    body = {"flow": "refund", "input": ORDER}
    first = await shop.json("POST", "/v1/runs", 201, json=body, headers=headers)
    again = await shop.json("POST", "/v1/runs", 200, json=body, headers=headers)
    in_body = await shop.json("POST", "/v1/runs", 200, json={**body, "idempotency_key": "order-1"})
    assert again["id"] == in_body["id"] == first["id"]
    other = {**body, "input": {"order": "A1", "amount": 8}}
    problem = await shop.json("POST", "/v1/runs", 422, json=other, headers=headers)
    assert (problem["code"], problem["run"]) == ("idempotency_key_reused", first["id"])


REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({"flow": "nothing"}, 404, "flow_not_found"),
    ({"flow": "refund@nothing"}, 404, "flow_not_found"),
    ({"flow": "../etc/passwd"}, 403, "forbidden"),
    ({"flow": "refund", "input": {"amount": "many"}}, 422, "state_mismatch"),
    ({"flow": "refund", "input": []}, 422, "invalid_input"),
    ({"flow": "refund", "colour": 1}, 422, "invalid_input"),
    ({"flow": "refund", "thread": "a\0b"}, 422, "invalid_input"),
    ({}, 422, "invalid_input"),
]


@pytest.mark.covers("SERVER-BAD-01")
async def test_run_that_cannot_be_is_refused(shop: Server) -> None:
    for body, status, code in REFUSED:
        problem = await shop.json("POST", "/v1/runs", status, json=body)
        assert problem["code"] == code, body
    assert (await shop.json("GET", "/v1/runs"))["items"] == []


@pytest.mark.covers("R-6-http", "R-66-http", "SERVER-API-04", "R-12")
async def test_plain_words_answer_a_run(shop: Server) -> None:
    run = await asked(shop)
    hold = run["metadata"]["checkpoint_id"]
    wrong = await shop.json("POST", f"/runs/{run['id']}/input", 422, json={"content": "perhaps"})
    assert wrong["options"] == ["approve", "reject"]
    # Any type of content will do: the seed's own example sends none.
    said = await shop.client.post(
        f"/v2/runs/{run['id']}/input",
        content=b'{"content": "APPROVE"}',
        headers={"Content-Type": "text/plain"},
    )
    assert said.status_code == 200, said.text
    taken = said.json()
    assert (taken["checkpoint_id"], taken["decision"], taken["status"]) == (hold, "approve", "resolved")
    done = await ended(shop, run["id"])
    assert (done["status"], done["state"]["paid"]) == ("completed", 7)
    late = await shop.json("POST", f"/v1/runs/{run['id']}/input", 404, json={"content": "approve"})
    assert late["code"] == "hold_not_found"


@pytest.mark.covers("R-66-http", "R-25-http")
async def test_several_open_questions_have_to_be_distinguished(shop: Server) -> None:
    run = await shop.json("POST", "/v1/runs", 201, json={"flow": "both", "wait": 60})
    problem = await shop.json("POST", f"/v1/runs/{run['id']}/input", 409, json={"content": "yes"})
    assert sorted(problem["holds"]) == sorted(run["metadata"]["checkpoint_ids"])
    for hold in problem["holds"]:
        body = {"content": {"decision": "yes", "comment": "fine"}, "request_id": hold}
        assert (await shop.json("POST", f"/v1/runs/{run['id']}/input", json=body))["decision"] == "yes"
    second = await shop.json("POST", f"/v1/runs/{run['id']}/input", 409, json={**body, "content": "no"})
    assert second["code"] == "hold_decided"
    assert (await ended(shop, run["id"]))["status"] == "completed"


@pytest.mark.covers("R-1-http", "R-2-http", "R-3-http", "SERVER-SEED-01")
async def test_resume_goes_on_or_forks(shop: Server) -> None:
    run, other = await asked(shop), await asked(shop)
    same = await shop.client.post(f"/runs/{run['id']}/resume")
    assert (same.status_code, same.json()["id"]) == (200, run["id"])
    points = (await shop.json("GET", f"/runs/{run['id']}/checkpoints"))["items"]
    older = {"checkpoint_id": points[-1]["id"]}
    made = await shop.client.post(f"/api/v1/runs/{run['id']}/resume", json=older)
    assert made.status_code == 201, made.text
    fork = made.json()
    assert made.headers["location"] == f"/api/v1/runs/{fork['id']}"
    assert fork["forked_from"] == points[-1]["id"]
    assert (await shop.json("GET", f"/v1/runs/{run['id']}"))["superseded_by"] is None
    given = await shop.json("POST", f"/v1/runs/{run['id']}/resume", 201, json={"input_data": {"amount": 9}})
    assert given["id"] not in (run["id"], fork["id"])
    count = len((await shop.json("GET", "/v1/runs"))["items"])
    foreign = {"checkpoint_id": other["metadata"]["checkpoint_id"]}
    assert (await shop.json("POST", f"/v1/runs/{run['id']}/resume", 404, json=foreign))["code"] == (
        "checkpoint_not_found"
    )
    await shop.json("POST", f"/v1/runs/{run['id']}/resume", 404, json={"checkpoint_id": "nothing"})
    await shop.json("POST", "/v1/runs/nothing/resume", 404)
    assert len((await shop.json("GET", "/v1/runs"))["items"]) == count


@pytest.mark.covers("R-1-http", "R-14")
async def test_finished_run_executes_nothing_when_it_is_resumed(shop: Server) -> None:
    run = await asked(shop)
    await shop.json("POST", f"/v1/runs/{run['id']}/input", json={"content": "approve"})
    await ended(shop, run["id"])
    before = await shop.json("GET", f"/v1/runs/{run['id']}")
    again = await shop.json("POST", f"/v1/runs/{run['id']}/resume")
    assert again == before


@pytest.mark.covers("SERVER-API-04", "R-1-http")
async def test_rewind_takes_the_place_of_its_run_once_under_one_key(shop: Server) -> None:
    run = await asked(shop)
    headers = {"Idempotency-Key": "again"}
    body = {"seq": 1, "patch": {"scratch": {"amount": 5}}}
    made = await shop.json("POST", f"/v1/runs/{run['id']}/rewind", 201, json=body, headers=headers)
    again = await shop.json("POST", f"/v1/runs/{run['id']}/rewind", 200, json=body, headers=headers)
    assert again["id"] == made["id"]
    old = await shop.json("GET", f"/v1/runs/{run['id']}")
    assert (old["status"], old["superseded_by"]) == ("cancelled", made["id"])
    fork = await shop.json("POST", f"/v1/runs/{made['id']}/fork", 201, json={})
    assert fork["forked_from"] is not None
    reused = await shop.json("POST", f"/v1/runs/{fork['id']}/fork", 422, json={}, headers=headers)
    assert reused["code"] == "idempotency_key_reused"
    both_ways = await shop.json("GET", f"/v1/runs/{run['id']}/diff", params={"to": made["id"]})
    assert both_ways["relation"] == "branches"
    assert both_ways["same"] is False


@pytest.mark.covers("SERVER-API-03")
async def test_run_is_cancelled_once_and_only_as_it_was_seen(shop: Server) -> None:
    run = await asked(shop)
    stale = await shop.json(
        "POST", f"/v1/runs/{run['id']}/cancel", 412, json={}, headers={"If-Match": '"0.0.0"'}
    )
    assert stale["code"] == "version_stale"
    seen = (await shop.client.get(f"/v1/runs/{run['id']}")).headers["etag"]
    body = {"reason": "not wanted"}
    await shop.json("POST", f"/v1/runs/{run['id']}/cancel", json=body, headers={"If-Match": seen})
    assert (await ended(shop, run["id"]))["status"] == "cancelled"
    assert (await shop.json("GET", "/v1/runs/pending"))["items"] == []
    await shop.json("POST", f"/v1/runs/{run['id']}/cancel", 200)
    done = await asked(shop)
    await shop.json("POST", f"/v1/runs/{done['id']}/input", json={"content": "approve"})
    await ended(shop, done["id"])
    assert (await shop.json("POST", f"/v1/runs/{done['id']}/cancel", 409))["code"] == "run_ended"


@pytest.mark.covers("R-4-http", "R-5-http", "SERVER-API-05", "SERVER-SEED-01")
@pytest.mark.covers("PLAIN-WIRE-06")
async def test_checkpoints_are_listed_and_open_in_detail(shop: Server) -> None:
    run = await asked(shop)
    page = await shop.json("GET", f"/v1/runs/{run['id']}/checkpoints", params={"limit": 1})
    newest = page["items"][0]
    assert (newest["status"], newest["node_id"]) == ("pending_input", "approve")
    assert newest["id"] == run["metadata"]["checkpoint_id"]
    assert newest["pending_input_context"]["prompt"] == "Refund 7?"
    assert "node_states" not in newest
    rest = await shop.json("GET", f"/v1/runs/{run['id']}/checkpoints", params={"cursor": page["next"]})
    seqs = [each["seq"] for each in [newest, *rest["items"]]]
    assert seqs == sorted(seqs, reverse=True)
    assert len(set(seqs)) > 1
    path = f"/v1/runs/{run['id']}/checkpoints/{newest['id']}"
    detail = await shop.json("GET", path)
    assert detail["node_states"]["check"]["output_data"] == {"checked": True}
    assert detail["completed_node_ids"] == ["check"]
    assert detail["original_input"] == ORDER
    assert detail["pending_input_context"] == detail["pending_inputs"][0]
    etag = (await shop.client.get(path)).headers["etag"]
    assert (await shop.client.get(path, headers={"If-None-Match": etag})).status_code == 304
    other = await asked(shop)
    await shop.json("GET", f"/v1/runs/{other['id']}/checkpoints/{newest['id']}", 404)
    for missing in ("999", "nothing"):
        await shop.json("GET", f"/v1/runs/{run['id']}/checkpoints/{missing}", 404)


@pytest.mark.covers("SERVER-API-05")
async def test_what_a_run_did_and_made_is_reported(shop: Server) -> None:
    run = (await asked(shop))["id"]
    await shop.json("POST", f"/v1/runs/{run}/input", json={"content": "approve"})
    await ended(shop, run)
    line = await shop.json("GET", f"/v1/runs/{run}/timeline")
    assert [each["node"] for each in line["items"]] == ["check", "approve", "pay"]
    assert line["items"][1]["waits"][0]["kind"] == "person"
    listed = (await shop.json("GET", f"/v1/runs/{run}/artifacts"))["items"]
    assert [(each["name"], each["size"]) for each in listed] == [("raw", 2), ("receipt.txt", 13)]
    kept = await shop.client.get(f"/v1/runs/{run}/artifacts/receipt.txt")
    assert kept.text == "paid 7 for A1"
    assert kept.headers["content-disposition"].startswith('attachment; filename="receipt.txt"')
    assert (await shop.client.get(f"/v1/runs/{run}/artifacts/raw")).content == b"\x00\x01"
    await shop.json("GET", f"/v1/runs/{run}/artifacts/nothing", 404)
    svg = await shop.client.get(f"/v1/runs/{run}/drawing")
    assert svg.headers["content-type"] == "image/svg+xml"
    assert svg.text.startswith("<svg")


@pytest.mark.covers("R-19-http", "SERVER-API-14")
async def test_events_are_read_in_pages_without_a_gap(shop: Server) -> None:
    run = (await asked(shop))["id"]
    await shop.json("POST", f"/v1/runs/{run}/input", json={"content": "approve"})
    await ended(shop, run)
    numbers: list[int] = []
    page = {"last": 0, "ended": False}
    while not page["ended"]:
        params = {"after": page["last"], "limit": 3}
        page = await shop.json("GET", f"/v1/runs/{run}/events", params=params)
        numbers += [each["number"] for each in page["items"]]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.covers("R-9-http")
async def test_pending_runs_are_listed_newest_question_first(shop: Server) -> None:
    runs = [(await asked(shop, thread=f"t{i}"))["id"] for i in range(3)]
    first = await shop.json("GET", "/v1/runs/pending", params={"limit": 2})
    rest = await shop.json("GET", "/v1/runs/pending", params={"cursor": first["next"]})
    items = [*first["items"], *rest["items"]]
    assert [each["run"] for each in items] == runs[::-1]
    assert (items[0]["prompt"], items[0]["thread"]) == ("Refund 7?", "t2")
    one = await shop.json("GET", "/v1/runs/pending", params={"thread": "t1", "mine": "true"})
    assert [each["run"] for each in one["items"]] == [runs[1]]


async def test_run_moves_to_another_store_as_a_file(shop: Server) -> None:
    run = (await asked(shop))["id"]
    data = (await shop.client.get(f"/v1/runs/{run}/export")).content
    same = await shop.client.post("/v1/runs/import", content=data)
    assert same.status_code in (201, 409), same.text
    bad = await shop.client.post("/v1/runs/import", content=b"nothing")
    assert bad.status_code == 422, bad.text


@pytest.mark.covers("SERVER-AUTH-05", "SERVER-API-04")
async def test_a_yes_is_asked_again_in_a_branch_of_a_caller_who_may_only_start_runs(shop: Server) -> None:
    run = await asked(shop)
    await shop.json("POST", f"/v1/runs/{run['id']}/input", json={"content": "approve"})
    await ended(shop, run["id"])
    starter = bearer(await token(shop, "user:sly", rights=("runs:write",)))
    changed = {"patch": {"scratch": {"amount": 7000}}, "checkpoint_id": run["metadata"]["checkpoint_id"]}
    for path, body in (
        ("fork", {"patch": {"scratch": {"amount": 7000}}}),
        ("resume", {"input_data": {"amount": 7000}}),
        ("resume", {"mode": "fork"}),
    ):
        made = await shop.json("POST", f"/v1/runs/{run['id']}/{path}", 201, json=body, headers=starter)
        assert (await ended(shop, made["id"]))["status"] == "pending_input", path
    again = await shop.json("POST", f"/v1/runs/{run['id']}/fork", 201, json=changed, headers=starter)
    stands = await ended(shop, again["id"])
    assert stands["status"] == "pending_input", "it is asked anew, about what was changed"
    await shop.json("POST", f"/v1/runs/{run['id']}/fork", 201, json={"patch": {"scratch": {"amount": 8}}})


@pytest.mark.covers("SAFE-READ-04")
async def test_resume_at_the_answered_question_gives_the_same_run_whoever_was_faster(shop: Server) -> None:
    run = await asked(shop)
    hold = run["metadata"]["checkpoint_id"]
    await shop.json("POST", f"/v1/runs/{run['id']}/input", json={"content": "approve", "request_id": hold})
    assert (await ended(shop, run["id"]))["status"] == "completed"
    for path in (f"/v1/runs/{run['id']}/resume", f"/runs/{run['id']}/resume"):
        again = await shop.json("POST", path, params={"checkpoint_id": hold}, json={})
        assert again["id"] == run["id"]
    listed = await shop.json("GET", "/v1/runs")
    assert [each["id"] for each in listed["items"]] == [run["id"]]
    forked = await shop.json("POST", f"/v1/runs/{run['id']}/fork", 201, json={"checkpoint_id": hold})
    assert forked["id"] != run["id"]


@pytest.mark.covers("SAFE-READ-05")
async def test_ended_run_is_deleted_and_its_audit_stays(shop: Server) -> None:
    run = await asked(shop)
    busy = await shop.json("DELETE", f"/v1/runs/{run['id']}", 409)
    assert (busy["code"], "cancel" in busy["hint"]) == ("run_busy", True)
    hold = run["metadata"]["checkpoint_id"]
    await shop.json("POST", f"/v1/runs/{run['id']}/input", json={"content": "reject"})
    await ended(shop, run["id"])
    forked = await shop.json("POST", f"/v1/runs/{run['id']}/fork", 201, json={"checkpoint_id": hold})
    service = await shop.hf.service()
    before = await service.store.audit("default", after=0, limit=1000)
    old = {"If-Match": '"0.0.0.pending"'}
    await shop.json("DELETE", f"/v1/runs/{run['id']}", 412, headers=old)
    answer = await shop.client.delete(f"/v1/runs/{run['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    for path in ("", "/events", "/checkpoints", "/stream", "/result"):
        await shop.json("GET", f"/v1/runs/{run['id']}{path}", 404)
    await shop.json("GET", f"/v1/holds/{hold}", 404)
    await shop.json("DELETE", f"/v1/runs/{run['id']}", 404)
    after = await service.store.audit("default", after=0, limit=1000)
    assert after[: len(before)] == before
    (entry,) = [each for each in after if each.action == "run_deleted"]
    assert (entry.run, entry.actor) == (run["id"], "user:local")
    assert (await shop.json("GET", f"/v1/runs/{forked['id']}"))["forked_from"] is not None


@pytest.mark.covers("SAFE-READ-05")
async def test_run_is_deleted_only_by_an_administrator_of_its_tenant(shop: Server) -> None:
    run = await asked(shop)
    await shop.json("POST", f"/v1/runs/{run['id']}/cancel", json={"reason": "no"})
    await ended(shop, run["id"])
    operator = bearer(await token(shop, "user:olga", "operator"))
    stranger = bearer(await token(shop, "user:ada", "admin", tenant="acme"))
    await shop.json("DELETE", f"/v1/runs/{run['id']}", 403, headers=operator)
    await shop.json("DELETE", f"/v1/runs/{run['id']}", 404, headers=stranger)
    assert (await shop.json("GET", f"/v1/runs/{run['id']}"))["status"] == "cancelled"
