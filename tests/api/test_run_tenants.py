"""Runs over HTTP on PostgreSQL, with two servers; and what one tenant learns of another: nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast import Holdfast, Worker
from tests.api.conftest import Server, serving
from tests.api.flows import refund
from tests.api.sign_in import bearer, token
from tests.services import postgres

pytestmark = pytest.mark.anyio

SCHEMA = "server_runs"
BODY = {"flow": "refund", "input": {"order": "A1", "amount": 7}, "wait": 60}


@pytest.fixture
async def pair(anyio_backend: str) -> AsyncIterator[tuple[Server, Server]]:
    """Two servers of one store; a worker that has the code, which the second server has not."""
    address = postgres.with_setting(postgres.database(), schema=SCHEMA)
    await postgres.empty(SCHEMA)
    async with (
        Holdfast(address) as first,
        Holdfast(address) as second,
        serving(first) as one,
        serving(second) as two,
        Worker(refund(), on=first),
    ):
        yield one, two


@pytest.mark.covers("SERVER-API-02", "SERVER-API-03", "R-25-http")
async def test_run_begins_at_one_server_and_is_answered_at_another(pair: tuple[Server, Server]) -> None:
    one, two = pair
    key = {"Idempotency-Key": "k"}
    run = await one.json("POST", "/v1/runs", 201, json=BODY, headers=key)
    assert (await two.json("POST", "/v1/runs", 200, json=BODY, headers=key))["id"] == run["id"]
    await two.json("POST", f"/v1/runs/{run['id']}/input", json={"content": "approve"})
    late = await one.client.post(
        f"/v1/runs/{run['id']}/input",
        json={"content": "reject", "request_id": run["metadata"]["checkpoint_id"]},
    )
    assert (late.status_code, late.json()["code"]) == (409, "hold_decided")
    done = await two.json("GET", f"/v1/runs/{run['id']}/result", params={"wait": 60})
    assert (done["status"], done["state"]["paid"]) == ("completed", 7)
    detail = await two.json("GET", f"/v1/runs/{run['id']}/checkpoints/latest")
    assert detail["completed_node_ids"] == ["check", "approve", "pay"]
    fork = await two.json("POST", f"/v1/runs/{run['id']}/resume", 201, json={"input_data": {"amount": 8}})
    assert fork["forked_from"] is not None
    dead = await two.json("GET", "/v1/dead")
    assert dead["items"] == []


@pytest.mark.covers("SERVER-BAD-02", "R-3-http")
async def test_another_tenant_learns_nothing_of_a_run(shop: Server) -> None:
    run = await shop.json("POST", "/v1/runs", 201, json={**BODY, "thread": "t"})
    key, hold = run["id"], run["metadata"]["checkpoint_id"]
    other = bearer(await token(shop, "user:eve", "admin", tenant="other"))
    own = await shop.json("POST", "/v1/runs", 201, json=BODY, headers=other)
    assert own["tenant"] == "other"
    paths = (
        "",
        "/result",
        "/checkpoints",
        f"/checkpoints/{hold}",
        "/timeline",
        "/records",
        "/postmortem",
        "/drawing",
        "/graph",
        "/events",
    )
    paths += "/artifacts", "/artifacts/receipt.txt", "/export", f"/diff?to={own['id']}"
    for path in paths:
        said = await shop.json("GET", f"/v1/runs/{key}{path}", 404, headers=other)
        missing = await shop.json("GET", f"/v1/runs/{_unknown(key)}{path}", 404, headers=other)
        assert said["code"] == missing["code"], path
        assert said["detail"].replace(key, "") == missing["detail"].replace(_unknown(key), ""), path
    acts: dict[str, Any] = {
        "cancel": {},
        "resume": {},
        "fork": {},
        "rewind": {},
        "input": {"content": "approve"},
    }
    for act, body in acts.items():
        await shop.json("POST", f"/v1/runs/{key}/{act}", 404, json=body, headers=other)
    foreign = {"checkpoint_id": hold}
    await shop.json("POST", f"/v1/runs/{own['id']}/resume", 404, json=foreign, headers=other)
    for to in (key, hold, f"{key}@1", key[:8]):
        await shop.json("GET", f"/v1/runs/{own['id']}/diff", 404, params={"to": to}, headers=other)
    for path in ("/v1/runs", "/v1/threads/t/runs"):
        listed = await shop.json("GET", path, headers=other)
        assert key not in [each["id"] for each in listed["items"]]
    pending = await shop.json("GET", "/v1/runs/pending", headers=other)
    assert [each["run"] for each in pending["items"]] == [own["id"]]
    for path in ("/v1/workers", "/v1/figures", "/v1/limits", "/v1/admin/status"):
        assert (await shop.json("GET", path, 403, headers=other))["code"] == "forbidden"
    assert (await shop.json("GET", f"/v1/runs/{key}"))["status"] == "pending_input"


@pytest.mark.covers("SERVER-API-04", "SERVER-AUTH-06")
async def test_a_caller_who_branches_a_run_off_is_the_one_who_started_the_branch(shop: Server) -> None:
    run = await shop.json("POST", "/v1/runs", 201, json=BODY)
    other = bearer(await token(shop, "user:eve", "operator"))
    more = {"input_data": {"amount": 7000}}
    for act, status in (("fork", 201), ("resume", 201), ("rewind", 201)):
        made = await shop.json("POST", f"/v1/runs/{run['id']}/{act}", status, json=more, headers=other)
        assert made["started_by"] == "user:eve", act
    assert (await shop.json("GET", f"/v1/runs/{run['id']}"))["started_by"] == "user:local"


def _unknown(run: str) -> str:
    return f"{run[:-4]}0000" if not run.endswith("0000") else f"{run[:-4]}1111"
