"""The first record of a run: its input, its first nodes started. A checkpoint exists from the start (D-2)."""

from __future__ import annotations

from typing import Any

from holdfast.engine import end, settle
from holdfast.engine.dataflow_mode import EdgePropagation
from holdfast.engine.decision import CannotContinueError, Decision, ValueChecker
from holdfast.model.apply import set_options
from holdfast.model.graph import Graph
from holdfast.model.position import Position, new_scope
from holdfast.model.record_bodies import CreatedBody
from holdfast.types.record import Kind


def begin(
    graph: Graph,
    run: str,
    *,
    version: str,
    code: str,
    given: Any,
    scratch: dict[str, Any],
    mode: str,
    now: int,
    options: dict[str, Any] | None = None,
    fits: ValueChecker | None = None,
) -> Decision:
    """Records for a new run, from seq 0. Holds of first nodes are open when the run exists."""
    pos = Position(run)
    decision = Decision(graph, pos, now, fits)
    body = CreatedBody(graph.name, version, code, given, dict(scratch), {}, [], mode, options or {})
    record = decision.draft(Kind.created, body, listed=True)
    pos.head, pos.at, pos.mode = record.seq, record.at, mode
    set_options(pos, body.options)
    scope = pos.scopes[""] = new_scope("", "", {"input": given, "scratch": dict(scratch), "artifacts": {}})
    flow = EdgePropagation(decision, scope, body.moves)
    try:
        flow.begin()
        if not flow.opened:
            raise CannotContinueError("stall", f"no node of flow {graph.name!r} can start", "")
    except CannotContinueError as problem:
        # The run exists all the same, as a failed one: the caller gets an id to look at.
        end.fail_run(decision, problem)
    for execution in flow.opened:
        settle.open_exec(decision, execution)
    return decision
