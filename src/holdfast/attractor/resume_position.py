"""A new run that starts where a run directory ends, with its history, counters and gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.attractor.backends.select import KEY
from holdfast.attractor.context import storable
from holdfast.attractor.continuation import CONTINUES, Continuation
from holdfast.attractor.fidelity import RESUMED
from holdfast.attractor.outcome import StageStatus
from holdfast.attractor.run_files import LOGS_KEY
from holdfast.attractor.saved_checkpoint import UNKNOWN, SavedCheckpoint
from holdfast.checkpoint.run_history import HISTORY, History
from holdfast.checkpoint.visit import Visit
from holdfast.engine.decision import Decision
from holdfast.engine.messages import HandlerFinished
from holdfast.engine.step import step
from holdfast.engine.walk_state import PLAIN, SATISFIED
from holdfast.errors import InputError
from holdfast.holds.permissions.starters import RunStarters
from holdfast.model.graph import Graph
from holdfast.model.moves import start_in
from holdfast.model.pipeline_conditions import outcome_word
from holdfast.model.position import Position, Scope, new_scope
from holdfast.model.program import Program
from holdfast.model.record_bodies import CreatedBody, ErrorInfo
from holdfast.model.snapshot import dump_position
from holdfast.runs.concurrency_limits.run_limits import limits_for_new_run
from holdfast.runs.create import check_options, encode_records, new_run
from holdfast.runs.hold_states import prepare_first_holds
from holdfast.runs.value_checker import TypedValues
from holdfast.store.rows import RunRow
from holdfast.types.ids import DEFAULT_TENANT, RunId, new_run_id
from holdfast.types.outcome import FAIL
from holdfast.types.record import Kind, Side
from holdfast.types.value import FrozenDict, FrozenList, freeze, refuse_instances

if TYPE_CHECKING:
    from holdfast.runs.service import RunService


_OURS: Final = "internal."
_ENDED: Final = ("completed", "success")


async def begin_from(
    service: RunService,
    program: Program,
    saved: SavedCheckpoint,
    start: dict[str, Any],
    *,
    fidelity: str = "",
    **options: Any,
) -> RunRow:
    """A run that continues the directory. `start`: its input; `fidelity`: what replaces `full` at its first
    stage. Durable when this returns."""
    # The path of the directory may be another one now; the caller's counts.
    kept = {k: storable(k, v) for k, v in saved.context.items() if k not in (LOGS_KEY, CONTINUES)}
    start = {**start, CONTINUES: msgspec.to_builtins(_continuation(saved))}
    # The backend that the run asked for, and not the one of this machine.
    start |= {KEY: kept[KEY]} if KEY in kept else {}
    if not saved.completed:
        # `internal.*` values are set by the engine and never taken from a caller.
        outside = {k: v for k, v in kept.items() if not k.startswith(_OURS)}
        row, _ = await service.create(program, {**start, **outside}, **options)
        return row
    context = {**start, **kept, LOGS_KEY: start[LOGS_KEY]}
    del context[CONTINUES]
    if fidelity:
        context[RESUMED] = fidelity
    return await begin_at(service, program, saved, start, context, **options)


def _continuation(saved: SavedCheckpoint) -> Continuation:
    return Continuation(
        run=saved.run,
        folder=str(saved.root.resolve()),
        restarts=int(saved.counters.get("restarts", 0)),
        stage=saved.next_node,
        failures=saved.retries.get(saved.next_node, 0),
        ended=saved.status == "failed" and saved.next_node == saved.current,
        branches=dict(saved.branches),
    )


def is_finished(saved: SavedCheckpoint, graph: Graph) -> bool:
    """Whether it completed, or is at the exit with all gates satisfied."""
    if saved.status in _ENDED:
        return True
    node = graph.nodes[graph.index[saved.current]] if saved.current else None
    at_exit = node is not None and node.walk is not None and node.walk.terminal and not saved.next_node
    return at_exit and all(_gates_of(graph, saved).values())


async def begin_at(
    service: RunService,
    program: Program,
    saved: SavedCheckpoint,
    given: dict[str, Any],
    context: dict[str, Any],
    *,
    run_id: str | None = None,
    tenant: str = DEFAULT_TENANT,
    lane: str | None = None,
    priority: int | None = None,
    started_by: str | None = None,
    started_via: Sequence[str] = (),
) -> RunRow:
    """Durable when this returns. If the checkpoint names the next stage, that one is started; else the edge
    is selected now, by the outcome of the last stage, which does not run again."""
    names = {"tenant": tenant, "lane": lane, "run_id": run_id, "started_by": started_by}
    check_options(names, priority, None)
    service.runtime.register(program)
    await service.store_flow(program)
    now = service.store.now()
    run = RunId(run_id) if run_id else new_run_id()
    decision = _first_decision(program, run, saved, (given, context), now)
    limits = limits_for_new_run(program, context, {"tenant": tenant})
    first = await encode_records(service, program, decision, tenant)
    new = new_run(
        program, run, first, limits, now, lane=lane, priority=priority, tenant=tenant, started_by=started_by
    )
    await RunStarters(service.store).put(tenant, new.id, started_via, started_by=started_by)
    await prepare_first_holds(service, program, new)
    row, _ = await service.add_run(program, new)
    return row


def _first_decision(
    program: Program,
    run: RunId,
    saved: SavedCheckpoint,
    values: tuple[dict[str, Any], dict[str, Any]],
    now: int,
) -> Decision:
    graph = program.graph
    pos = Position(run, mode=graph.spec.mode)
    given, context = (freeze(value, refuse_instances, "the context") for value in values)
    scope = pos.scopes[""] = new_scope("", "", {"input": given, "scratch": dict(context), "artifacts": {}})
    goes_on = bool(saved.next_node)
    _restore(graph, scope, saved, goes_on=goes_on)
    at = graph.index[saved.next_node if goes_on else saved.current]
    start_in(graph, pos, scope, at, 0, 0)
    execution = pos.execs["", at]
    if goes_on:
        execution.failures = int(saved.retries.get(saved.next_node, 0))
        execution.attempt = execution.failures + 1
    decision = Decision(graph, pos, now)
    again = not goes_on or (saved.status == "failed" and saved.next_node == saved.current)
    completed = _without_last(saved) if again else saved.completed
    body = CreatedBody(
        graph.name,
        program.version,
        program.code_digest,
        FrozenDict(),
        FrozenDict(),
        FrozenDict(),
        [("S", "", at, execution.visit)],
        pos.mode,
        {},
        {"directory": str(saved.folder), "resumed_run": saved.run, "resumed_at": saved.current},
        {**dump_position(pos), HISTORY: _history(graph, saved, completed, now).dump()},
    )
    record = decision.draft(Kind.created, body, listed=True, side=Side())
    pos.head, pos.at = 0, record.at
    if not goes_on:
        after = step(graph, pos, [_finished(saved, at, execution.visit)], now, TypedValues(program))
        decision.records += after.records
    return decision


def _restore(graph: Graph, scope: Scope, saved: SavedCheckpoint, *, goes_on: bool) -> None:
    """Visits, gates and counters, without the stage that is about to start."""
    counted = saved.visits or {name: saved.completed.count(name) for name in saved.completed}
    about = saved.next_node if goes_on else saved.current
    for name, count in counted.items():
        known = name == about and (bool(saved.visits) or not goes_on)
        if name in graph.index and int(count) - known > 0:
            scope.visits[graph.index[name]] = int(count) - known
    before = saved.counters.get("before")
    if isinstance(before, dict):
        scope.before = {graph.index[n]: int(c) for n, c in before.items() if n in graph.index}  # type: ignore[misc]
    gates = _gates_of(graph, saved)
    retries = {n: int(c) for n, c in saved.retries.items() if n != about or not goes_on}
    counters = {k: saved.counters[k] for k in ("jumps", "fail_jumps", "restarts") if saved.counters.get(k)}
    result = saved.outcome
    # A routing node passes on the outcome of the stage before it.
    passed = outcome_word(str(saved.counters.get("outcome") or saved.context.get("outcome") or result.status))
    label = str(saved.counters.get("label", result.preferred_label))
    walk: dict[str, Any] = {"outcome": passed, "label": label, **counters}
    reason = saved.context.get("failure_reason")
    walk |= {"reason": str(reason)} if passed == FAIL and reason else {}
    walk |= {"gates": dict(gates)} if gates else {}
    walk |= {"retries": retries} if retries else {}
    walk |= {"came_by": saved.edge} if goes_on and saved.edge else {}
    walk |= {"suggested": FrozenList(result.suggested_next_ids)} if result.suggested_next_ids else {}
    if saved.completed:
        scope.walk = walk


def _gates_of(graph: Graph, saved: SavedCheckpoint) -> Mapping[str, bool]:
    """From the outcomes of the stages, if the checkpoint does not list gates (AT-118)."""
    if saved.gates is not None:
        return saved.gates
    specs = {node.id: node.walk or PLAIN for node in graph.nodes}
    return {
        name: outcome in SATISFIED or outcome not in (FAIL, StageStatus.RETRY, StageStatus.SKIPPED, UNKNOWN)
        for name, outcome in saved.outcomes.items()
        if name in specs and specs[name].goal_gate
    }


def _without_last(saved: SavedCheckpoint) -> tuple[str, ...]:
    """The history without the current stage, which ends once more: it must not be listed twice."""
    found = saved.completed
    return found[:-1] if found and found[-1] == saved.current else found


def _history(graph: Graph, saved: SavedCheckpoint, completed: tuple[str, ...], now: int) -> History:
    seen: dict[str, int] = {}
    executions: list[Visit] = []
    for name in completed:
        seen[name] = seen.get(name, 0) + 1
        effect = graph.nodes[graph.index[name]].effect if name in graph.index else ""
        executions.append(
            Visit(
                node=name,
                scope="",
                visit=seen[name],
                effect=str(effect),
                outcome=saved.outcomes.get(name, UNKNOWN),
                seq=0,
                started_at=now,
                ended_at=now,
                run=saved.run,
            )
        )
    return History(executions=executions)


def _finished(saved: SavedCheckpoint, node: int, visit: int) -> HandlerFinished:
    result = saved.outcome
    failed = str(result.status) == FAIL
    reason = result.failure_reason or str(saved.context.get("failure_reason") or "the stage failed")
    return HandlerFinished(
        scope="",
        node=node,
        visit=visit,
        outcome=str(result.status),
        error=ErrorInfo("node_failed", "NodeFailedError", reason) if failed else None,
        reported=failed,
        label=result.preferred_label,
        suggested=tuple(result.suggested_next_ids),
        notes=FrozenDict({"notes": result.notes}) if result.notes else None,
    )


def require_stages(graph: Graph, saved: SavedCheckpoint, *, changed: bool = False) -> None:
    """Raises InputError if the pipeline does not have the stage of the checkpoint, or does not lead to the
    next one: that would go around a gate. `changed`: another pipeline is to continue it, so its edges say
    nothing about that."""
    wanted = [name for name in (saved.current, saved.next_node) if name]
    missing = [name for name in wanted if name not in graph.index]
    if missing:
        raise InputError(
            f"the checkpoint in {saved.folder} is at {missing[0]!r}, but the pipeline has no such stage "
            "outside of branches.",
            hint="Give the pipeline that the directory was made with.",
        )
    ways = ("", saved.current, *_ways_from(graph, saved.current))
    if saved.completed and not changed and saved.next_node not in ways:
        raise InputError(
            f"the checkpoint in {saved.folder} says that {saved.next_node!r} is next, and no edge or retry "
            f"target leads there from {saved.current!r}.",
            hint="Look at the directory: its checkpoint is damaged, or of another pipeline.",
        )


def _ways_from(graph: Graph, current: str) -> set[str]:
    """An unmet goal gate leads on from the exit, so all retry targets count."""
    walks = [graph.spec, *(node.walk for node in graph.nodes if node.walk is not None)]
    targets = {name for each in walks for name in (each.retry_target, each.fallback_retry_target) if name}
    return targets | {edge.target for edge in graph.edges if edge.source == current}
