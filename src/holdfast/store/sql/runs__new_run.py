"""The row of a new run, as every SQL store inserts it."""

from __future__ import annotations

from holdfast.store.protocols import NewRun, RunRow
from holdfast.types.status import RunStatus


def new_run_row(now: int, new: NewRun) -> RunRow:
    """The row of a run about to be inserted, which gives it its key. Claimed at once: running, term 1."""
    claimed = new.claimed_by is not None
    return RunRow(
        key=0,
        id=new.id,
        tenant=new.tenant,
        flow=new.flow,
        version=new.version,
        code=new.code,
        status=RunStatus.running if claimed else RunStatus.pending,
        lane=new.lane,
        priority=new.priority,
        term=1 if claimed else 0,
        worker=new.claimed_by,
        lease_until=new.lease_until if claimed else None,
        head=new.first[-1].seq if new.first else -1,
        event_seq=sum([r.events for r in new.first]),
        inbox_seq=0,
        ready_at=new.ready_at,
        thread=new.thread,
        instance_key=new.instance_key,
        parent_run=new.parent_run,
        forked_from=new.forked_from,
        superseded_by=None,
        created_at=new.created_at,
        updated_at=now,
        ended_at=None,
        recoveries=0,
        error=None,
        horizon=0,
        started_by=new.started_by,
        deployment=new.deployment,
        gate=new.gate,
    )
