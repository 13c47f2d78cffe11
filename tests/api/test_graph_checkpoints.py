"""The checkpoint store of the graph document over HTTP: its own names, only of the caller's tenant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

import holdfast
from tests.api.conftest import Server
from tests.api.flows import refund
from tests.api.sign_in import bearer, token

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-READ-06")]

ORDER = {"order": "A1", "amount": 7}
SCHEMA = Path(__file__).parents[2] / "docs/reference/checkpoint.schema.json"


async def decided(shop: Server) -> str:
    run = await shop.json("POST", "/v1/runs", 201, json={"flow": "refund", "input": ORDER, "wait": 60})
    await shop.json("POST", f"/v1/runs/{run['id']}/input", json={"content": "approve"})
    done = await shop.json("GET", f"/v1/runs/{run['id']}/result", params={"wait": 60})
    assert done["status"] == "completed"
    return run["id"]


async def test_checkpoints_have_the_names_and_the_schema_of_the_document(shop: Server) -> None:
    run = await decided(shop)
    fits = jsonschema_rs.Draft202012Validator(json.loads(SCHEMA.read_text()))
    last = await shop.json("GET", f"/v1/graph/runs/{run}/checkpoint")
    listed = (await shop.json("GET", "/v1/graph/checkpoints", params={"graphId": last["graphId"]}))["items"]
    assert {each["runId"] for each in listed} == {run}
    assert [each["timestamp"] for each in listed] == sorted((e["timestamp"] for e in listed), reverse=True)
    assert listed[0]["id"] == last["id"]
    view = await shop.hf.checkpoint_store()
    assert isinstance(view, holdfast.CheckpointView)
    for each in listed:
        found = await shop.json("GET", f"/v1/graph/checkpoints/{each['id']}")
        fits.validate(found)
        assert found == await view.get(each["id"])
        assert (found["nodeId"], found["timestamp"]) == (each["nodeId"], each["timestamp"])
        assert each["stateSize"] > 0
        # Saved as it is: nothing changes.
        assert await shop.json("PUT", f"/v1/graph/checkpoints/{each['id']}", json=found) == found
    few = await shop.json(
        "GET", "/v1/graph/checkpoints", params={"graphId": last["graphId"], "runId": run, "limit": 2}
    )
    assert few["items"] == listed[:2]
    node = next(each["nodeId"] for each in listed if each["nodeId"])
    loaded = await shop.json("GET", f"/v1/graph/runs/{run}/checkpoint", params={"nodeId": node})
    assert loaded["id"] == next(each["id"] for each in listed if each["nodeId"] == node)


async def test_changed_checkpoint_is_refused_and_forked_instead(shop: Server) -> None:
    run = await decided(shop)
    last = await shop.json("GET", f"/v1/graph/runs/{run}/checkpoint")
    path = f"/v1/graph/checkpoints/{last['id']}"
    changed = {**last, "visitedNodes": []}
    assert (await shop.json("PUT", path, 409, json=changed))["code"] == "conflict"
    await shop.json("PUT", path, 422, json={**last, "id": "other"})
    await shop.json("PUT", path, 422, json={**last, "nodes": []})
    listed = (await shop.json("GET", "/v1/graph/checkpoints", params={"graphId": last["graphId"]}))["items"]
    first = listed[-1]["id"]
    answer = await shop.client.post(
        f"/v1/graph/checkpoints/{first}/fork", json={"patch": {"scratch": {"amount": 9}}}
    )
    assert answer.status_code == 201, answer.text
    forked = answer.json()["runId"]
    assert answer.headers["location"] == f"/v1/runs/{forked}"
    assert (await shop.json("GET", f"/v1/runs/{forked}"))["started_by"] == "user:local"
    seen = await shop.json("GET", f"/v1/graph/runs/{forked}/checkpoint")
    assert seen["state"]["scratch"]["amount"] == 9
    await shop.json("POST", f"/v1/graph/checkpoints/{first}/fork", 422, json={"patch": {"colour": {}}})
    # The oldest of an ended run can be deleted, no other.
    assert (await shop.json("DELETE", path, 409))["code"] == "conflict"
    await shop.json("DELETE", f"/v1/graph/checkpoints/{first}", 204)
    await shop.json("GET", f"/v1/graph/checkpoints/{first}", 404)
    await shop.json("DELETE", f"/v1/graph/checkpoints/{first}", 404)


NOT_FOUND: tuple[tuple[str, str], ...] = (
    ("GET", "/v1/graph/checkpoints/{id}"),
    ("GET", "/v1/graph/runs/{run}/checkpoint"),
    ("POST", "/v1/graph/checkpoints/{id}/fork"),
    ("DELETE", "/v1/graph/checkpoints/{id}"),
)


async def test_checkpoints_of_other_tenants_do_not_exist(shop: Server) -> None:
    service = await shop.hf.service()
    row, _ = await service.create(refund().program(), ORDER, tenant="acme")
    other = await service.latest(row.id)
    for method, path in NOT_FOUND:
        place = path.format(id=other.id, run=row.id)
        await shop.json(method, place, 404, **({"json": {}} if method == "POST" else {}))
    for params in ({"graphId": row.version}, {"graphId": row.version, "runId": row.id}):
        assert (await shop.json("GET", "/v1/graph/checkpoints", params=params))["items"] == []
    await shop.json("PUT", f"/v1/graph/checkpoints/{other.id}", 404, json=other.as_interface())
    assert (await service.checkpoint(other.id)).id == other.id, "nothing was deleted"
    own = bearer(await token(shop, "user:ada", "admin", tenant="acme"))
    seen = await shop.json("GET", f"/v1/graph/checkpoints/{other.id}", headers=own)
    assert seen["runId"] == row.id


@pytest.mark.parametrize(
    "params", [{}, {"graphId": "x", "limit": 0}, {"graphId": "x", "limit": 10_000}, {"graph_id": "x"}]
)
async def test_list_needs_a_graph_and_has_a_limit(shop: Server, params: dict[str, Any]) -> None:
    await shop.json("GET", "/v1/graph/checkpoints", 422, params=params)
