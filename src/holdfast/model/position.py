"""Where a run stands, and the elementary moves by which it gets on.

The engine decides which moves to make; each is written into the record that caused it. Loading a run
applies the recorded moves through the very same functions: nothing is decided again, no user code runs
(D-26), and a later version of the engine cannot read an old history differently.
"""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.errors import CheckpointCorruptError
from holdfast.model.bodies import ErrorInfo
from holdfast.model.expr import MISSING as EXPR_MISSING
from holdfast.model.expr import PARTITIONS, Path, Resolve, compile_expr, walk
from holdfast.model.frames import MISSING, Delta, FrameTree, Values
from holdfast.model.graph import Graph, NodeKind
from holdfast.types.record import Move
from holdfast.types.value import FrozenDict

ExecKey = tuple[str, int]


SETTLED = "="
"""The ordinal under which a node's changes are kept while Python code chooses among its edges."""


class Sub(msgspec.Struct, array_like=True):
    """A recorded sub-step or answer inside a node (D-21)."""

    name: str
    value: Any = None
    error: ErrorInfo | None = None
    hold: str = ""
    done: bool = True


class Exec(msgspec.Struct):
    """One execution of one node that has started and not settled.

    Phases: work (a handler is to run), asked (a hold is open), sleep and delay (a timer is armed),
    children (a map or sub-flow), doubt (an effect's outcome is unknown), failed.
    """

    scope: str
    node: int
    visit: int
    frame: int
    seq: int
    attempt: int = 1
    failures: int = 0
    phase: str = "work"
    intent: int = -1
    # Open intents of sub-steps: ordinal -> seq of the intent; and what those steps are called.
    step_intents: dict[str, int] = {}
    step_names: dict[str, str] = {}
    subs: dict[str, Sub] = {}
    wake_at: int | None = None
    token: str = ""
    error: ErrorInfo | None = None
    # A map: its items and what they came to.
    items: list[Any] | None = None
    results: dict[int, Any] = {}
    opened: int = 0
    # Live output of this attempt: whether there is some, and how much of it by the code around the sub-steps.
    emitted: bool = False
    chunks: int = 0
    # The handler's code when its first sub-step was recorded: other code may not re-enter this visit (D-34).
    code: str = ""


class OpenHold(msgspec.Struct, array_like=True):
    """Who waits for this hold: the node itself, a question inside it, or a doubt about an effect."""

    scope: str
    node: int
    why: str  # node, ask, doubt, doubt_step; code: changed code is to run (of no node)
    key: str = ""
    ordinal: int = 0
    on_timeout: str | None = None
    token: str = ""
    expires_at: int | None = None


class LoopState(msgspec.Struct, array_like=True):
    """An entered loop: which back edges are decided, and the exits whose being dead waits for its end."""

    decided: list[int] = []
    fired: list[int] = []
    dead_exits: list[int] = []
    # Exits that fired this time round, with their frames: they wait for the loop's end.
    held: dict[int, int] = {}


class Scope(msgspec.Struct):
    """The root, a sub-flow or one item of a map: a graph with a position and values of its own."""

    path: str
    graph: str
    tree: FrameTree
    owner: ExecKey | None = None
    index: int = 0
    tokens: dict[int, int] = {}
    waiting: dict[int, int] = {}
    arrived: dict[int, int] = {}
    early: list[int] = []
    visits: dict[int, int] = {}
    loop_counts: dict[int, int] = {}
    open_loops: dict[int, LoopState] = {}
    active: int = 0
    # Walk only: the last outcome, goal gates and counters.
    walk: dict[str, Any] = {}


class Position(msgspec.Struct):
    run: str
    head: int = -1
    at: int = 0
    status: str = "running"
    mode: str = "barrier"
    scopes: dict[str, Scope] = {}
    execs: dict[ExecKey, Exec] = {}
    holds: dict[str, OpenHold] = {}
    timers: dict[str, ExecKey] = {}
    # When joins with a time limit give up waiting, by the token of their timer.
    join_wakes: dict[str, int] = {}
    failing: ErrorInfo | None = None
    failed_node: str = ""
    cancelling: str | None = None
    cancel_rows: list[int] = []
    totals: dict[str, float] = {}
    # The code that this run was last advanced with, where it is not the one it was started with (D-34).
    code: str = ""

    def scope_graph(self, graph: Graph, scope: Scope) -> Graph:
        return graph if scope.graph == "" else _nested(graph, scope.graph)

    def visit_of(self, scope: Scope, node: int) -> int:
        return scope.visits.get(node, 0)


def _nested(graph: Graph, path: str) -> Graph:
    for name in path.split("/"):
        graph = graph.subgraphs[name]
    return graph


def apply_moves(graph: Graph, pos: Position, moves: list[Move], frame: int = 0) -> None:
    """Replay recorded moves. `frame` is that of the settled execution whose edges fire."""
    for what, path, a, b in moves:
        scope = pos.scopes.get(path)
        if scope is None:
            raise CheckpointCorruptError(
                f"record {pos.head} of run {pos.run} names a scope {path!r} that is not open"
            )
        if what == "O":
            open_child(graph, pos, scope, a, b)
        else:
            MOVES[what](pos.scope_graph(graph, scope), pos, scope, a, b, frame)


def fire(graph: Graph, _pos: Position, scope: Scope, edge: int, frame: int, _frame: int) -> None:
    """The edge carries a token: a frame on its way to the target."""
    scope.tokens[edge] = frame
    if graph.walk:
        _count_turns(graph, scope, edge)
    _decide(graph, scope, edge, 1)


def _count_turns(graph: Graph, scope: Scope, edge: int) -> None:
    """A walk has no loop bodies: it counts its way back, anew when it comes to the header from outside."""
    if graph.edges[edge].loop is not None:
        scope.loop_counts[edge] = scope.loop_counts.get(edge, 0) + 1
    elif graph.target[edge] >= 0:
        for e in graph.into[graph.target[edge]]:
            scope.loop_counts.pop(e, None)


def fork(_graph: Graph, _pos: Position, scope: Scope, frame: int, child: int, _frame: int) -> None:
    scope.tree.fork(frame, child)


def dead(graph: Graph, _pos: Position, scope: Scope, edge: int, _b: int, _frame: int) -> None:
    """The edge will not fire (this time round)."""
    _decide(graph, scope, edge, 0)


def _decide(graph: Graph, scope: Scope, edge: int, fired: int) -> None:
    target = graph.target[edge]
    if target < 0:
        scope.tokens.pop(edge, None)
        return
    if graph.edges[edge].loop is not None and not graph.walk:
        return
    if graph.indegree[target] > 1 and not graph.walk:
        left = scope.waiting.get(target, graph.indegree[target]) - 1
        scope.waiting[target] = left
        if fired:
            scope.arrived[target] = scope.arrived.get(target, 0) + 1
        if left == 0 and target in scope.early:
            scope.early.remove(target)
            del scope.waiting[target]
            scope.arrived.pop(target, None)


def start(graph: Graph, pos: Position, scope: Scope, node: int, visit: int, _frame: int) -> None:
    """The node starts: the tokens that lead to it become one frame."""
    frames: list[int] = []
    tokens = scope.tokens
    if tokens:
        frames += [tokens.pop(edge) for edge in graph.into[node] if edge in tokens]
        loop = graph.loops.get(node)
        if loop is not None:
            frames += [tokens.pop(edge) for edge in loop.edges if edge in tokens]
    if graph.walk:
        frames = frames[:1]
    distinct = list(dict.fromkeys(frames)) or [0]
    _begin(graph, pos, scope, node, visit, scope.tree.join(distinct))


def _begin(graph: Graph, pos: Position, scope: Scope, node: int, visit: int, frame: int) -> None:
    scope.visits[node] = visit
    if scope.waiting.get(node) == 0:
        del scope.waiting[node]
        scope.arrived.pop(node, None)
    elif node in scope.waiting:
        scope.early.append(node)
    scope.active += 1
    if node in graph.loops and node not in scope.open_loops:
        scope.open_loops[node] = LoopState()
        for edge in graph.loops[node].edges:
            scope.loop_counts.pop(edge, None)
    if pos.join_wakes:
        token = join_token(scope.path, graph.nodes[node].id, visit)
        pos.timers.pop(token, None)
        pos.join_wakes.pop(token, None)
    execution = pos.execs[(scope.path, node)] = Exec(scope.path, node, visit, frame, pos.head)
    if graph.nodes[node].kind in PARENTS:
        execution.phase = "children"
        try:
            execution.items = child_inputs(graph, scope, execution)
        except NotAListError:
            # The engine finds it without items and makes this a failure of the node.
            execution.items = None


def join_token(path: str, node: str, visit: int) -> str:
    return f"join:{path}{node}.{visit}"


def go(graph: Graph, pos: Position, scope: Scope, edge: int, visit: int, frame: int) -> None:
    """The common case in one move: the only edge fires and its target, which waits for nothing, starts."""
    node = graph.target[edge]
    scope.visits[node] = visit
    scope.active += 1
    pos.execs[(scope.path, node)] = Exec(scope.path, node, visit, frame, pos.head)


def skip(_graph: Graph, _pos: Position, scope: Scope, node: int, _b: int, _frame: int) -> None:
    scope.waiting.pop(node, None)
    scope.arrived.pop(node, None)


def drop(_graph: Graph, _pos: Position, scope: Scope, edge: int, _b: int, _frame: int) -> None:
    """A token that came too late for its join."""
    frame = scope.tokens.pop(edge, None)
    if frame is not None:
        scope.tree.discard(frame)


def hold_exit(graph: Graph, _pos: Position, scope: Scope, edge: int, header: int, _frame: int) -> None:
    """A dead edge out of a loop that may still turn: it is decided when the loop ends."""
    scope.open_loops[header].dead_exits.append(edge)


def hold_fired_exit(graph: Graph, _pos: Position, scope: Scope, edge: int, frame: int, _frame: int) -> None:
    """An edge out of a loop has fired: it counts if this is the loop's last time round."""
    header = next(h for h in graph.loop_exits[edge] if h in scope.open_loops)
    scope.open_loops[header].held[edge] = frame


def back_edge(graph: Graph, _pos: Position, scope: Scope, edge: int, fired: int, _frame: int) -> None:
    state = scope.open_loops[graph.target[edge]]
    if edge not in state.decided:
        state.decided.append(edge)
    if fired and edge not in state.fired:
        state.fired.append(edge)


def turn(graph: Graph, pos: Position, scope: Scope, header: int, edge: int, _frame: int) -> None:
    """The loop goes round once more: inside its body everything is undecided again."""
    loop = graph.loops[header]
    scope.loop_counts[edge] = scope.loop_counts.get(edge, 0) + 1
    _forget_exits(scope, header)
    scope.open_loops[header] = LoopState()
    for node in sorted(loop.body):
        scope.waiting.pop(node, None)
        scope.arrived.pop(node, None)
        if pos.join_wakes:
            token = join_token(scope.path, graph.nodes[node].id, scope.visits.get(node, 0) + 1)
            pos.timers.pop(token, None)
            pos.join_wakes.pop(token, None)
        if node in scope.early:
            scope.early.remove(node)
        if node != header:
            _forget_exits(scope, node)
            scope.open_loops.pop(node, None)
            inside = sum(1 for e in graph.into[node] if graph.source[e] in loop.body)
            if inside != graph.indegree[node]:
                scope.waiting[node] = inside
    for edge_in in [e for e in scope.tokens if graph.source[e] in loop.body and graph.target[e] in loop.body]:
        if graph.edges[edge_in].loop is None:
            scope.tree.discard(scope.tokens.pop(edge_in))


def _forget_exits(scope: Scope, header: int) -> None:
    state = scope.open_loops.get(header)
    if state is not None:
        for frame in state.held.values():
            scope.tree.discard(frame)


def leave(_graph: Graph, _pos: Position, scope: Scope, header: int, _b: int, _frame: int) -> None:
    """The loop has ended. What becomes of its exits is said by the moves that follow."""
    scope.open_loops.pop(header, None)


def close(_graph: Graph, pos: Position, scope: Scope, _a: int, _b: int, _frame: int) -> None:
    """The scope is done: its branches come together, and its owner gets the result."""
    scope.tree.finish()
    if scope.owner is not None:
        pos.execs[scope.owner].results[scope.index] = child_result(scope)
        del pos.scopes[scope.path]


def abandon(graph: Graph, pos: Position, scope: Scope, node: int, _b: int, _frame: int) -> None:
    """A running execution that nobody needs any more (its join was won by others, its loop went on)."""
    execution = pos.execs.pop((scope.path, node))
    scope.active -= 1
    scope.tree.discard(execution.frame)
    pos.timers.pop(execution.token, None)
    wipe_inside(pos, f"{scope.path}{graph.nodes[node].id}.{execution.visit}", PARENTS_END)
    for hold in [
        h for h, open_hold in pos.holds.items() if (open_hold.scope, open_hold.node) == (scope.path, node)
    ]:
        pos.timers.pop(pos.holds.pop(hold).token, None)


PARENTS = frozenset({NodeKind.map, NodeKind.subflow})
# What follows a parent's visit in the paths of its children (see `child_path`).
PARENTS_END = ("[", "~")


def child_inputs(graph: Graph, scope: Scope, execution: Exec) -> list[Any]:
    """What the children of a map or sub-flow start from, read from the state as the node sees it."""
    node = graph.nodes[execution.node]
    resolve = resolver(scope.tree, execution.frame)
    if node.map is not None:
        found = compile_expr(node.map.over).evaluate(resolve)
        if not isinstance(found, (list, tuple)):
            kind = "nothing" if found is None or found is EXPR_MISSING else type(found).__name__
            raise NotAListError(
                f"map node {node.id!r} goes over {node.map.over!r}, which is {kind}, not a list"
            )
        return list(found)  # type: ignore[arg-type]
    assert node.subflow is not None
    scope.tree.expose(execution.frame)
    if node.subflow.inputs is None:
        return [FrozenDict(scope.tree.see(execution.frame, "scratch"))]
    given = {name: compile_expr(text).evaluate(resolve) for name, text in node.subflow.inputs.items()}
    return [FrozenDict({k: v for k, v in given.items() if v is not EXPR_MISSING})]


class NotAListError(ValueError):
    """Turned into a failure of the map node by the engine."""


def resolver(tree: FrameTree, frame: int, extra: dict[str, Any] | None = None) -> Resolve:
    """How conditions and templates read the state as a frame sees it: a bare name is scratch, then input."""

    def resolve(path: Path) -> object:
        parts: Path = path[1:] if path[:1] == ("state",) and len(path) > 1 else path
        first = str(next(iter(parts)))
        if extra is not None and first in extra:
            return walk(extra[first], parts[1:])
        if first in PARTITIONS and len(parts) > 1:
            value = tree.read(frame, first, parts[1])
            return EXPR_MISSING if value is MISSING else walk(value, parts[2:])
        value = tree.read(frame, "scratch", first)
        if value is MISSING:
            value = tree.read(frame, "input", first)
        return EXPR_MISSING if value is MISSING else walk(value, parts[1:])

    return resolve


def open_child(graph: Graph, pos: Position, parent: Scope, node: int, index: int) -> Scope:
    """A sub-flow, or one item of a map: a scope inside this one, with values of its own."""
    owner = pos.execs[(parent.path, node)]
    outer = pos.scope_graph(graph, parent)
    spec = outer.nodes[node]
    body = spec.map.body if spec.map else spec.subflow.body if spec.subflow else ""
    given = owner.items[index] if owner.items is not None else None
    name = f"{parent.graph}/{body}" if parent.graph else body
    values: Values = {"input": as_input(given), "scratch": {}, "artifacts": {}}
    values["scratch"].update(outer.subgraphs[body].spec.defaults)
    values["scratch"].update(values["input"])
    path = child_path(parent.path, spec.id, owner, index)
    child = pos.scopes[path] = new_scope(path, name, values, (parent.path, node), index)
    owner.opened = max(owner.opened, index + 1)
    return child


def child_path(parent: str, node: str, owner: Exec, index: int) -> str:
    """Names the child among all that this run ever opens: holds inside take their identity from it (D-28)."""
    again = f"~{owner.failures}" if owner.failures else ""
    return f"{parent}{node}.{owner.visit}{again}[{index}]/"


def as_input(given: Any) -> FrozenDict:
    return given if isinstance(given, FrozenDict) else FrozenDict({"item": given})


def child_result(scope: Scope) -> Any:
    """What the owner sees of a finished child: its state and artifacts."""
    values = scope.tree.values
    return FrozenDict(
        {
            "state": FrozenDict(values.get("scratch", {})),
            "artifacts": FrozenDict(values.get("artifacts", {})),
            "output": values.get("aux", {}).get("output"),
        }
    )


def start_in(graph: Graph, pos: Position, scope: Scope, node: int, frame: int, _frame: int) -> None:
    """One of several first nodes, each in a frame of its own."""
    _begin(graph, pos, scope, node, scope.visits.get(node, 0) + 1, frame)


def wipe_scope(graph: Graph, pos: Position, parent: Scope, node: int, index: int, _frame: int = 0) -> None:
    """A child that failed while its owner copes: it is gone with everything inside it."""
    owner = pos.execs[(parent.path, node)]
    wipe_inside(pos, child_path(parent.path, graph.nodes[node].id, owner, index))


def wipe_inside(pos: Position, path: str, follows: tuple[str, ...] = ("",)) -> None:
    """Forget every scope whose path begins so, with what runs and waits in it."""
    starts = tuple(path + end for end in follows)
    for gone in [p for p in pos.scopes if p.startswith(starts)]:
        del pos.scopes[gone]
    for key in [k for k in pos.execs if k[0].startswith(starts)]:
        pos.timers.pop(pos.execs.pop(key).token, None)
    for hold in [h for h, waiting in pos.holds.items() if waiting.scope.startswith(starts)]:
        pos.timers.pop(pos.holds.pop(hold).token, None)
    for token in [
        t for t, (scope, _) in pos.timers.items() if t in pos.join_wakes and scope.startswith(starts)
    ]:
        del pos.timers[token], pos.join_wakes[token]


def failed_item(error: ErrorInfo) -> FrozenDict:
    """What stands in a map's results for an item that failed, where failures are collected."""
    return FrozenDict({"failed": error.message, "type": error.type})


MOVES = {
    "G": go,
    "W": wipe_scope,
    "Z": start_in,
    "F": fire,
    "N": fork,
    "D": dead,
    "S": start,
    "K": skip,
    "T": drop,
    "P": hold_exit,
    "E": hold_fired_exit,
    "B": back_edge,
    "L": turn,
    "Q": leave,
    "C": close,
    "A": abandon,
}


def finish_exec(pos: Position, scope: Scope, execution: Exec, delta: Delta) -> None:
    """The execution is settled: its changes become visible to what follows."""
    scope.tree.settle(execution.frame, delta)
    del pos.execs[(scope.path, execution.node)]
    scope.active -= 1


def new_scope(path: str, graph: str, values: Values, owner: ExecKey | None = None, index: int = 0) -> Scope:
    return Scope(path, graph, FrameTree.rooted(values), owner, index)
