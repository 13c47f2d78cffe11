"""Errors of the store name its host or file. Who does not administer the server learns them by no way out."""

from __future__ import annotations

import json

import pytest
from mcp import MCPError
from websockets.exceptions import InvalidStatus

from holdfast import Worker
from tests.api.conftest import Server
from tests.api.flows import refund
from tests.api.live import asking
from tests.api.sign_in import bearer, token
from tests.api.test_readiness import PLACE, _away
from tests.api.test_sse import started
from tests.api.test_websocket import talking
from tests.integrations.mcp.session import agent, speaking

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-EDGE-05")]
STRANGE = f"hf_{'a' * 12}_{'x' * 43}"


async def test_socket_tells_a_stranger_nothing(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await server.hf.open()
    for name in ("document", "documents"):
        monkeypatch.setattr(store, name, _away)
    headers = {"Authorization": f"Bearer {STRANGE}"}
    with pytest.raises(InvalidStatus) as refused:
        async with talking(server, "/v1/stream/ws", headers=headers):
            pass
    answer = refused.value.response
    assert (answer.status_code, PLACE in answer.body.decode()) == (503, False)
    assert json.loads(answer.body)["request_id"] == answer.headers["X-Request-Id"]
    async with talking(server, "/v1/stream/ws", headers={}) as talk:
        await talk.socket.send(json.dumps({"type": "auth", "token": STRANGE}))
        said = await talk.hear()
    assert (said["problem"]["status"], PLACE in json.dumps(said)) == (503, False)


@pytest.mark.parametrize("role", ["viewer", "admin"])
async def test_socket_tells_only_administrators(
    server: Server, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    own = await token(server, "user:vic", role)
    async with Worker(asking(), on=server.hf, poll=0.05):
        run = await started(server, asking())
    async with talking(server, "/v1/stream/ws", headers=bearer(own)) as talk:
        await talk.until("hello")
        monkeypatch.setattr(await server.hf.open(), "get_run", _away)
        said = await talk.ask("subscribe", run=run)
    assert said["problem"]["code"] == "store_unavailable"
    assert (PLACE in json.dumps(said)) == (role == "admin")


async def test_agent_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with speaking("memory:", refund()) as server, agent(server) as found:
        store = await server.hf.open()
        for name in ("get_run", "list_runs"):
            monkeypatch.setattr(store, name, _away)
        told = [await found.fails("get_run", run="x")]
        for act in (found.client.list_resources(), found.client.read_resource("holdfast://runs/x")):
            with pytest.raises(MCPError) as failed:
                await act
            told.append(str(failed.value))
    assert all("not available" in each and PLACE not in each for each in told), told
