"""All topics of a server."""

from __future__ import annotations

from holdfast.api.routes import (
    admin,
    artifacts,
    audit,
    checkpoints,
    deployments,
    directory,
    event_streams,
    evidence,
    flows,
    history,
    hold_notes,
    hold_settings,
    holds,
    inbound,
    pipeline_events,
    pipeline_questions,
    pipelines,
    runs,
    saved_views,
    schedules,
    session,
    threads,
)
from holdfast.api.routing import Routes

THEMES: tuple[Routes, ...] = (
    runs.routes,
    history.routes,
    artifacts.routes,
    threads.routes,
    flows.routes,
    schedules.routes,
    admin.routes,
    holds.routes,
    hold_notes.routes,
    checkpoints.routes,
    audit.routes,
    saved_views.routes,
    inbound.routes,
    evidence.routes,
    directory.routes,
    hold_settings.routes,
    deployments.routes,
    session.routes,
    event_streams.routes,
    pipelines.routes,
    pipeline_questions.routes,
    pipeline_events.routes,
)
