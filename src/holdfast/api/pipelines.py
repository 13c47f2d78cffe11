"""Runs of pipelines, found for whoever asks over HTTP."""

from __future__ import annotations

from holdfast.api.routing import Call
from holdfast.attractor.stored_source import pipeline_of
from holdfast.errors import RunNotFoundError
from holdfast.frontends.dot.document import Pipeline
from holdfast.frontends.dot.lower import DIALECT
from holdfast.model.fingerprint import dialect_of
from holdfast.runs.events import reader_of
from holdfast.runs.service import RunService
from holdfast.store.protocols import RunRow


async def find_pipeline(call: Call, run: str) -> tuple[RunService, RunRow]:
    """Raises RunNotFoundError, also for a run that is none of a pipeline."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    if dialect_of(row.version) != DIALECT:
        raise RunNotFoundError(
            f"run {row.id} is one of flow {row.flow!r}, not of a pipeline.",
            hint=f"GET /v1/runs/{row.id} shows it.",
            run=row.id,
        )
    return service, row


async def document_of(service: RunService, row: RunRow) -> Pipeline:
    return pipeline_of((await reader_of(service, row)).graph.spec)
