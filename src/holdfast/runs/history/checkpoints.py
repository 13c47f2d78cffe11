"""Checkpoints: listed by columns, found by id, folded to the complete state.

Also what agents had said and done at a checkpoint during their work, from their records.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.checkpoint import VERSION
from holdfast.checkpoint.checkpoint import (
    ArtifactRef,
    Checkpoint,
    CheckpointMeta,
    FidelityState,
    PendingInput,
    checkpoint_status,
)
from holdfast.checkpoint.run_history import PENDING, History, begin, fold
from holdfast.checkpoint.visit import Visit
from holdfast.errors import CheckpointCorruptError, CheckpointNotFoundError, RunNotFoundError
from holdfast.model.graph import Graph
from holdfast.model.position import Position, Sub
from holdfast.model.record_bodies import CreatedBody, SnapshotBody
from holdfast.model.secrets import masked
from holdfast.runs.driver.load import load
from holdfast.runs.driver.repair import FELL_BACK
from holdfast.runs.history.versions import RunReader, readers_of, span_at, spans_of
from holdfast.types.ids import CheckpointId, HoldId, RunId, checkpoint_id, checkpoint_seq, is_id, run_prefix
from holdfast.types.record import Kind, Record, turn_of
from holdfast.types.value import BlobRef, FrozenDict

if TYPE_CHECKING:
    from holdfast.runs.service_protocol import JournalAccess, RunAccess
    from holdfast.store.rows import RunRow


PROMPT = "/prompt"


def conversations(graph: Graph, pos: Position) -> dict[str, dict[str, Any]]:
    """By node, and below it by sub-agent: turn, messages, calls without a result, what was spent."""
    found: dict[str, dict[str, Any]] = {}
    for execution in pos.execs.values():
        if not execution.subs:
            continue
        node = pos.scope_graph(graph, pos.scopes[execution.scope]).nodes[execution.node]
        for ordinal in [key for key, sub in execution.subs.items() if _opens(key, sub)]:
            base = ordinal.removesuffix(PROMPT)
            name = f"{execution.scope}{node.id}{base.removeprefix('=agent')}"
            found[name] = _conversation(execution.subs, base)
    return found


def _opens(key: str, sub: Sub) -> bool:
    value: Any = sub.value
    return key.startswith("=agent") and key.endswith(PROMPT) and isinstance(value, dict) and "agent" in value


def _conversation(subs: dict[str, Sub], base: str) -> dict[str, Any]:
    opened: Any = subs[base + PROMPT].value
    messages: list[Any] = list(opened["messages"])
    if opened["prompt"]:
        messages.append({"role": "user", "text": opened["prompt"]})
    turn, tokens, cost, pending = 0, 0, Decimal(0), list[Any]()
    calls: Counter[str] = Counter()
    while (answer := subs.get(f"{base}/{turn + 1}/model")) is not None and answer.error is None:
        turn += 1
        value: Any = answer.value
        tokens, cost = tokens + value["tokens"], cost + value["cost"]
        messages.append(value["message"])
        calls.update(call["name"] for call in value["message"].get("calls", ()))
        results, pending = _results(subs, f"{base}/{turn}", value["message"].get("calls", ()))
        messages += results
    return {
        "agent": opened["agent"],
        "turn": turn,
        "messages": messages,
        "pending": pending,
        "calls": dict(calls),
        "tokens": tokens,
        "cost": str(cost),
    }


def _results(subs: dict[str, Sub], turn: str, calls: Any) -> tuple[list[Any], list[Any]]:
    """(results in the order of their calls, calls that have none)."""
    ended = subs.get(f"{turn}/turn")
    shown: Any = (ended.value or {}) if ended is not None else {}
    results: list[Any] = []
    pending: list[Any] = []
    for index, call in enumerate(calls):
        sub = subs.get(f"{turn}/tool/{index}/call")
        made: Any = sub.value if sub is not None and sub.done else None
        if str(index) in shown:
            results.append({"role": "tool", "text": shown[str(index)], "call": call["id"]})
        elif isinstance(made, dict) and "text" in made:
            results.append({"role": "tool", "text": made["text"], "call": call["id"]})
        elif ended is None:
            pending.append(call)
    return results, pending


MEMORY_EFFECT = "memory"


class FoldedRun(msgspec.Struct):
    """The position of a run at a record, and what had happened until then."""

    row: Any
    reader: RunReader
    record: Record
    pos: Position
    history: History
    first: Any
    parent: int | None


# ---------------------------------------------------------------------- finding


async def resolve(service: RunAccess, ref: str, seq: int | None = None) -> tuple[RunRow, int]:
    """The run and record that a checkpoint id (or a run and a seq) names. Raises CheckpointNotFoundError."""
    if seq is not None:
        row = await service.get(ref)
        return _within(row, seq, f"run {row.id} has no record {seq}; its last one is {row.head}.")
    missing = f"there is no checkpoint {ref!r} in this store."
    if is_id(ref):
        hold = await service.store.hold(HoldId(ref))
        if hold is not None:
            return _within(await service.get(hold.run), hold.seq, missing)
        for row in await service.store.find_runs(run_prefix(ref)):
            found = checkpoint_seq(ref, row.id)
            if found is not None:
                return _within(row, found, missing)
    raise CheckpointNotFoundError(
        missing, hint="`holdfast checkpoints RUN` lists checkpoints.", checkpoint=ref
    )


async def resolve_run(
    service: RunAccess, ref: str, checkpoint: str | int | None
) -> tuple[RunRow, int | None]:
    """The run, and the record if it is not its latest. Raises CheckpointNotFoundError for a checkpoint of
    another run."""
    if isinstance(checkpoint, int):
        row, seq = await resolve(service, ref, checkpoint)
    elif checkpoint is not None:
        row, seq = await resolve(service, checkpoint)
        if not row.id.startswith(ref):
            raise CheckpointNotFoundError(
                f"checkpoint {checkpoint!r} does not belong to run {ref!r}.", run=ref
            )
    elif is_id(ref):
        found = await service.store.get_run(RunId(ref))
        if found is not None:
            return found, None
        try:
            row, seq = await resolve(service, ref)
        except CheckpointNotFoundError:
            raise RunNotFoundError(
                f"there is neither a run nor a checkpoint {ref!r} in this store.",
                hint="`holdfast runs` lists runs, `holdfast checkpoints RUN` their checkpoints.",
                run=ref,
            ) from None
    else:
        return await service.get(ref), None
    newest = await service.store.checkpoint_records(row.id, limit=1)
    return row, None if not newest or seq >= newest[0].seq else seq


def _within(row: RunRow, seq: int, missing: str) -> tuple[RunRow, int]:
    if seq < 0 or seq > row.head:
        raise CheckpointNotFoundError(missing, run=row.id, seq=seq)
    if seq < row.horizon:
        raise CheckpointNotFoundError(
            f"record {seq} of run {row.id} was pruned; its history begins at record {row.horizon}.",
            run=row.id,
            seq=seq,
        )
    return row, seq


async def list_checkpoints(
    service: RunAccess, run: str, *, limit: int = 50, node: str | None = None, before: int | None = None
) -> list[CheckpointMeta]:
    """Newest first, by sequence and never by clock (G-2). No payload is read."""
    row = await service.get(run)
    records = await service.store.checkpoint_records(row.id, node=node, before=before, limit=limit)
    if not records:
        return []
    remembered = await _first_memory(service, row, records[0].seq)
    holds = await _asked_ids(service, row.id, records)
    spans = await spans_of(service, row)
    rows = {s.version: msgspec.structs.replace(row, version=s.version) for s in spans}
    then = [rows[span_at(spans, record.seq).version] for record in records]
    return [_meta(was, record, holds, remembered) for was, record in zip(then, records, strict=True)]


async def _first_memory(service: RunAccess, row: RunRow, upto: int) -> int:
    """The first record that used memory; from there on checkpoints have a memory snapshot."""
    if row.horizon or row.forked_from:
        # What happened before is only in the first record.
        (first,) = await service.store.read(row.id, first=row.horizon, last=row.horizon)
        history = begin(first, _open((await readers_of(service, row)).at(first.seq), first))
        if history.reads or history.writes:
            return first.seq
    records = await service.store.read(row.id, last=upto, payloads=False)
    touched = (r.seq for r in records if r.kind == Kind.substep and r.effect == MEMORY_EFFECT)
    return next(touched, upto + 1)


async def _asked_ids(service: RunAccess, run: RunId, records: list[Record]) -> dict[int, str]:
    """The checkpoint of a question has the id of its hold."""
    if not any(record.kind == Kind.asked for record in records):
        return {}
    return {hold.seq: hold.id for hold in await service.store.holds(run=run, limit=1_000_000)}


def _meta(row: RunRow, record: Record, holds: dict[int, str], remembered: int) -> CheckpointMeta:
    return CheckpointMeta(
        id=_id_of(row.id, record, holds.get(record.seq)),
        run=row.id,
        flow=row.flow,
        version=row.version,
        node=record.node,
        seq=record.seq,
        at=record.at,
        status=checkpoint_status(record),
        state_size=record.size,
        has_memory_snapshot=record.seq >= remembered,
        turn=turn_of(record),
    )


def _id_of(run: RunId, record: Record, hold: str | None) -> CheckpointId:
    return CheckpointId(hold) if record.kind == Kind.asked and hold else checkpoint_id(run, record.seq)


async def latest_seq(service: RunAccess, run: str, node: str | None = None) -> tuple[RunRow, int]:
    """The newest checkpoint of a run (and node)."""
    row = await service.get(run)
    found = await service.store.checkpoint_records(row.id, node=node, limit=1)
    if not found:
        at = f" at node {node!r}" if node else ""
        raise CheckpointNotFoundError(f"run {row.id} has no checkpoint{at}.", run=row.id, node=node)
    return row, found[0].seq


# ---------------------------------------------------------------------- folding


async def fold_to(
    service: JournalAccess, row: RunRow, seq: int, reader: RunReader | None = None
) -> FoldedRun:
    """The position and the history at a record. Large values stay references. No user code runs."""
    readers = await readers_of(service, row, reader)
    reader = readers.at(seq)
    loaded = await load(
        service.store, reader.codec, reader.graph, row.id, blobs=service.runtime.blobs, upto=seq
    )
    records = await service.store.read(row.id, first=row.horizon, last=seq)
    first = _open(readers.at(row.horizon), records[0])
    history = begin(records[0], first)
    if not isinstance(first, SnapshotBody):
        fold(readers.at(row.horizon).graph, history, records[0], first)
    void = _void(reader, records)
    for record in records[1:]:
        if not any(low <= record.seq < high for low, high in void):
            then = readers.at(record.seq)
            fold(then.graph, history, record, _open(then, record))
    parent = next((r.seq for r in reversed(records[:-1]) if r.listed), None)
    row = msgspec.structs.replace(row, version=readers.version_at(seq))
    return FoldedRun(row, reader, records[-1], loaded.pos, history, first, parent)


def _void(reader: RunReader, records: list[Record]) -> list[tuple[int, int]]:
    """Ranges of records that a run fell back behind: they are kept, but do not count."""
    found = [r for r in records if r.kind == Kind.attempt and r.outcome == FELL_BACK]
    return [(int(body.token), r.seq) for r in found if (body := _open(reader, r)) is not None]


def _open(reader: RunReader, record: Record) -> Any:
    """A damaged record is shown by its columns; loading the position decides whether it matters."""
    try:
        return reader.codec.decode(record)
    except CheckpointCorruptError:
        return None


async def make_checkpoint(service: JournalAccess, row: RunRow, seq: int) -> Checkpoint:
    """The complete state at one record."""
    folded = await fold_to(service, row, seq)
    blobs, registry = service.runtime.blobs.of(row.tenant), folded.reader.codec.registry
    refs = _spilled(folded.pos)
    await blobs.materialise(folded.pos, registry)
    for execution in folded.history.executions:
        execution.output = await blobs.whole(execution.output, registry)
    return _picture(folded, refs)


async def shown_state(service: JournalAccess, row: RunRow, seq: int) -> tuple[Any, Any]:
    """State and artifacts at one record, masked as those of its checkpoint. For callers that do not need
    what led there: the records are read once."""
    reader = (await readers_of(service, row)).at(seq)
    blobs = service.runtime.blobs
    loaded = await load(service.store, reader.codec, reader.graph, row.id, blobs=blobs, upto=seq)
    await blobs.of(row.tenant).materialise(loaded.pos, reader.codec.registry)
    values = loaded.pos.scopes[""].tree.merged()
    secrets = reader.graph.secrets
    return masked(values.get("scratch", {}), secrets), masked(values.get("artifacts", {}), secrets)


def _spilled(pos: Position) -> dict[str, ArtifactRef]:
    """Artifacts in the blob store; determined before they are fetched."""
    inside = pos.scopes[""].tree.frames[0].over.get("artifacts", {})
    return {
        name: ArtifactRef(digest=value.digest.hex(), size=value.size)
        for name, value in inside.items()
        if isinstance(value, BlobRef)
    }


def _fidelity(pos: Position, scratch: dict[str, Any]) -> FidelityState:
    """A pipeline keeps it in its context."""
    noted: Any = pos.scopes[""].walk.get("fidelity") or scratch.get("internal.fidelity") or {}
    return FidelityState(mode=noted.get("mode"), summaries=dict(noted.get("summaries") or {}))


def _picture(folded: FoldedRun, spilled: dict[str, ArtifactRef]) -> Checkpoint:
    row, record, pos, history = folded.row, folded.record, folded.pos, folded.history
    values = pos.scopes[""].tree.merged()
    asked = next((h for h, a in history.asked.items() if _was_asked(record, a)), None)
    lineage = lineage_of(folded.first)
    return Checkpoint(
        id=_id_of(row.id, record, asked),
        run=row.id,
        seq=record.seq,
        node=record.node,
        at=record.at,
        status=checkpoint_status(record),
        parent=None if folded.parent is None else checkpoint_id(row.id, folded.parent),
        lineage=lineage,
        flow=row.flow,
        version=row.version,
        code=row.code,
        schema_version=VERSION,
        input=_input(values),
        state=FrozenDict(values.get("scratch", {})),
        artifacts=FrozenDict(values.get("artifacts", {})),
        diagnostics=diagnostics(history),
        executions=history.executions,
        visited=visited(history),
        skipped=list(history.skipped),
        pending_edges=list(history.pending),
        retries=dict(history.retries),
        artifact_refs={name: spilled.get(name, ArtifactRef()) for name in values.get("artifacts", {})},
        fidelity_state=_fidelity(pos, values.get("scratch", {})),
        memory=_memory(history),
        pending_input=[_pending(hold, asked) for hold, asked in history.asked.items() if hold in pos.holds],
        agents=conversations(folded.reader.graph, pos),
        state_size=record.size,
        turn=turn_of(record),
        **_counters(folded),
        secrets=folded.reader.graph.secrets,
    )


def lineage_of(first: Any) -> dict[str, Any]:
    """The origin of a run, from its first record; a pruned run's horizon keeps it."""
    if isinstance(first, CreatedBody):
        return dict(first.lineage)
    return dict(first.position.get("lineage", {})) if isinstance(first, SnapshotBody) else {}


def _was_asked(record: Record, asked: dict[str, Any]) -> bool:
    return record.kind == Kind.asked and asked["node"] == record.node and asked["scope"] == record.scope


def _input(values: dict[str, Any]) -> Any:
    return values.get("input", FrozenDict())


def _counters(folded: FoldedRun) -> dict[str, Any]:
    visits: dict[str, int] = {}
    loops: dict[str, int] = {}
    gates: dict[str, bool] = {}
    pos = folded.pos
    for path, scope in pos.scopes.items():
        graph = pos.scope_graph(folded.reader.graph, scope)
        visits |= {path + graph.nodes[n].id: count for n, count in scope.visits.items()}
        loops |= {path + graph.edges[e].id: count for e, count in scope.loop_counts.items()}
        gates |= {path + name: met for name, met in scope.walk.get("gates", {}).items()}
    return {"visits": visits, "loops": loops, "goal_gates": gates}


def visited(history: History) -> list[str]:
    """Completed nodes, each once, in the order in which they first completed."""
    return list(dict.fromkeys(e.label for e in history.executions if e.settled))


def _pending(hold: str, asked: dict[str, Any]) -> PendingInput:
    shown = {name: asked[name] for name in PendingInput.__struct_fields__ if name not in ("hold", "asked_at")}
    return PendingInput(hold=hold, asked_at=asked["at"], **shown)


def _memory(history: History) -> dict[str, Any] | None:
    if not history.reads and not history.writes:
        return None
    return {
        "reads": _only(history.reads, "traceId", "content", "strength"),
        "pendingWrites": _only([w for w in history.writes if PENDING in w], "type", "content", "scope"),
    }


def _only(traces: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    return [{name: trace.get(name) for name in names} for trace in traces]


# ---------------------------------------------------------------------- diagnostics


def diagnostics(history: History) -> dict[str, Any]:
    """Measured from the journal alone: so it is the same after any number of crashes (G-13)."""
    executions = history.executions
    under_way = history.spent.values()
    return {
        "totalTokensUsed": sum(e.tokens for e in executions) + int(sum(t for t, _ in under_way)),
        "totalCost": sum(e.cost for e in executions) + sum(cost for _, cost in under_way),
        "totalDurationMs": sum(e.duration for e in executions) / 1000,
        "nodeTimings": {e.label: _timing(e) for e in executions},
        "discoveryResults": {},
        "guardrailResults": {label: _guardrail(notes) for label, notes in history.guardrails.items()},
        "checkpointsSaved": history.checkpoints,
        "memoryReads": len(history.reads),
        "memoryWrites": len(history.writes),
        **history.noted,
    }


def _timing(execution: Visit) -> dict[str, Any]:
    end = (execution.ended_at or 0) / 1000
    return {"startMs": end - execution.duration / 1000, "endMs": end, "tokensUsed": execution.tokens}


def _guardrail(notes: dict[str, Any]) -> dict[str, Any]:
    passed = bool(notes.get("passed"))
    return {
        "guardrailId": notes["guardrail"],
        "passed": passed,
        "action": notes.get("action", "pass" if passed else ""),
        "latencyMs": notes.get("latency", 0) / 1000,
    }
