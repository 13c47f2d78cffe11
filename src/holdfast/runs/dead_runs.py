"""Dead letters: runs that were given up because their workers stopped heartbeating again and again (ADR 34).

The nodes that were running at each death are read from the journal: a node that is there every time is the
first suspect. Records wait a moment to be written together, so a worker that died in that moment was one node
further than its journal says.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.checkpoint import TypeRegistry
from holdfast.errors import HoldfastError, RunEndedError
from holdfast.model.record_bodies import EndBody, ErrorInfo
from holdfast.model.shown_names import shown_name
from holdfast.runs.driver.load import load
from holdfast.runs.engine_moves import resume_on_engine
from holdfast.runs.history.versions import readers_of
from holdfast.runs.record_codec import RecordCodec
from holdfast.store.recovery import PROGRESS
from holdfast.store.rows import ClaimRequest, RunFilter, RunRow
from holdfast.types.clock import MICROS
from holdfast.types.event import EventRow
from holdfast.types.fleet import Death
from holdfast.types.record import Kind, Record, RunBatch, Side
from holdfast.types.status import RunStatus, run_label

if TYPE_CHECKING:
    from holdfast.model.graph import Graph
    from holdfast.model.position import Position
    from holdfast.runs.service_protocol import RunAccess

# Short: if the process dies while it ends a run, workers can claim the run again.
_TTL: Final = 30 * MICROS
# Phases in which the node's own code runs.
_WORKING: Final = frozenset({"work", "doubt"})


class DeathReport(msgspec.Struct, frozen=True):
    """A death, and the nodes that were running, as `fetch` or `each[3]`. `unknown`: why they are
    not known."""

    death: Death
    nodes: tuple[str, ...] = ()
    unknown: str = ""


class DeadRun(msgspec.Struct, frozen=True):
    """A run and all its deaths, also those from before it was retried."""

    run: RunRow
    deaths: list[DeathReport]
    progressed_at: int = 0  # its last record of progress before its last death

    @property
    def counted(self) -> list[DeathReport]:
        """The deaths since its last progress that the run alone can have caused; if there is none yet, all
        since then. What ran at earlier deaths has ended well since."""
        last = [report for report in self.deaths if report.death.head >= self.progressed_at]
        return [report for report in last if report.death.alone] or last

    @property
    def suspects(self) -> list[tuple[str, int]]:
        """Nodes by how often they were running at the counted deaths, the most frequent first."""
        return Counter(node for report in self.counted for node in report.nodes).most_common()


async def list_dead(service: RunAccess, *, tenant: str | None = None, limit: int = 50) -> list[RunRow]:
    where = RunFilter(dead=True, status=(RunStatus.failed,), tenant=tenant)
    return await service.store.list_runs(where, after=None, limit=limit)


async def examine_dead(service: RunAccess, run: str) -> DeadRun:
    """For any run: its worker may have died without the run being given up."""
    row = await service.get(run)
    deaths = await service.store.deaths(row.id)
    # Deaths without progress in between have the same last record: it is folded once.
    heads = {head: await _under_way(service, row, head) for head in {death.head for death in deaths}}
    reports = [DeathReport(death, *heads[death.head]) for death in deaths]
    return DeadRun(row, reports, await _progressed_at(service, row, deaths))


async def _progressed_at(service: RunAccess, row: RunRow, deaths: list[Death]) -> int:
    if not deaths:
        return 0
    # Attempts that were begun again are records too, but no progress.
    first, last = deaths[0].head + 1, deaths[-1].head
    records = await service.store.read(row.id, first=first, last=last, payloads=False)
    return max((record.seq for record in records if record.kind in PROGRESS), default=0)


async def _under_way(service: RunAccess, row: RunRow, head: int) -> tuple[tuple[str, ...], str]:
    if head < row.horizon:
        return (), "its records are pruned"
    try:
        reader = (await readers_of(service, row)).at(head)
        blobs = service.runtime.blobs
        loaded = await load(service.store, reader.codec, reader.graph, row.id, blobs=blobs, upto=head)
    except HoldfastError as error:
        return (), error.message
    return tuple(sorted(_names(loaded.pos, reader.graph))), ""


def _names(pos: Position, graph: Graph) -> list[str]:
    names: list[str] = []
    for (path, number), execution in pos.execs.items():
        if execution.phase in _WORKING:
            label = path + pos.scope_graph(graph, pos.scopes[path]).nodes[number].id
            names.append(shown_name(label, graph))
    return names


async def retry_dead(service: RunAccess, run: str, *, by: str = "user:local") -> RunRow:
    """The cause is fixed: any worker may claim the run, and its recoveries are counted from zero. Its deaths
    are kept."""
    row = await _require_dead(service, run)
    body = msgspec.json.encode({"by": by})
    event = EventRow(0, service.store.now(), "run.retry_requested", body)
    if await resume_on_engine(service, row, b"", event) is None:
        await service.store.send(row.id, "resume", b"", event=event)
    return await service.get(row.id)


async def discard_dead(
    service: RunAccess,
    run: str,
    *,
    reason: str = "discarded",
    by: str = "user:local",
    unread: bool = False,
) -> RunRow:
    """The next worker that serves its flow ends it as cancelled, without running any of its nodes again.
    `unread`: it is ended here and now, without being loaded; so is a run whose workers died while they
    cancelled it. Its history then does not say which effects had begun."""
    row = await _require_dead(service, run)
    _, unread_rows = await service.store.pending(row.id)
    # A cancel that was never read: loading the run is what kills its workers, so it is not loaded again.
    if unread or any(message.kind == "cancel" for message in unread_rows):
        return await _end_unread(service, row, reason, by)
    return await service.cancel(row.id, reason=reason, by=by)


async def _end_unread(service: RunAccess, row: RunRow, reason: str, by: str) -> RunRow:
    """What the engine writes for a cancelled run, except for what only its state could show."""
    store, now = service.store, service.store.now()
    asked = EventRow(0, now, "run.cancel_requested", msgspec.json.encode({"reason": reason, "by": by}))
    want = ClaimRequest(worker=service.runtime.worker, ttl=_TTL, run=row.id)
    claim = await store.claim_dead(want, event=asked)
    if claim is None:
        return await _require_dead(service, row.id)
    _, unread_rows = await store.pending(row.id)
    error = ErrorInfo("run_cancelled", "RunCancelledError", reason)
    side = Side(
        status=RunStatus.cancelled,
        error=f"{error.type}: {error.message}",
        close_all_holds="the run was cancelled",
        close_all_timers=True,
        inbox_done=[message.id for message in unread_rows],
    )
    record = Record(
        claim.run.head + 1, Kind.end, now, 0, "", 0, 0, "", "", "cancelled", True, 0, b"", b"", side
    )
    RecordCodec(TypeRegistry()).encode(record, EndBody("cancelled", error), claim.lease.term)
    await store.settle([RunBatch(claim.lease, [record])])
    return await service.get(row.id)


async def _require_dead(service: RunAccess, run: str) -> RunRow:
    row = await service.get(run)
    if row.dead and row.status is RunStatus.failed:
        return row
    ways = {
        RunStatus.failed: f"It failed by itself: `holdfast resume {row.id[:8]}` resumes it.",
    }
    raise RunEndedError(
        f"run {row.id} is {run_label(row.status)}; it is not a dead letter.",
        hint=ways.get(row.status, "`holdfast dead list` shows those."),
        run=row.id,
    )
