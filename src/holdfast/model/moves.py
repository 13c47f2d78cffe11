"""The elementary moves by which a run advances.

The engine decides which moves to make; each is written into the record that caused it. Loading a run
applies the recorded moves through the same functions: nothing is decided again, no user code runs
(D-26), and a later version of the engine cannot read an old history differently.
"""

from __future__ import annotations

from holdfast.errors import CheckpointCorruptError
from holdfast.model.child_scopes import (
    NO_INPUT,
    PARENTS,
    PARENTS_END,
    child_inputs,
    open_child,
    result_of,
    wipe_inside,
    wipe_scope,
)
from holdfast.model.frames import FrameTree
from holdfast.model.graph import Graph
from holdfast.model.position import Exec, LoopState, Position, Scope, naps_of
from holdfast.types.record import Move


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
        elif what == "C":
            close(graph, pos, scope)
        else:
            MOVES[what](pos.scope_graph(graph, scope), pos, scope, a, b, frame)


def fire(graph: Graph, _pos: Position, scope: Scope, edge: int, frame: int, _frame: int) -> None:
    """The edge fires: its token is a frame on its way to the target."""
    scope.tokens[edge] = frame
    if graph.walk:
        _count_turns(graph, scope, edge)
    _decide(graph, scope, edge, 1)


def _count_turns(graph: Graph, scope: Scope, edge: int) -> None:
    """A walk has no loop bodies: it counts the turns of each loop edge. The count starts again when the walk
    enters the header from outside, or when an outer loop turns."""
    if graph.edges[edge].loop is not None:
        scope.loop_counts[edge] = scope.loop_counts.get(edge, 0) + 1
        for e in graph.inner_loops[edge]:
            scope.loop_counts.pop(e, None)
    elif graph.target[edge] >= 0:
        for e in graph.into[graph.target[edge]]:
            scope.loop_counts.pop(e, None)


def fork(_graph: Graph, _pos: Position, scope: Scope, frame: int, child: int, _frame: int) -> None:
    scope.tree.fork(frame, child)


def dead(graph: Graph, _pos: Position, scope: Scope, edge: int, _b: int, _frame: int) -> None:
    """The edge will not fire (in this turn of its loop)."""
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
    """The node starts: the frames on its in-edges are joined."""
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


def start_in(graph: Graph, pos: Position, scope: Scope, node: int, frame: int, _frame: int) -> None:
    """Starts one of several first nodes, each in its own frame."""
    _begin(graph, pos, scope, node, scope.visits.get(node, 0) + 1, frame)


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
            execution.items = child_inputs(graph, pos, scope, execution)
        except NO_INPUT:
            # The engine sees that it has no items and fails the node.
            execution.items = None


def join_token(path: str, node: str, visit: int) -> str:
    return f"join:{path}{node}.{visit}"


def go(graph: Graph, pos: Position, scope: Scope, edge: int, visit: int, frame: int) -> None:
    """The common case in one move: the only edge fires, and its target, which has no other in-edge,
    starts."""
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
    """An edge out of a loop has fired: it counts if this is the loop's last turn."""
    header = next(h for h in graph.loop_exits[edge] if h in scope.open_loops)
    scope.open_loops[header].held[edge] = frame


def back_edge(graph: Graph, _pos: Position, scope: Scope, edge: int, fired: int, _frame: int) -> None:
    state = scope.open_loops[graph.target[edge]]
    if edge not in state.decided:
        state.decided.append(edge)
    if fired and edge not in state.fired:
        state.fired.append(edge)


def turn(graph: Graph, pos: Position, scope: Scope, header: int, edge: int, _frame: int) -> None:
    """The loop starts another turn: inside its body everything is undecided again."""
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
    """The loop has ended. The moves that follow decide its exits."""
    scope.open_loops.pop(header, None)


def close(graph: Graph, pos: Position, scope: Scope) -> None:
    """The scope is done: its branches are merged, and its owner gets the result."""
    scope.tree.finish()
    if scope.owner is not None:
        pos.execs[scope.owner].results[scope.index] = result_of(graph, pos, scope)
        del pos.scopes[scope.path]


def begin_anew(graph: Graph, _pos: Position, scope: Scope, _edge: int, _b: int, _frame: int) -> None:
    """Restart a walk: its state and counters are reset; its artifacts stay."""
    given, made = scope.tree.see(0, "input"), scope.tree.see(0, "artifacts")
    scratch = {**graph.spec.defaults, **given}
    scope.tree = FrameTree.rooted({"input": given, "scratch": scratch, "artifacts": dict(made)})
    scope.loop_counts.clear()
    scope.tokens.clear()
    scope.before = dict(scope.visits)


def abandon(graph: Graph, pos: Position, scope: Scope, node: int, _b: int, _frame: int) -> None:
    """Drop a running execution that is no longer needed (other branches won its join, its loop turned)."""
    execution = pos.execs.pop((scope.path, node))
    scope.active -= 1
    scope.tree.discard(execution.frame)
    for token in (execution.token, *naps_of(pos, execution)):
        pos.timers.pop(token, None)
    wipe_inside(pos, f"{scope.path}{graph.nodes[node].id}.{execution.visit}", PARENTS_END)
    for hold in [
        h for h, open_hold in pos.holds.items() if (open_hold.scope, open_hold.node) == (scope.path, node)
    ]:
        pos.timers.pop(pos.holds.pop(hold).token, None)


# Two pairs of moves change the position in the same way and differ only in their events (`model.events`): "U"
# abandons a node whose effect may have happened, "A" any other; "V" drops a branch that its join no longer
# needs, "W" a child that failed.
MOVES = {
    "U": abandon,
    "G": go,
    "W": wipe_scope,
    "V": wipe_scope,
    "R": begin_anew,
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
    "A": abandon,
}
