"""Every theme; a server has them all."""

from __future__ import annotations

from holdfast.api.routes import runs
from holdfast.api.routing import Routes

THEMES: tuple[Routes, ...] = (runs.routes,)
