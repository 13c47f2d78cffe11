"""All pages of a server."""

from __future__ import annotations

from typing import Final

from holdfast.api.pages import absence, assets, flows, hold, inbox, links, runs
from holdfast.api.routes import sign_in
from holdfast.api.routing import Route

_THEMES: Final = (inbox, hold, links, runs, flows, absence, sign_in, assets)
PAGES: Final[tuple[Route, ...]] = tuple(route for theme in _THEMES for route in theme.routes.found)
