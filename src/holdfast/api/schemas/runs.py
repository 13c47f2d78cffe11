"""Runs on the wire."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.api.schemas.common import moment
from holdfast.runs.service import RunService
from holdfast.store.protocols import RunRow
from holdfast.types.hold import HoldRow
from holdfast.types.status import RunStatus


class RunWire(msgspec.Struct, kw_only=True):
    """`status`: pending, running, waiting, pending_input, resumable, completed, failed or cancelled."""

    id: str
    flow: str
    version: str
    workflow_uri: str
    status: RunStatus
    lane: str
    priority: int
    tenant: str
    created_at: str | None
    updated_at: str | None
    ended_at: str | None = None
    thread: str | None = None
    instance_key: str | None = None
    started_by: str | None = None
    deployment: str | None = None
    parent_run: str | None = None
    forked_from: str | None = None
    superseded_by: str | None = None
    error: str | None = None
    head: int = 0
    event_seq: int = 0
    dead: bool = False
    read_only: bool = False


def run_wire(row: RunRow) -> RunWire:
    return RunWire(
        id=row.id,
        flow=row.flow,
        version=row.version,
        workflow_uri=f"{row.flow}@{row.version}",
        status=row.status,
        lane=row.lane,
        priority=row.priority,
        tenant=row.tenant,
        created_at=moment(row.created_at),
        updated_at=moment(row.updated_at),
        ended_at=moment(row.ended_at),
        thread=row.thread,
        instance_key=row.instance_key,
        started_by=row.started_by,
        deployment=row.deployment,
        parent_run=row.parent_run,
        forked_from=row.forked_from,
        superseded_by=row.superseded_by,
        error=row.error,
        head=row.head,
        event_seq=row.event_seq,
        dead=row.dead,
        read_only=row.read_only,
    )


class RunMetadata(msgspec.Struct, kw_only=True):
    """`checkpoint_id`: of the newest question that it waits with, where it waits for a person."""

    checkpoint_id: str | None = None
    checkpoint_ids: list[str] = []


class RunDetail(RunWire, kw_only=True):
    metadata: RunMetadata


async def run_detail(service: RunService, row: RunRow) -> RunDetail:
    holds = await service.holds(row.id) if row.status is RunStatus.pending_input else []
    asked = [str(hold.id) for hold in sorted(holds, key=lambda hold: hold.seq, reverse=True)]
    seen = RunMetadata(checkpoint_id=asked[0] if asked else None, checkpoint_ids=asked)
    shown = run_wire(row)
    fields = {name: getattr(shown, name) for name in shown.__struct_fields__}
    return RunDetail(**fields, metadata=seen)


def etag_of(row: RunRow) -> str:
    """Of a run as it stands: another after each record, event and change of hands."""
    return f"{row.term}.{row.head}.{row.event_seq}.{row.status}"


class RunResult(msgspec.Struct, kw_only=True):
    """What a run came to, or where it stands. What is declared secret is hidden."""

    id: str
    status: RunStatus
    state: dict[str, Any]
    artifacts: dict[str, Any]
    error: str | None = None
    open_holds: list[str] = []


class InputTaken(msgspec.Struct, kw_only=True):
    """The question that was answered, and how."""

    run_id: str
    checkpoint_id: str
    request_id: str
    status: str
    decision: Any = None
    resolved_by: str | None = None
    resolved_at: str | None = None


def input_taken(hold: HoldRow) -> InputTaken:
    said: Any = msgspec.json.decode(hold.resolution) if hold.resolution else {}
    return InputTaken(
        run_id=hold.run,
        checkpoint_id=hold.id,
        request_id=hold.id,
        status=str(hold.status),
        decision=said.get("decision"),
        resolved_by=hold.resolved_by,
        resolved_at=moment(hold.resolved_at),
    )


class PendingWire(msgspec.Struct, kw_only=True):
    """A run that waits for a person, and what it asks."""

    run_id: str
    flow: str
    thread: str | None
    checkpoint_id: str
    node: str
    prompt: str
    assignee: str | None
    created_at: str
