"""Every theme; a server has them all."""

from __future__ import annotations

from holdfast.api.routes import (
    admin,
    arranging,
    artifacts,
    audit,
    checkpoints,
    deployments,
    evidence,
    flows,
    history,
    hold_notes,
    holds,
    inbound,
    people,
    pipeline_events,
    pipeline_questions,
    pipelines,
    runs,
    schedules,
    session,
    streams,
    threads,
    views,
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
    views.routes,
    inbound.routes,
    evidence.routes,
    people.routes,
    arranging.routes,
    deployments.routes,
    session.routes,
    streams.routes,
    pipelines.routes,
    pipeline_questions.routes,
    pipeline_events.routes,
)
