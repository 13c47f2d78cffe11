"""Every page; a server has them all."""

from __future__ import annotations

from typing import Final

from holdfast.api.pages import flows, holds, home, links, runs, static, static__scripts
from holdfast.api.routes import sign_in
from holdfast.api.routing import Route

PAGES: Final[tuple[Route, ...]] = tuple(
    route
    for theme in (home, holds, links, runs, flows, sign_in, static, static__scripts)
    for route in theme.routes.found
)
