"""Servers that agents speak to, and the agents: clients of the protocol's own library."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from holdfast import Flow, Holdfast, Worker
from holdfast.api.app import ApiSettings
from holdfast.api.routes.all import THEMES
from holdfast.integrations.ask_people_flow import ask_people
from holdfast.integrations.mcp.http import routes
from tests.api.conftest import Server, serving
from tests.api.sign_in import bearer, token
from tests.deadlines import HANG

WORKS = ("runs:write", "holds:write")
"""The rights of a token that is made for an agent."""


@asynccontextmanager
async def speaking(
    store: str, *flows: Flow, works: bool = True, settings: ApiSettings | None = None
) -> AsyncIterator[Server]:
    """As `holdfast serve` does: with the route, and a worker that carries what agents ask."""
    async with (
        Holdfast(store) as hf,
        serving(hf, settings, themes=[*THEMES, routes]) as server,
    ):
        if not works:
            yield server
            return
        async with Worker(*flows, ask_people, on=hf):
            yield server


class Agent:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def does(self, tool: str, **given: Any) -> Any:
        """What the tool gives; its error fails the test."""
        said = await self.client.call_tool(tool, given)
        assert not said.is_error, said.content
        return said.structured_content

    async def fails(self, tool: str, **given: Any) -> str:
        """What it says is wrong."""
        said = await self.client.call_tool(tool, given)
        assert said.is_error, said
        return said.content[0].text

    async def tools(self) -> dict[str, Any]:
        return {each.name: each for each in (await self.client.list_tools()).tools}


@asynccontextmanager
async def agent(
    server: Server,
    subject: str = "service:bot",
    *roles: str,
    rights: tuple[str, ...] = WORKS,
    tenant: str = "default",
    mode: str = "auto",
) -> AsyncIterator[Agent]:
    secret = await token(server, subject, *roles, rights=rights, tenant=tenant)
    async with httpx2.AsyncClient(headers=bearer(secret), timeout=HANG) as http:
        way = streamable_http_client(f"{server.serving.address}/mcp", http_client=http)
        async with Client(way, mode=mode) as client:
            yield Agent(client)
