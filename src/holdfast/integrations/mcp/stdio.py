"""The protocol over stdin and stdout, for an agent that starts this process: on a local store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, cast

from mcp.server.stdio import stdio_server
from mcp_types import JSONRPCError, JSONRPCResponse

from holdfast.api.live.hub import hub_of
from holdfast.api.settings import ApiSettings
from holdfast.integrations.mcp.caller import McpCaller
from holdfast.integrations.mcp.http import routes
from holdfast.integrations.mcp.pending_requests import FAREWELL, PATIENCE, PendingRequests
from holdfast.integrations.mcp.server import make_server
from holdfast.integrations.mcp.stdin_lines import StdinLines, ended_by_sigterm
from holdfast.types.redaction import tenant_scope

if TYPE_CHECKING:
    from types import TracebackType

    import anyio
    from mcp.shared.message import SessionMessage

    from holdfast.api.auth.principal import Principal
    from holdfast.app.holdfast import Holdfast


async def serve_stdio(hf: Holdfast, principal: Principal) -> None:
    """Until stdin ends or SIGTERM; requests that arrived before are answered."""
    (route,), settings = routes.found, ApiSettings()
    server = make_server(lambda _ctx: McpCaller(hf, principal, route, settings))
    lines, under_way = StdinLines(), PendingRequests()
    # The library's reader blocks in a thread, which Ctrl-C cannot interrupt.
    texts = cast("anyio.AsyncFile[str]", _texts(hf, lines, under_way))
    with ended_by_sigterm(lines.stop), tenant_scope(principal.tenant):
        async with stdio_server(stdin=texts) as (reading, writing):
            replies = _ReplyStream(writing, under_way)
            await server.run(reading, replies, server.create_initialization_options())


async def _texts(hf: Holdfast, lines: StdinLines, under_way: PendingRequests) -> AsyncIterator[str]:
    async for line in lines:
        under_way.add_request(line)
        yield line.decode("utf-8", "replace")
    # When this ends the library cancels all pending requests.
    if lines.stopped or not await under_way.over(PATIENCE):
        # Ends the waits of check_answer, which would otherwise last up to their own limit.
        hub_of(hf).close()
        await under_way.over(FAREWELL)


class _ReplyStream:
    """Writes messages, and notes which requests they answer."""

    def __init__(self, stream: Any, under_way: PendingRequests) -> None:
        self._stream = stream
        self._under_way = under_way

    async def send(self, item: SessionMessage, /) -> None:
        await self._stream.send(item)
        if isinstance(item.message, (JSONRPCResponse, JSONRPCError)):
            self._under_way.remove_request(item.message.id)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> _ReplyStream:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()
