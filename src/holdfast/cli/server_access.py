"""Who may use a server that `holdfast serve` starts, and what it prints about signing in."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp

from holdfast.api.app import ApiSettings, build
from holdfast.api.auth import authenticator, first_token
from holdfast.api.auth.host_guard import hosts_for, is_loopback
from holdfast.api.auth.rights import Right
from holdfast.api.auth.settings import SignInSettings, sign_in_from_environment
from holdfast.api.live.hub import close_streams
from holdfast.api.routes.all import THEMES
from holdfast.app.holdfast import Holdfast
from holdfast.errors import HoldfastError
from holdfast.integrations.mcp.http import routes as mcp_routes


class ServerAccess:
    """`app`: the ASGI application. The other methods need an open store."""

    def __init__(
        self, hf: Holdfast, *, host: str, settings: ApiSettings, sign_in: SignInSettings | None = None
    ) -> None:
        self.hf = hf
        self.host = host
        found = sign_in_from_environment() if sign_in is None else sign_in
        hosts = hosts_for(host, found.public_url or None, settings.hosts)
        self.auth = authenticator.Authenticator(hf, found, most_form=settings.most_file)
        named = msgspec.structs.replace(settings, hosts=hosts)
        self.app: ASGIApp = build(hf, self.auth, named, [*THEMES, mcp_routes])

    async def admit(self) -> None:
        """Raises SettingsError if it is not safe to listen on this address."""
        await first_token.require_safe(self.auth, self.host)

    async def startup_fields(self, address: str) -> dict[str, Any]:
        """Fields of the JSON line for programs that start a server."""
        own = await first_token.add_local_token(self.auth, self.host)
        return {"token": own.token if own else None, "sign_in": await self._sign_in(address)}

    async def greeting(self, address: str) -> list[str]:
        """For people."""
        where = await self._sign_in(address)
        if where is None:
            return [f"Sign in at {self.auth.settings.public_url or address}/sign-in."]
        return [
            f"Sign in here, once and within ten minutes:  {where}",
            "`holdfast sign-in` prints a new one.",
        ]

    async def _sign_in(self, address: str) -> str | None:
        """Only if terminal and browser are on one machine: elsewhere the address would end up in logs."""
        if not is_loopback(self.host):
            return None
        return await first_token.sign_in_address(self.auth, self.auth.settings.public_url or address)

    async def may_see_details(self, connection: HTTPConnection) -> bool:
        """Whether an administrator asks. While the store is unavailable, only the local token is known."""
        try:
            caller = await self.auth.caller(connection)
        except HoldfastError:
            return False
        return caller is not None and caller.may(Right.admin)

    def close_streams(self) -> None:
        """End all streams: their clients reconnect, to another server."""
        close_streams(self.auth.hf)
