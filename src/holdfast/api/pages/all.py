"""Every page; a server has them all."""

from __future__ import annotations

from typing import Final

from holdfast.api.pages import flows, holds, home, links, runs, scripts, static
from holdfast.api.routes import signing
from holdfast.api.routing import Route

PAGES: Final[tuple[Route, ...]] = tuple(
    route
    for theme in (home, holds, links, runs, flows, signing, static, scripts)
    for route in theme.routes.found
)
