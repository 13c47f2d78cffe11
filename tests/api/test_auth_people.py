"""What a credential says about whoever sent a request, and what follows from it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast import Flow, Holdfast
from holdfast.checkpoint.keys import EVERYBODY, StaticKeys, new_scope, with_scope
from holdfast.errors import DirectoryUnavailableError
from holdfast.holds.directory.stored import TableDirectory
from tests.api.conftest import Server, serving
from tests.api.sign_in import bearer, browser, session, token
from tests.deadlines import HANG

pytestmark = pytest.mark.anyio


def payment(**more: Any) -> Flow:
    flow = Flow("payment", effect="pure")
    flow.hold("approve", prompt="Pay?", options=["approve", "reject"], assignee="group:finance", **more)
    return flow


async def started(server: Server, flow: Flow, who: dict[str, str]) -> str:
    """A run that its caller starts over HTTP; answers the hold that it waits at."""
    server.hf.register(flow.program())
    run = await server.json("POST", "/v1/runs", 201, json={"flow": flow.name, "input": {}}, headers=who)
    await flow.resume(run["id"], on=server.hf)
    (hold,) = await (await server.hf.service()).holds(run["id"])
    return hold.id


@pytest.mark.covers("SERVER-AUTH-06")
async def test_service_does_not_approve_what_it_started(server: Server) -> None:
    flow = payment()
    clerk = bearer(await token(server, "service:clerk", "operator", rights=("scaicore:checkpoint_override",)))
    hold = await started(server, flow, clerk)
    paths = [
        f"/v1/holds/{hold}/resolve", f"/v1/checkpoints/{hold}/resolve",
        f"/v1/scaicore/checkpoints/{hold}/resolve", f"/v1/modules/scaicore/checkpoints/{hold}/resolve",
    ]  # fmt: skip
    for path in paths:
        body = {"decision": "approve", "reason": "I say so"}
        said = await server.json("POST", path, 403, json=body, headers=clerk)
        assert "a service may not decide its own runs" in said["detail"], path
    (run,) = (await server.json("GET", "/v1/runs", headers=clerk))["items"]
    await server.json("POST", f"/v1/runs/{run['id']}/input", 403, json={"content": "approve"}, headers=clerk)
    other = bearer(await token(server, "service:auditor", "operator"))
    done = await server.json("POST", paths[0], json={"decision": "approve"}, headers=other)
    assert (done["status"], done["resolved_by"]) == ("resolved", "service:auditor")


@pytest.mark.covers("SERVER-AUTH-06")
async def test_service_that_hands_out_a_token_has_not_become_another(server: Server) -> None:
    """Whoever administers may make credentials; it is in the audit whose they are."""
    clerk = bearer(await token(server, "service:clerk", "admin"))
    made = await server.json(
        "POST", "/v1/tokens", 201, json={"subject": "service:clerk", "roles": ["approver"]}, headers=clerk
    )
    hold = await started(server, payment(), clerk)
    again = bearer(made["token"])
    await server.json("POST", f"/v1/holds/{hold}/resolve", 403, json={"decision": "approve"}, headers=again)


@pytest.mark.covers("SERVER-AUTH-05")
async def test_groups_of_the_credential_make_a_hold_theirs(server: Server) -> None:
    admin = {"subject": "user:lea", "roles": ["member"], "groups": ["finance"]}
    member = bearer((await server.json("POST", "/v1/tokens", 201, json=admin))["token"])
    stranger = bearer(await token(server, "user:bo", "member"))
    hold = await started(server, payment(strict_assignee=True), bearer(server.token))
    body = {"decision": "approve"}
    refused = await server.client.post(f"/v1/holds/{hold}/resolve", json=body, headers=stranger)
    assert refused.status_code in (403, 404)
    done = await server.json("POST", f"/v1/holds/{hold}/resolve", json=body, headers=member)
    assert done["resolved_by"] == "user:lea"


@pytest.mark.covers("SERVER-AUTH-04")
async def test_tenant_is_that_of_the_credential_whatever_else_is_said(server: Server) -> None:
    flow = payment()
    server.hf.register(flow.program())
    acme = bearer(await token(server, "user:dana", "admin", tenant="acme"))
    says = {**acme, "X-Tenant": "other", "X-Tenant-Id": "other", "X-Forwarded-User": "user:root"}
    body = {
        "flow": flow.name,
        "input": {},
        "tenant": "other",
        "tenant_id": "other",
        "started_by": "user:root",
    }
    answer = await server.client.post("/v1/runs", json=body, headers=says)
    if answer.status_code == 422:  # what is not asked for is not taken
        answer = await server.client.post("/v1/runs", json={"flow": flow.name, "input": {}}, headers=says)
    assert answer.status_code == 201, answer.text
    row = await (await server.hf.open()).get_run(answer.json()["id"])
    assert row is not None
    assert (row.tenant, row.started_by) == ("acme", "user:dana")
    asked = await server.client.get("/v1/runs", params={"tenant": "acme"})
    assert asked.status_code == 422 or asked.json()["items"] == []


@pytest.mark.covers("SERVER-AUTH-01", "SERVER-AUTH-03")
async def test_credentials_work_on_an_encrypted_store(tmp_path: Path, anyio_backend: str) -> None:
    store = f"sqlite:{tmp_path / 'e.db'}"
    keys = StaticKeys(with_scope(None, EVERYBODY, new_scope(datetime.now(UTC))))
    async with Holdfast(store, keys=keys) as hf, serving(hf) as server:
        text = await token(server, "user:dana", "viewer")
        async with httpx2.AsyncClient(base_url=server.serving.address, timeout=HANG) as client:
            assert (await client.post("/v1/session", json={"token": text})).status_code == 204
            assert (await client.get("/v1/runs")).status_code == 200
            assert (await client.get("/v1/tokens")).status_code == 403


@pytest.mark.covers("SERVER-AUTH-01", "SERVER-AUTH-04")
async def test_person_who_is_not_active_any_more_loses_tokens_and_sessions(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.api.auth.authenticator.FRESH", 0.0)
    dana = bearer(await token(server, "user:dana@acme.example", "operator"))
    other = bearer(await token(server, "user:eli@acme.example", "operator"))
    opened = await session(server, "user:Dana@Acme.example", "operator")
    async with browser(server, opened) as tab:
        assert (await tab.get("/v1/runs")).status_code == 200
        person = {"email": "dana@acme.example", "active": False}
        await server.json("PUT", "/v1/directory/people/dana", json=person)
        refused = await server.json("GET", "/v1/runs", 401, headers=dana)
        assert refused["code"] == "unauthenticated"
        assert (await tab.get("/v1/runs")).status_code == 401
        # Nobody else is meant, and whoever comes back finds everything as it was.
        await server.json("GET", "/v1/runs", headers=other)
        await server.json("PUT", "/v1/directory/people/dana", json=person | {"active": True})
        await server.json("GET", "/v1/runs", headers=dana)
        assert (await tab.get("/v1/runs")).status_code == 200


async def test_directory_that_is_away_locks_nobody_out_and_lets_nobody_in_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.api.auth.authenticator.FRESH", 0.0)
    dana = bearer(await token(server, "user:dana", "operator"))
    eli = bearer(await token(server, "user:eli", "operator"))
    await server.json("PUT", "/v1/directory/people/dana", json={"active": False})
    await server.json("GET", "/v1/runs", 401, headers=dana)
    await server.json("GET", "/v1/runs", headers=eli)

    async def away(*_: object) -> None:
        raise DirectoryUnavailableError("the directory is away.")

    monkeypatch.setattr(TableDirectory, "person", away)
    await server.json("GET", "/v1/runs", 401, headers=dana)
    await server.json("GET", "/v1/runs", headers=eli)
