"""Every theme; a server has them all."""

from __future__ import annotations

from holdfast.api.routes import (
    artifacts,
    audit,
    checkpoints,
    history,
    hold_notes,
    holds,
    runs,
    session,
    signing,
    streams,
    views,
)
from holdfast.api.routing import Routes

THEMES: tuple[Routes, ...] = (
    runs.routes,
    history.routes,
    artifacts.routes,
    holds.routes,
    hold_notes.routes,
    checkpoints.routes,
    audit.routes,
    views.routes,
    session.routes,
    signing.routes,
    streams.routes,
)
