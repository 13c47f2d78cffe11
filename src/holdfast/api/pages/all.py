"""All pages of a server."""

from __future__ import annotations

from typing import Final

from holdfast.api.pages import assets, flows, hold, inbox, links, runs
from holdfast.api.routes import sign_in
from holdfast.api.routing import Route

PAGES: Final[tuple[Route, ...]] = tuple(
    route for theme in (inbox, hold, links, runs, flows, sign_in, assets) for route in theme.routes.found
)
