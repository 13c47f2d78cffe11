"""The protocol over stdin and stdout, for an agent that starts it: on a store of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp.server.stdio import stdio_server

from holdfast.api.settings import ApiSettings
from holdfast.integrations.mcp.agent import Agent
from holdfast.integrations.mcp.http import routes
from holdfast.integrations.mcp.server import make_server

if TYPE_CHECKING:
    from holdfast.api.auth.principal import Principal
    from holdfast.app.house import Holdfast


async def speak(house: Holdfast, principal: Principal) -> None:
    """Until stdin ends."""
    (route,), settings = routes.found, ApiSettings()
    server = make_server(lambda _ctx: Agent(house, principal, route, settings))
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
