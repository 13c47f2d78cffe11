"""`POST /mcp` of a server: streamable HTTP, with the credential of every other route.

No session is kept: any of several servers can answer a request, and a revoked credential is refused with the
next request.
"""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from holdfast.api.auth.rights import Access
from holdfast.api.problems import HttpError
from holdfast.api.request_body import read_bytes
from holdfast.api.routing import ApiCall, Routes
from holdfast.api.strict_json import require_unique_keys
from holdfast.integrations.mcp.caller import McpCaller

if TYPE_CHECKING:
    from holdfast.api.auth.authenticator import Authenticator

routes: Final = Routes("mcp", prefix="", reads_body=True)


@routes.post("/mcp", needs=Access.signed_in, more=(202,), media=("application/json", "text/event-stream"))
async def speak_mcp(call: ApiCall) -> Response:
    """The Model Context Protocol, for agents: takes one message, answers with one or with a stream.

    Revisions 2025-03-26 to 2026-07-28, without sessions. Requires a token; cookies are not accepted."""
    # find_spec and not an import: the library takes most of
    # a second to import, and most servers never need it.
    if find_spec("mcp") is None:
        raise HttpError(
            501, "MCP is not installed on this server.", code="not_installed",
            hint="On the server, install the extra `mcp`: pip install 'holdfast-flow[mcp]'.",
        )  # fmt: skip
    # A cookie would let any page in the browser speak for the person who is signed in.
    if call.who.method == "session":
        raise HttpError(
            403, "agents must use a token, not a cookie.", code="forbidden",
            hint="Send `Authorization: Bearer TOKEN`; `holdfast tokens create` makes one.",
        )  # fmt: skip
    _require_origin(call)
    body = await read_bytes(call.request, call.settings.most_body)
    # What is no JSON is refused by the library, in the format of its protocol.
    with suppress(ValueError):
        require_unique_keys(body, "message")
    authenticator: Authenticator = call.request.app.state.authenticator

    async def refused(error: HttpError) -> None:
        await authenticator.note_refusal(
            call.request, call.route.path, call.principal, error, call.request_id
        )

    site = authenticator.settings.public_url or str(call.request.base_url).rstrip("/")
    agent = McpCaller(call.hf, call.who, call.route, call.settings, site=site, refused=refused)
    return McpResponse(agent, body)


def _require_origin(call: ApiCall) -> None:
    """Refuses requests from pages of other sites in a user's browser, unless their origin is allowed."""
    origin = call.request.headers.get("origin")
    authenticator: Authenticator = call.request.app.state.authenticator
    if (
        origin is not None
        and origin not in call.settings.origins
        and not authenticator.same_origin(call.request)
    ):
        raise HttpError(403, "the request came from a page of another site.", code="cross_site")


class McpResponse(Response):
    """An answer that the MCP library's server writes."""

    def __init__(self, agent: McpCaller, body: bytes) -> None:
        super().__init__()
        self.agent = agent
        self.given = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from holdfast.integrations.mcp.server import make_server

        # One per request: it ends with the request, even if the server restarts meanwhile.
        manager = StreamableHTTPSessionManager(
            make_server(lambda _ctx: self.agent), stateless=True, max_request_body_size=len(self.given) + 1
        )
        async with manager.run():
            await manager.handle_request(
                _trimmed(scope), _replayed(self.given, receive), self._dressing(send)
            )

    def _dressing(self, send: Send) -> Send:
        """With the headers of every answer; the content is small, or a stream."""
        more = [(name, value) for name, value in self.raw_headers if name != b"content-length"]

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                there = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(each for each in more if each[0] not in there)]
            await send(message)

        return dressed


def _trimmed(scope: Scope) -> Scope:
    """Strips a header's value: the HTTP parser keeps trailing blanks."""
    return {**scope, "headers": [(name, value.strip()) for name, value in scope["headers"]]}


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body, which was already read, then further messages: a disconnect of the client."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay
