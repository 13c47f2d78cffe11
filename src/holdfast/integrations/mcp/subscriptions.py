"""Streams of resource changes (`subscriptions/listen`), by the hub that all streams share."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError

from holdfast.api.live.channel import StreamSignal
from holdfast.api.live.hub import hub_of
from holdfast.api.problems import for_caller
from holdfast.errors import HoldfastError
from holdfast.integrations.mcp import resources
from holdfast.integrations.mcp.caller import BEAT, McpCaller
from holdfast.integrations.mcp.change_signals import poll_then_wait, questions_signal, run_signal

MOST_FOLLOWED: Final = 100
"""Maximum number of resources of one stream."""


async def listen(
    agent: McpCaller, ctx: ServerRequestContext[Any, Any], params: types.SubscriptionsListenRequestParams
) -> types.SubscriptionsListenResult:
    """Until the client is gone or the server ends. Raises MCPError if there are too many resources."""
    hub = hub_of(agent.hf)
    wanted = (params.notifications.resource_subscriptions or [])[:MOST_FOLLOWED]
    bus = InMemorySubscriptionBus()
    handler = ListenHandler(bus)
    async with AsyncExitStack() as stack:
        try:
            hub.require_room(agent.call.settings.most_streams)
            # Read before the acknowledgement, so that no later change is missed.
            known = {uri: await _watch(agent, uri, stack) for uri in dict.fromkeys(wanted)}
        except HoldfastError as error:
            shown = for_caller(error, agent.principal, agent.call.request_id)
            raise MCPError(types.INVALID_PARAMS, str(shown)) from error
        tasks = [
            asyncio.create_task(_publish_changes(agent, uri, *begun, bus)) for uri, begun in known.items()
        ]
        tasks.append(asyncio.create_task(_end(agent, handler)))
        try:
            return await handler(ctx, params)
        finally:
            for task in tasks:
                task.cancel()


async def _watch(agent: McpCaller, uri: str, stack: AsyncExitStack) -> tuple[StreamSignal, str]:
    bell = await stack.enter_async_context(_signal_for(agent, uri))
    return bell, await resources.version_of(agent, uri)


def _signal_for(agent: McpCaller, uri: str) -> AbstractAsyncContextManager[StreamSignal]:
    """Raises HoldfastError if it is not an address."""
    kind, name = resources.parts_of(uri)
    return run_signal(agent.call, name) if kind == "runs" else questions_signal(agent.call)


async def _publish_changes(
    agent: McpCaller, uri: str, bell: StreamSignal, known: str, bus: InMemorySubscriptionBus
) -> None:
    async def changed() -> str | None:
        try:
            now = await resources.version_of(agent, uri)
        except HoldfastError:
            return None  # it cannot be read at the moment: tried again later
        return None if now == known else now

    while not agent.closing:
        now = await poll_then_wait(bell, changed, BEAT)
        if now is not None:
            known = now
            await bus.publish(ResourceUpdated(uri=uri))


async def _end(agent: McpCaller, handler: ListenHandler) -> None:
    while not agent.closing:
        await hub_of(agent.hf).closing_signal.wait(60)
    handler.close()
