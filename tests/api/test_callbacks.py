"""Callbacks over HTTP: the token in the path is the only credential, and is written down nowhere."""

from __future__ import annotations

import logging
from typing import Any

import httpx2
import pytest

from holdfast import Context, Flow
from holdfast.client import AsyncClient
from holdfast.errors import CallbackUsedError
from tests.api.conftest import Server
from tests.api.sign_in import bearer, token

pytestmark = pytest.mark.anyio

build = Flow("build", effect="read")


@build.script
async def wait(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    callback = await ctx.callback("built", timeout="1d", heartbeat="1h")
    return {"built": await callback.result()}


async def waiting(server: Server) -> tuple[str, str]:
    """A run, and the address of its callback."""
    result = await build.run({}, on=server.hf)
    (found,) = (await server.json("GET", f"/v1/runs/{result.run_id}/callbacks"))["items"]
    assert found["url"] == f"{server.serving.address}/v1/callbacks/{found['token']}"
    assert (found["name"], found["node"], found["status"]) == ("built", "wait", "waiting")
    return result.run_id, found["url"]


async def sent(server: Server, url: str, status: int, **body: Any) -> Any:
    """Without a credential."""
    async with httpx2.AsyncClient() as client:
        answer = await client.post(url, json=body or None)
    assert answer.status_code == status, answer.text
    return answer.json()


@pytest.mark.covers("USERS-CALLBACK", "USERS-BAD-TOKEN")
async def test_a_system_without_a_credential_completes_a_callback_once(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    run, url = await waiting(server)
    shown = await server.json("GET", f"/v1/runs/{run}")
    assert shown["waits_for"][0]["callback"] == "built"
    page = await server.client.get(f"/runs/{run}", headers={"Accept": "text/html"})
    assert "waiting for the callback built" in page.text
    beat = await sent(server, f"{url}/heartbeat", 200)
    assert (beat["status"], beat["expires_at"] >= shown["waits_for"][0]["until"]) == ("waiting", True)
    assert "/heartbeat" in (await sent(server, url, 422))["hint"]  # no body: none of the two
    first = await sent(server, url, 200, result={"image": "a17"})
    assert (first["name"], first["status"]) == ("built", "completed")
    assert run not in repr(first)
    assert await sent(server, url, 200, result={"image": "a17"}) == first
    late = await sent(server, f"{url}/heartbeat", 409)
    assert late["code"] == "callback_used"
    assert "your_draft_saved" not in late  # a fact of people's forms
    assert (await sent(server, url, 409, error="no"))["code"] == "callback_used"
    assert "a result and an error" in (await sent(server, url, 422, result=1, error="no"))["detail"]
    assert (await sent(server, f"{url[:-4]}AAAA", 404, result=1))["code"] == "callback_not_found"
    assert (await sent(server, url, 422, data=1))["code"] == "invalid_input"
    assert (await sent(server, url, 422, other=1))["code"] == "invalid_input"
    assert (await build.resume(run, on=server.hf)).expect().state["built"] == {"image": "a17"}
    secret = url.rpartition("/")[2]
    said = [each.getMessage() for each in caplog.records if each.name.startswith("holdfast")]
    assert any("/v1/callbacks/{token}" in line for line in said)
    assert not [line for line in said if secret[24:] in line]


@pytest.mark.covers("USERS-CALLBACK", "USERS-BAD-TOKEN")
async def test_tokens_are_listed_only_for_those_who_may_send_events(server: Server) -> None:
    run, url = await waiting(server)
    for rights, tenant, status in ((("runs:read",), "default", 403), (("queues:write",), "other", 404)):
        made = await token(server, tenant=tenant, rights=rights)
        answer = await server.client.get(f"/v1/runs/{run}/callbacks", headers=bearer(made))
        assert (answer.status_code, url.rpartition("/")[2] in answer.text) == (status, False)


@pytest.mark.covers("USERS-CALLBACK")
async def test_the_client_completes_and_fails_callbacks(server: Server) -> None:
    (_, one), (_, two) = await waiting(server), await waiting(server)
    async with AsyncClient(server.serving.address, server.token) as client:
        first, second = [url.rpartition("/")[2] for url in (one, two)]
        assert (await client.callbacks.send_heartbeat(first)).status == "waiting"
        assert (await client.callbacks.complete(first, result=5)).status == "completed"
        assert (
            await client.callbacks.complete(second, error="no disk", data={"code": 28})
        ).status == "failed"
        with pytest.raises(CallbackUsedError):
            await client.callbacks.complete(second, result=5)
