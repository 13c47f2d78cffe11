"""The first records of a branch: its source's position, without the source's numbers, holds and failures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.checkpoint import Blob
from holdfast.checkpoint.run_history import HISTORY, History
from holdfast.engine import breakpoints, holds, in_doubt
from holdfast.engine.decision import Decision, node_of
from holdfast.model.child_scopes import NO_INPUT, PARENTS, child_inputs
from holdfast.model.graph import Graph, NodeKind
from holdfast.model.position import Exec, OpenHold, Position, naps_of
from holdfast.model.program import Program
from holdfast.model.record_bodies import CreatedBody
from holdfast.model.snapshot import dump_position
from holdfast.runs.blobs import refs_in
from holdfast.runs.history.checkpoints import FoldedRun
from holdfast.types.ids import RunId, checkpoint_id
from holdfast.types.record import Kind, Move, NewTimer, Record, Side
from holdfast.types.value import FrozenDict

if TYPE_CHECKING:
    from holdfast.runs.record_codec import RecordCodec


def first_records(
    program: Program,
    folded: FoldedRun,
    run: RunId,
    now: int,
    codec: RecordCodec,
    *,
    supersedes: RunId | None,
    changes: dict[str, Any],
) -> tuple[list[Record], list[Blob]]:
    pos, history = folded.pos, folded.history
    graph = program.graph
    waits = detach(graph, pos, history, run)
    decision = Decision(graph, pos, now)
    body = CreatedBody(
        graph.name,
        program.version,
        program.code_digest,
        FrozenDict(),
        FrozenDict(),
        FrozenDict(),
        _starts(graph, pos),
        pos.mode,
        {},
        _lineage(folded, supersedes, changes),
        _base(folded),
    )
    first = decision.draft(Kind.created, body, listed=True, side=Side(timers=_timers(pos)))
    pos.head, pos.at = 0, first.at
    reopen(decision, history, waits)
    records: list[Record] = []
    blobs: list[Blob] = []
    for record, part in decision.records:
        blobs += codec.encode(record, part, 0)
        records.append(record)
    add_blobs(first, {ref.digest for ref in refs_in(body.base)})
    return records, blobs


def add_blobs(record: Record, digests: set[bytes]) -> None:
    assert record.side is not None
    record.side.blobs = sorted(digests.union(record.side.blobs))


def _base(folded: FoldedRun) -> dict[str, Any]:
    """Everything that the new run needs, by value or by blob: its source may be pruned or deleted."""
    history = folded.history
    for execution in history.executions:
        execution.run = execution.run or folded.row.id
    return {**dump_position(folded.pos, whole=True, by_ref=True), HISTORY: history.dump()}


def _lineage(folded: FoldedRun, supersedes: RunId | None, changes: dict[str, Any]) -> dict[str, Any]:
    row, record = folded.row, folded.record
    at = checkpoint_id(row.id, record.seq)
    lineage: dict[str, Any] = {"run": row.id, "checkpoint": at, "seq": record.seq}
    if changes:
        lineage["patched"] = {name: _names(change) for name, change in changes.items()}
    if supersedes is not None:
        lineage["supersedes"] = supersedes
    return lineage


def _names(change: Any) -> list[str]:
    return sorted(str(name) for name in change) if isinstance(change, Mapping) else ["*"]  # type: ignore[misc]


def _starts(graph: Graph, pos: Position) -> list[Move]:
    """The moves at the start of this run; only for events, because a base is not moved."""
    return [("S", e.scope, e.node, e.visit) for e in pos.execs.values()]


def detach(graph: Graph, pos: Position, history: History, run: RunId) -> dict[str, OpenHold]:
    """Make the position independent: no numbers, holds or failures of the source. Returns the
    source's holds."""
    waits, pos.holds = dict(pos.holds), {}
    # Calls of the source: their cost is the source's.
    pos.ledger.reserved.clear()
    _renumber(pos)
    pos.run, pos.head, pos.status, pos.code = run, -1, "running", ""
    pos.cancelling, pos.cancel_rows = None, []
    for wait in waits.values():
        pos.timers.pop(wait.token, None)
    for execution in pos.execs.values():
        # A sleep inside a handler starts again there, like everything that was not done.
        for token in naps_of(pos, execution):
            del pos.timers[token]
    if any(e.phase == "failed" for e in pos.execs.values()):
        pos.failing, pos.failed_node = None, ""
    for execution in pos.execs.values():
        _detach(graph, pos, history, execution)
    return waits


def _renumber(pos: Position) -> None:
    """Steps that wait for a join are identified by record numbers: the source's come before this run's."""
    for scope in pos.scopes.values():
        for frame in scope.tree.frames.values():
            frame.steps[:] = [msgspec.structs.replace(d, seq=d.seq - pos.head - 1) for d in frame.steps]


def _detach(graph: Graph, pos: Position, history: History, execution: Exec) -> None:
    node = node_of(graph, pos, execution)
    execution.seq = 0
    execution.subs = {key: sub for key, sub in execution.subs.items() if sub.done}
    if execution.phase == "failed":
        _start_afresh(graph, pos, execution)
    # Running effects: this run will not learn their outcome. Record 0 stands for their intents.
    execution.intent = min(execution.intent, 0)
    keyed = history.keyed.get(execution.scope + node.id, {})
    execution.step_intents = dict.fromkeys([*execution.step_intents, *keyed], 0)
    if execution.phase == "asked":
        execution.phase = "work"
    if execution.phase == "break" and node.kind in PARENTS:
        # A patch may have changed the list; nothing of it has started.
        _read_inputs(graph, pos, execution)
    if execution.phase == "delay" and execution.token:
        pos.timers[execution.token] = (execution.scope, execution.node)


def _start_afresh(graph: Graph, pos: Position, execution: Exec) -> None:
    """What failed in the source is run again, with all its attempts."""
    node = node_of(graph, pos, execution)
    execution.attempt, execution.failures, execution.phase, execution.intent = 1, 0, "work", -1
    execution.error, execution.wake_at, execution.token = None, None, ""
    execution.step_intents, execution.subs = {}, {}
    if node.kind in PARENTS:
        execution.phase, execution.opened, execution.results = "children", 0, {}
        _read_inputs(graph, pos, execution)


def _read_inputs(graph: Graph, pos: Position, execution: Exec) -> None:
    scope = pos.scopes[execution.scope]
    try:
        inner = pos.scope_graph(graph, scope)
        execution.items = child_inputs(inner, pos, scope, execution)
    except NO_INPUT:
        execution.items = None


def _timers(pos: Position) -> list[NewTimer]:
    """Set again for their original times."""
    found: list[NewTimer] = []
    for token, key in pos.timers.items():
        execution = pos.execs.get(key)
        wake = execution.wake_at if execution is not None else pos.join_wakes.get(token)
        if wake is not None:
            found.append(NewTimer(token, wake))
    return found


def reopen(decision: Decision, history: History, waits: dict[str, OpenHold]) -> None:
    """The source's open questions, asked again under ids of this run."""
    pos = decision.pos
    for execution in list(pos.execs.values()):
        node = node_of(decision.graph, pos, execution)
        if node.kind is NodeKind.hold and execution.phase == "work":
            if breakpoints.is_at_breakpoint(decision, execution):
                breakpoints.pause(decision, execution)
            else:
                holds.ask_node(decision, execution, node)
    for hold, wait in waits.items():
        execution = pos.execs.get((wait.scope, wait.node))
        if execution is None:
            continue
        if wait.why == "ask" and hold in history.asked:
            _ask_again(decision, execution, history.asked[hold])
        elif wait.why == "break":
            breakpoints.pause(decision, execution)
        elif wait.why in ("doubt", "doubt_step"):
            in_doubt.ask(decision, execution, execution.error, substep=wait.key)


def _ask_again(decision: Decision, execution: Exec, asked: dict[str, Any]) -> None:
    spec = holds.spec_from_asked(asked)
    key = asked["key"].partition(":")[2]
    holds.ask_inside(
        decision, execution, key, asked["ordinal"], spec, FrozenDict(asked["context"] or {}), asked["code"]
    )
