"""All pages of a server."""

from __future__ import annotations

from typing import Final

from holdfast.api.pages import absence, assets, flows, hold, inbox, links, runs, web_app
from holdfast.api.routes import sign_in
from holdfast.api.routing import Route

_REPLACED: Final = (inbox, hold, runs, flows, absence)
"""Pages whose addresses the web app has, if it is built."""
_ALWAYS: Final = (links, sign_in, assets)
PAGES: Final[tuple[Route, ...]] = tuple(
    route for theme in (*_REPLACED, *_ALWAYS) for route in theme.routes.found
)
"""The pages without the app. With the app, they answer below `/plain`."""
APP_PAGES: Final[tuple[Route, ...]] = tuple(
    route for theme in (web_app, *_ALWAYS) for route in theme.routes.found
)
PLAIN: Final = "/plain"
