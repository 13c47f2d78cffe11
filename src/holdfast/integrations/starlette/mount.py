"""`hf.asgi`: API, pages, streams and the web app as an application to mount under any path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.api.app import ApiSettings, build
from holdfast.api.auth.rights import Right
from holdfast.api.health import ReadinessApp
from holdfast.api.inbound.settings import settings_from_environment as inbound_settings
from holdfast.api.pages.web_app import packaged_app
from holdfast.api.routes.all import THEMES
from holdfast.errors import HoldfastError, StoreError
from holdfast.integrations.mcp.http import routes as mcp_routes
from holdfast.integrations.starlette.authenticators import authenticator_for
from holdfast.integrations.starlette.state import state_of

if TYPE_CHECKING:
    from holdfast.app.holdfast import Holdfast


def mounted_app(
    hf: Holdfast, *, authenticator: Any = None, allow_anonymous: bool = False, settings: Any = None
) -> ASGIApp:
    own: ApiSettings = settings or ApiSettings(web_app=packaged_app(), inbound=inbound_settings())
    found = authenticator_for(hf, authenticator, allow_anonymous=allow_anonymous, hosts=own.hosts)
    state = state_of(hf)
    state.add_authenticator(authenticator, allow_anonymous, found)
    app = build(hf, found, own, [*THEMES, mcp_routes])

    async def may_know(connection: HTTPConnection) -> bool:
        try:
            who = await found.authenticate(Request(connection.scope))
        except HoldfastError:
            return False
        return who is not None and who.may(Right.admin)

    async def mounted(scope: Scope, receive: Receive, send: Send) -> None:
        # A lifespan that begins later has a new state.
        standing = state.standing
        if standing.store is None and not state.managed:
            try:
                standing.store = await hf.open()
            except StoreError as error:
                standing.wrong = f"the store does not answer: {error.message}"
        await ReadinessApp(app, standing, may_know)(scope, receive, send)

    return mounted
