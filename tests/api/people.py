"""People and programs who call a server, each by a token of their own; and holds for them to decide."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from holdfast import Flow, Holdfast, Result
from holdfast.api.app import ApiSettings, build
from holdfast.api.auth.authenticator import Authenticator
from holdfast.api.auth.grants import CredentialGrant
from holdfast.api.auth.tokens import ApiTokens
from holdfast.api.routes.all import THEMES
from holdfast.api.server import HttpServer
from tests.deadlines import HANG

PEOPLE = {
    "dana": CredentialGrant(subject="user:dana@acme", roles=("member",)),
    "sam": CredentialGrant(subject="user:sam@acme", roles=("member",), groups=("finance",)),
    "vera": CredentialGrant(subject="user:vera@acme", roles=("viewer",)),
    "ada": CredentialGrant(subject="user:ada@acme", roles=("admin",)),
    "olga": CredentialGrant(subject="user:olga@acme", roles=("operator",)),
    "clerk": CredentialGrant(subject="service:clerk", roles=("approver",)),
    "eve": CredentialGrant(subject="user:dana@acme", tenant="elsewhere", roles=("admin",)),
}


class Hall:
    """An instance that is served, and what is said to it: `hall.ask("dana", "GET", "/v1/holds")`."""

    def __init__(self, hf: Holdfast, address: str, tokens: dict[str, str]) -> None:
        self.hf = hf
        self.tokens = tokens
        self.client = httpx2.AsyncClient(base_url=address, timeout=HANG)
        self.flows: dict[str, Flow] = {}

    async def send(self, who: str, method: str, path: str, **more: Any) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.tokens[who]}", **more.pop("headers", {})}
        return await self.client.request(method, path, headers=headers, **more)

    async def ask(self, who: str, method: str, path: str, *, status: int = 200, **more: Any) -> Any:
        answer = await self.send(who, method, path, **more)
        assert answer.status_code == status, (answer.status_code, answer.text)
        return answer.json() if answer.content else None

    async def asks(self, assignee: str | None = "user:dana@acme", **asked: Any) -> str:
        """A run that waits for somebody: the hold's id."""
        flow = Flow("refund", effect="pure")
        given = {"prompt": "Pay 250?", "options": ["approve", "reject"], **asked}
        flow.hold("approve", assignee=assignee, **given)
        (hold,) = (await flow.run({"amount": 250}, on=self.hf)).holds
        self.flows[hold.id] = flow
        return hold.id

    async def goes_on(self, hold: str) -> Result:
        row = await (await self.hf.open()).hold(hold)  # type: ignore[arg-type]
        assert row is not None
        return await self.flows[hold].resume(row.run, on=self.hf)


@asynccontextmanager
async def hall_of(hf: Holdfast, settings: ApiSettings | None = None) -> AsyncIterator[Hall]:
    made = ApiTokens(await hf.open())
    tokens = {name: (await made.create(grant, by="user:test"))[1] for name, grant in PEOPLE.items()}
    app = build(hf, Authenticator(hf), settings or ApiSettings(), THEMES)
    listens = HttpServer(app, host="127.0.0.1", port=0)
    ready = asyncio.Event()
    task = asyncio.create_task(listens.serve(ready.set))
    await ready.wait()
    hall = Hall(hf, listens.address, tokens)
    try:
        yield hall
    finally:
        await hall.client.aclose()
        listens.stop()
        await task
