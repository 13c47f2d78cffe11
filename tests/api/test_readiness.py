"""What a server and a worker tell strangers while they are not ready."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import httpx2
import pytest

from holdfast import Flow, Holdfast
from holdfast.api.app import ApiSettings
from holdfast.api.auth.local_token import LocalToken
from holdfast.api.health import ReadinessApp, ServerState
from holdfast.cli.commands import serve
from holdfast.cli.commands.serve import ServeOptions, ServeRunner
from holdfast.cli.server_access import ServerAccess
from holdfast.errors import StoreUnavailableError
from holdfast.runs.worker.health_server import Health
from tests.api.test_unknown_fields import ROUTES, filled

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-EDGE-05")]

PLACE = "db.internal.example:5432"


def _away(*_: Any, **__: Any) -> Any:
    raise StoreUnavailableError(f"PostgreSQL at {PLACE} does not answer.")


def _client(app: Any) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://localhost")


async def test_readyz_gives_the_reason_to_administrators_and_the_log_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Holdfast("memory:") as hf:
        door = ServerAccess(hf, host="127.0.0.1", settings=ApiSettings())
        door.auth.local = own = LocalToken()
        state = ServerState()
        state.wrong = f"the store does not answer: {PLACE}"
        async with _client(ReadinessApp(door.app, state, door.may_see_details)) as client:
            with caplog.at_level(logging.WARNING):
                for _ in range(3):
                    answer = await client.get("/readyz")
            assert (answer.status_code, answer.json()) == (503, {"ready": False})
            assert [PLACE in each.getMessage() for each in caplog.records] == [True]
            wrong = await client.get("/readyz", headers={"Authorization": "Bearer hf_wrong"})
            assert wrong.json() == {"ready": False}
            known = await client.get("/readyz", headers={"Authorization": f"Bearer {own.token}"})
            assert known.json() == {"ready": False, "missing": [state.wrong]}
            for path in ("/v1/runs", "/", "/runs/x", "/mcp"):
                answer = await client.get(path)
                assert (answer.status_code, PLACE in answer.text) == (503, False)
            state.store = await hf.open()
            assert (await client.get("/readyz")).json() == {"ready": True}


async def test_no_route_tells_a_stranger_where_the_store_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials are in the store: while it is away, every caller is a stranger."""
    settings = ApiSettings(anonymous_pace=0)
    async with Holdfast("memory:") as hf:
        door = ServerAccess(hf, host="127.0.0.1", settings=settings)
        store = await hf.open()
        for name in ("document", "documents", "hold", "get_run", "append_audit"):
            monkeypatch.setattr(store, name, _away)
        text = {"Authorization": f"Bearer hf_{'a' * 12}_{'x' * 43}"}
        async with _client(door.app) as client:
            for route in ROUTES:
                for accept in ("application/json", "text/html"):
                    answer = await client.request(
                        route.method, filled(route.path), headers={**text, "Accept": accept}
                    )
                    assert answer.status_code in (503, 303), (route.path, answer.text)
                    assert PLACE not in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "0.0.0.0", "10.0.0.7", "worker.example"])
async def test_worker_gives_the_reason_to_this_machine_only(host: str) -> None:
    health = Health(f"[{host}]:0" if ":" in host else f"{host}:0")
    health.wrong = f"the store does not answer: {PLACE}"
    near = host in ("127.0.0.1", "::1", "localhost")
    async with _client(health._asgi) as client:
        answer = await client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"ready": False} | ({"missing": [health.wrong]} if near else {})


async def test_requests_are_let_in_when_the_flows_are_stored(
    monkeypatch: pytest.MonkeyPatch, greeting: Flow
) -> None:
    seen: list[Any] = []
    async with Holdfast("memory:") as hf:
        service, door = await hf.service(), ServerAccess(hf, host="127.0.0.1", settings=ApiSettings())
        runner = ServeRunner(hf, door, None, ServeOptions(flows=[], port=0, json=True))
        store_flow = service.store_flow

        async def stored(program: Any) -> None:
            seen.append(runner.standing.store)
            await store_flow(program)

        monkeypatch.setattr(service, "store_flow", stored)
        monkeypatch.setattr(serve, "remember_source", lambda *_: None)
        monkeypatch.setattr("holdfast.app.loader.address_in", lambda *_: "")
        task = asyncio.create_task(runner._open_and_work([("greeting.py", greeting)]))
        while runner.standing.store is None and not task.done():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.001)
        assert seen == [None]
        assert [row.name for row in await service.store.flows()] == ["greeting"]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        runner.serving._socket.close()
