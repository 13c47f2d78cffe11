"""The caller of the tools: an agent, which may ask and follow, but not decide."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from starlette.requests import Request

from holdfast.api.auth.grants import CredentialGrant
from holdfast.api.auth.principal import Principal
from holdfast.api.auth.rights import Right
from holdfast.api.live.channel import StreamSignal
from holdfast.api.live.hub import hub_of
from holdfast.api.problems import HttpError, no_right
from holdfast.api.routing import ApiCall, Route
from holdfast.api.settings import ApiSettings
from holdfast.errors import ForbiddenError
from holdfast.integrations.mcp.change_signals import poll_then_wait
from holdfast.types.ids import DEFAULT_TENANT, new_id

if TYPE_CHECKING:
    from holdfast.app.holdfast import Holdfast
    from holdfast.store.rows import RunRow

T = TypeVar("T")
Refused = Callable[[HttpError], Awaitable[None]]
Progress = Callable[[float, float | None, str | None], Awaitable[None]]

CHANNEL: Final = "mcp"
DECIDING: Final = frozenset({Right.resolve, Right.manage, Right.override, Right.admin})
"""Rights that no agent has here, whatever its credential allows elsewhere."""
WORKING: Final = (Right.runs_write, Right.holds_write)
"""The rights of an agent on this machine: with what they imply, all that the tools need."""
BEAT: Final = 2.0
"""Seconds between two progress messages while a caller waits, and between two checks without a signal."""


def as_agent(principal: Principal) -> Principal:
    """The same caller for the holds: on this channel, and without the rights to decide."""
    actor = msgspec.structs.replace(principal.actor, channel=CHANNEL, rights=frozenset())
    return msgspec.structs.replace(principal, actor=actor, rights=principal.rights - DECIDING)


def agent_here(subject: str, tenant: str = DEFAULT_TENANT) -> Principal:
    """An agent that a person starts on their own machine."""
    grant = CredentialGrant(subject=subject, tenant=tenant, rights=WORKING)
    return as_agent(grant.principal(method="local", credential="", channel=CHANNEL))


class McpCaller:
    """One request of an agent. `call`: calls the API's routes on its behalf; `site`: the address at which
    people open its questions, if known. `refused`: called with each refused request."""

    def __init__(
        self,
        hf: Holdfast,
        principal: Principal,
        route: Route,
        settings: ApiSettings,
        *,
        site: str | None = None,
        refused: Refused | None = None,
    ) -> None:
        self.principal = as_agent(principal)
        self.hf = hf
        self.site = site
        self.refused = refused
        # Without the headers of the MCP request: its Idempotency-Key, for one, is not meant for the route.
        bare = Request({"type": "http", "method": "POST", "path": "/mcp", "headers": [], "query_string": b""})
        self.call = ApiCall(bare, self.principal, hf, route, new_id(), settings)

    @property
    def closing(self) -> bool:
        """Whether the server is shutting down and releases waiting callers."""
        return hub_of(self.hf).closing

    def require(self, right: Right) -> None:
        """Raises HttpError."""
        if not self.principal.may(right):
            raise no_right(str(right))

    def require_own(self, row: RunRow) -> None:
        """Raises ForbiddenError: only the agent that started a run may stop it or withdraw its questions."""
        if row.started_by != self.call.actor.id:
            raise ForbiddenError(
                f"run {row.id} was started by {row.started_by or 'another caller'}, not by you.",
                hint="Ask that caller, or an operator of this server.",
                run=row.id,
            )

    async def wait(
        self,
        seconds: float,
        look: Callable[[], Awaitable[T | None]],
        bell: AbstractAsyncContextManager[StreamSignal],
        progress: Progress,
        text: str,
    ) -> T | None:
        """The result of `look`, as soon as there is one; None at the timeout, or when the server shuts down.
        `bell`: signals that another look may succeed."""
        began = beat = time.monotonic()
        async with bell as ringing:
            while True:
                now = time.monotonic()
                over = now - began >= seconds or self.closing
                if now - beat >= BEAT:
                    beat = now
                    await progress(round(now - began, 1), seconds, text)
                pause = 0.0 if over else min(BEAT, began + seconds - now)
                found = await poll_then_wait(ringing, look, pause)
                if over or found is not None:
                    return found
