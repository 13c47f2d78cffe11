"""Runs on the wire."""

from __future__ import annotations

import msgspec

from holdfast.api.wire.common import moment
from holdfast.store.base import RunRow


class RunWire(msgspec.Struct, kw_only=True):
    id: str
    flow: str
    version: str
    status: str
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
        status=str(row.status),
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
