from __future__ import annotations

import pytest

from holdfast import Flow
from tests.api.conftest import Server

pytestmark = pytest.mark.anyio

BAD = [
    ("/v1/runs/nosuch", 404, "run_not_found"),
    ("/v1/nothing", 404, "not_found"),
    ("/v1/runs?limit=0", 422, "invalid_input"),
    ("/v1/runs?limit=many", 422, "invalid_input"),
    ("/v1/runs?colour=red", 422, "unknown_parameter"),
    ("/v1/runs?cursor=%21%21", 422, "bad_cursor"),
    # [1e30 as a whole number, 0], and text where numbers belong.
    ("/v1/runs?cursor=WzEwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAsMF0", 422, "bad_cursor"),
    ("/v1/runs?cursor=WyJhIiwiYiJd", 422, "bad_cursor"),
    ("/v1/runs?thread=a%00b", 422, "invalid_input"),
    ("/v1/runs?status=sleeping", 422, "invalid_input"),
    ("/v1/runs/a%00b", 404, "not_found"),
    (f"/v1/runs/{'x' * 5000}", 404, "not_found"),
    ("/v1/runs/", 404, "not_found"),
]


@pytest.mark.covers("SERVER-API-03")
async def test_run_is_shown_and_listed(server: Server, greeting: Flow) -> None:
    done = await greeting.run({"name": "you"}, on=server.hf)
    shown = await server.json("GET", f"/v1/runs/{done.run_id}")
    assert (shown["id"], shown["status"], shown["flow"]) == (done.run_id, "completed", "greeting")
    assert [each["id"] for each in (await server.json("GET", "/v1/runs"))["items"]] == [done.run_id]


@pytest.mark.covers("SERVER-API-14")
async def test_pages_of_a_list_hang_together(server: Server, greeting: Flow) -> None:
    runs = [(await greeting.run({"name": str(i)}, on=server.hf)).run_id for i in range(5)]
    seen: list[str] = []
    more = {"limit": 2}
    while True:
        page = await server.json("GET", "/v1/runs", params=more)
        seen += [each["id"] for each in page["items"]]
        if page["next"] is None:
            break
        more = {"limit": 2, "cursor": page["next"]}
    assert seen == runs[::-1]


@pytest.mark.covers("SERVER-API-15")
async def test_nothing_is_sent_again_when_the_caller_has_it(server: Server, greeting: Flow) -> None:
    run = (await greeting.run({"name": "you"}, on=server.hf)).run_id
    first = await server.client.get(f"/v1/runs/{run}")
    again = await server.client.get(f"/v1/runs/{run}", headers={"If-None-Match": first.headers["etag"]})
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")


@pytest.mark.covers("SERVER-API-13", "SERVER-API-16", "SERVER-BAD-01")
async def test_bad_request_is_reported_as_a_problem(server: Server) -> None:
    for path, status, code in BAD:
        answer = await server.client.get(path)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        said = answer.json()
        assert (said["status"], said["code"]) == (status, code)
        assert said["request_id"] == answer.headers["x-request-id"]


async def test_request_without_a_good_token_is_refused(server: Server) -> None:
    for headers in ({"Authorization": ""}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic x"}):
        answer = await server.client.get("/v1/runs", headers=headers)
        assert answer.status_code == 401, headers


@pytest.mark.covers("SERVER-API-12")
async def test_openapi_document_lists_what_there_is(server: Server) -> None:
    said = await server.json("GET", "/openapi.json")
    assert {"get"} <= set(said["paths"]["/v1/runs/{run}"])
    assert said["paths"]["/v1/runs"]["get"]["x-holdfast-right"] == "runs:read"


@pytest.mark.covers("SAFE-READ-08")
async def test_list_of_checkpoints_and_each_of_them_give_the_same_fields(shop: Server) -> None:
    body = {"flow": "refund", "input": {"order": "A1", "amount": 7}, "wait": 60}
    run = (await shop.json("POST", "/v1/runs", 201, json=body))["id"]
    listed = (await shop.json("GET", f"/v1/runs/{run}/checkpoints"))["items"]
    assert len(listed) > 1
    for each in listed:
        alone = await shop.json("GET", f"/v1/runs/{run}/checkpoints/{each['id']}")
        assert alone["state_size"] > 0
        assert {name: alone[name] for name in each} == each
    document = await shop.json("GET", "/openapi.json")
    paths = {op["operationId"]: path for path, ops in document["paths"].items() for op in ops.values()}
    assert paths["list_checkpoints"] == "/v1/runs/{run}/checkpoints"
    assert paths["get_checkpoint"] == "/v1/runs/{run}/checkpoints/{checkpoint}"
