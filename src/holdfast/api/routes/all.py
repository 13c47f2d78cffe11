"""Every theme; a server has them all."""

from __future__ import annotations

from holdfast.api.routes import audit, checkpoints, hold_notes, holds, runs, session, signing, views
from holdfast.api.routing import Routes

THEMES: tuple[Routes, ...] = (
    runs.routes,
    holds.routes,
    hold_notes.routes,
    checkpoints.routes,
    audit.routes,
    views.routes,
    session.routes,
    signing.routes,
)
