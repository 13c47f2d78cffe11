"""A run as JSON: everything that is known about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from holdfast.cli.commands.graph import graph_json
from holdfast.cli.output.results import hold_json, row_json, shown_run, stored_json
from holdfast.errors import EngineError, StoreError
from holdfast.runs.child_questions import is_child_question
from holdfast.runs.engine_report import EngineReport
from holdfast.types.clock import iso
from holdfast.types.status import HoldStatus, RunStatus

if TYPE_CHECKING:
    from holdfast.runs.history.timeline import Timeline
    from holdfast.runs.service import RunService
    from holdfast.store.rows import RunRow
    from holdfast.types.hold import HoldRow
    from holdfast.types.record import Record


def last_error(row: RunRow, line: Timeline) -> str:
    """With the node that failed, if known."""
    from holdfast.model.shown_names import shown_name

    failed = [visit for visit in line.visits.all() if visit.error and visit.state in ("failed", "unknown")]
    if row.status is RunStatus.completed:
        return ""
    if row.error and not any(visit.error_text == row.error for visit in failed):
        return row.error
    if row.status is not RunStatus.failed:
        # A failure that the run has repaired since is one of its visits, and not what is wrong with it now.
        ended = {
            visit.label: visit for visit in line.visits.all() if visit.state in ("done", "failed", "unknown")
        }
        failed = [visit for visit in failed if ended[visit.label] is visit]
    return f"node {shown_name(failed[-1].label, line.graph)}: {failed[-1].error_text}" if failed else ""


def costs(line: Timeline) -> dict[str, Any]:
    """The total cost of all visits, and that of each node."""
    nodes = line.visits.nodes
    return {
        "tokens": sum(node.tokens for node in nodes.values()),
        "cost": sum(node.cost for node in nodes.values()),
        "work_us": sum(node.work_us for node in nodes.values()),
        "nodes": {
            path: {"tokens": node.tokens, "cost": node.cost, "work_us": node.work_us, "visits": node.visits}
            for path, node in nodes.items()
            if node.visits
        },
    }


async def run_json(service: RunService, row: RunRow) -> dict[str, Any]:
    """Everything that is known about a run; docs/reference/cli.md describes it."""
    from holdfast.attractor.picture import picture_of_visits
    from holdfast.cli.output.timeline import timeline_json
    from holdfast.runs.history.timeline import make_timeline

    line = await make_timeline(service, row)
    records = await service.store.read(row.id, payloads=False)
    holds = await holds_of(service, row)
    state, artifacts, damage = await values_of(service, row, line)
    picture = picture_of_visits(line.graph, line.visits, expand=True, interrupted=line.interrupted)
    return {
        "run": row_json(await shown_run(service.store, row)),
        "stored": stored_json(row),
        "state": state,
        "artifacts": artifacts,
        "error": last_error(row, line) or None,
        "damaged": damage or None,
        "holds": [hold_json(hold) for hold in holds],
        "children": [
            row_json(await shown_run(service.store, child)) for child in await service.children(row.id)
        ],
        "engine": to_builtins(await engine_report(service, row)),
        "costs": costs(line),
        "graph": graph_json(picture),
        "timeline": timeline_json(line.visits),
        "records": [record_json(record) for record in records],
    }


async def engine_report(service: RunService, row: RunRow) -> EngineReport | None:
    """Of a run that the engine of this process drives."""
    engine = service.runtime.engine
    if engine is None or row.worker != engine.name:
        return None
    try:
        return await engine.report(row)
    except EngineError as error:
        return EngineReport(engine=engine.name, problem=error.message)


async def holds_of(service: RunService, row: RunRow, status: HoldStatus | None = None) -> list[HoldRow]:
    """All of them, oldest first; then the open questions of runs that it manages and waits for."""
    own = await service.store.holds(run=row.id, status=status, limit=1_000_000)
    known = {hold.id for hold in own}
    shown = [hold for hold in own if not is_child_question(hold)]
    return shown + [hold for hold in await service.questions(row.id) if hold.id not in known]


async def values_of(service: RunService, row: RunRow, line: Timeline) -> tuple[Any, Any, str]:
    """The state, the artifacts, and the reason if they cannot be read."""
    from holdfast.model.secrets import masked

    if line.pos is None:
        return {}, {}, line.damage
    try:
        await service.runtime.blobs.of(row.tenant).materialise(line.pos, line.reader.codec.registry)
    except StoreError as error:
        return {}, {}, error.message
    values = line.pos.scopes[""].tree.merged()
    secrets = line.graph.secrets
    return masked(values.get("scratch", {}), secrets), masked(values.get("artifacts", {}), secrets), ""


def record_json(record: Record) -> dict[str, Any]:
    from holdfast.types.record import Kind

    return {
        "seq": record.seq,
        "kind": Kind(record.kind).name,
        "at": iso(record.at),
        "term": record.term,
        "node": record.node,
        "scope": record.scope,
        "visit": record.visit,
        "attempt": record.attempt,
        "effect": record.effect,
        "outcome": record.outcome,
        "listed": record.listed,
    }
