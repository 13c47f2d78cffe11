"""Who uses the tools: a caller of the interface who may ask and follow, and decide nothing."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from starlette.requests import Request

from holdfast.api.auth.grants import CredentialGrant
from holdfast.api.auth.principal import Principal, Right
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
"""What no agent has here, whatever its credential gives elsewhere."""
WORKING: Final = (Right.runs_write, Right.holds_write)
"""What an agent on this machine has: with what they imply, all that the tools ask for."""
BEAT: Final = 2.0
"""Seconds between two progress messages while a caller waits, and between two looks without a signal."""


def as_agent(principal: Principal) -> Principal:
    """The same, as the holds see it: by this channel, and without the rights that decide."""
    actor = msgspec.structs.replace(principal.actor, channel=CHANNEL, rights=frozenset())
    return msgspec.structs.replace(principal, actor=actor, rights=principal.rights - DECIDING)


def agent_here(subject: str, tenant: str = DEFAULT_TENANT) -> Principal:
    """An agent that a person starts on their own machine."""
    grant = CredentialGrant(subject=subject, tenant=tenant, rights=WORKING)
    return as_agent(grant.principal(method="local", credential="", channel=CHANNEL))


class McpCaller:
    """One request of an agent. `call`: how the interface's own routes are asked on its behalf; `site`: where
    people open what it asked, if that is known. `refused`: hears what it has no right to."""

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
        # Bare: headers of the protocol's own request, such as an Idempotency-Key, are not the route's.
        bare = Request({"type": "http", "method": "POST", "path": "/mcp", "headers": [], "query_string": b""})
        self.call = ApiCall(bare, self.principal, hf, route, new_id(), settings)

    @property
    def closing(self) -> bool:
        """Whether the server is about to stop, and releases the callers that wait."""
        return hub_of(self.hf).closing

    def require(self, right: Right) -> None:
        """Raises HttpError."""
        if not self.principal.may(right):
            raise no_right(str(right))

    def require_own(self, row: RunRow) -> None:
        """Raises ForbiddenError: what others started is theirs to stop, with the questions that it asks."""
        if row.started_by != self.call.actor.id:
            raise ForbiddenError(
                f"run {row.id} was started by {row.started_by or 'somebody else'}, not by you.",
                hint="Ask them, or a person who runs this server.",
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
        """What `look` finds, as soon as it does; None: the time was over, or the server is about to end.
        `bell`: rings when it is worth a look."""
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
