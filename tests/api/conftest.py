"""Servers that really listen, on a free port of loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast import Flow, Holdfast, Worker
from holdfast.api.app import ApiSettings, build
from holdfast.api.auth.authenticator import Authenticator
from holdfast.api.auth.local_token import LocalToken
from holdfast.api.auth.settings import SignInSettings
from holdfast.api.routes.all import THEMES
from holdfast.api.routing import Routes
from holdfast.api.server import HttpServer
from holdfast.client import AsyncClient, Retries
from tests.api.flows import both, refund
from tests.api.lossy_proxy import Lossy, lossy
from tests.deadlines import HANG

QUICK = Retries(attempts=4, first=0.01, longest=5)


class Server:
    """An instance, what serves it, and a client with its token."""

    def __init__(self, hf: Holdfast, serving: HttpServer, token: str) -> None:
        self.hf = hf
        self.serving = serving
        self.token = token
        self.client = httpx2.AsyncClient(
            base_url=serving.address, headers={"Authorization": f"Bearer {token}"}, timeout=HANG
        )

    async def json(self, method: str, path: str, status: int = 200, **more: Any) -> Any:
        answer = await self.client.request(method, path, **more)
        assert answer.status_code == status, (answer.status_code, answer.text)
        return answer.json() if answer.content else None


@asynccontextmanager
async def serving(
    hf: Holdfast,
    settings: ApiSettings | None = None,
    sign_in: SignInSettings | None = None,
    themes: Iterable[Routes] = THEMES,
    **options: Any,
) -> AsyncIterator[Server]:
    own = LocalToken()
    auth = Authenticator(hf, sign_in, local=own)
    app = build(hf, auth, settings or ApiSettings(), themes)
    listens = HttpServer(app, host="127.0.0.1", port=0, **options)
    ready = asyncio.Event()
    task = asyncio.create_task(listens.serve(ready.set))
    await ready.wait()
    server = Server(hf, listens, own.token)
    try:
        yield server
    finally:
        await server.client.aclose()
        listens.stop()
        await task


@pytest.fixture
async def server(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Server]:
    async with Holdfast(f"sqlite:{tmp_path / 's.db'}") as hf, serving(hf) as found:
        yield found


@pytest.fixture
async def shop(server: Server) -> AsyncIterator[Server]:
    """A server whose instance has a worker, of the flows of `flows.py`."""
    async with Worker(refund(), both(), on=server.hf):
        yield server


@pytest.fixture
def greeting() -> Flow:
    flow = Flow("greeting", effect="pure")

    async def greet(s: Any) -> dict[str, Any]:
        return {"said": f"hello {s['name']}"}

    flow.node(id="greet")(greet)
    return flow


@pytest.fixture
async def client(shop: Server) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(shop.serving.address, shop.token, retries=QUICK) as found:
        yield found


@pytest.fixture
async def road(shop: Server) -> AsyncIterator[Lossy]:
    async with lossy(shop.serving.address) as found:
        yield found


@pytest.fixture
async def far(shop: Server, road: Lossy) -> AsyncIterator[AsyncClient]:
    """A client whose requests meet what the road's script says."""
    async with AsyncClient(road.address, shop.token, retries=QUICK) as found:
        yield found
