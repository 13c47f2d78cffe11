"""The protocol over stdin and stdout, for an agent that starts it: on a store of this machine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, cast

from mcp.server.stdio import stdio_server

from holdfast.api.settings import ApiSettings
from holdfast.integrations.mcp.agent import Agent
from holdfast.integrations.mcp.http import routes
from holdfast.integrations.mcp.lines import lines_of_stdin
from holdfast.integrations.mcp.server import make_server

if TYPE_CHECKING:
    import anyio

    from holdfast.api.auth.principal import Principal
    from holdfast.app.house import Holdfast


async def speak(house: Holdfast, principal: Principal) -> None:
    """Until stdin ends."""
    (route,), settings = routes.found, ApiSettings()
    server = make_server(lambda _ctx: Agent(house, principal, route, settings))
    # The library's own reader sits in a thread that Ctrl-C does not reach.
    lines = cast("anyio.AsyncFile[str]", _texts())
    async with stdio_server(stdin=lines) as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


async def _texts() -> AsyncIterator[str]:
    async for line in lines_of_stdin():
        yield line.decode("utf-8", "replace")
