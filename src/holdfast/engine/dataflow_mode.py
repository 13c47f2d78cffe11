"""Dataflow: a node starts when every incoming edge has fired or is dead; dead edges cascade.

Order of work inside one decision is fixed (forward edges, then dead ones, then loops; first in, first
out), so that the same position and message always give the same moves.
"""

from __future__ import annotations

from collections import deque

from holdfast.engine.decision import CannotContinueError, Decision, side_of
from holdfast.engine.loop_limits import require_turn, require_visit
from holdfast.errors import StateError
from holdfast.model.child_scopes import PARENTS_END, open_child
from holdfast.model.graph import JoinKind, NodeKind
from holdfast.model.moves import MOVES, join_token
from holdfast.model.position import Exec, Position, Scope
from holdfast.types.hold import HoldClosed
from holdfast.types.ids import HoldId
from holdfast.types.record import Move, Side
from holdfast.types.status import HoldStatus


def is_open_effect(execution: Exec) -> bool:
    """Whether its effect may be happening right now."""
    return execution.intent >= 0 or bool(execution.step_intents)


def give_up_effects(decision: Decision, gone: list[Exec], moves: list[Move]) -> None:
    """These executions are abandoned: the outcome of their effects stays unknown, and is recorded so
    (D-32)."""
    pos = decision.pos
    for execution in [e for e in gone if is_open_effect(e)]:
        scope = pos.scopes[execution.scope]
        inner = pos.scope_graph(decision.graph, scope)
        MOVES["U"](inner, pos, scope, execution.node, execution.visit, execution.frame)
        moves.append(("U", scope.path, execution.node, execution.visit))


class EdgePropagation:
    """The cascade of edges and starts that one settled node, or one opened scope, causes in its scope."""

    def __init__(self, decision: Decision, scope: Scope, moves: list[Move], frame: int = 0) -> None:
        self.decision = decision
        self.pos: Position = decision.pos
        self.scope = scope
        self.graph = self.pos.scope_graph(decision.graph, scope)
        self.moves = moves
        self.frame = frame
        self.todo: deque[tuple[str, int]] = deque()
        self.opened: list[Exec] = []

    def do(self, what: str, a: int, b: int = 0) -> None:
        MOVES[what](self.graph, self.pos, self.scope, a, b, self.frame)
        self.moves.append((what, self.scope.path, a, b))

    def begin(self) -> None:
        """A new scope: its first nodes start."""
        starts = self._starts()
        if len(starts) > 1:
            for node in starts:
                child = self.scope.tree.next_id
                self.do("N", 0, child)
                self.do("Z", node, child)
                self.started(node)
        else:
            for node in starts:
                self.start(node)
        self.run()

    def _starts(self) -> tuple[int, ...]:
        """Each branch of a parallel node has its own first node."""
        owner = self.scope.owner
        if owner is not None:
            around = self.pos.scope_graph(self.decision.graph, self.pos.scopes[owner[0]])
            spec = around.nodes[owner[1]].parallel
            if spec:
                return (self.graph.index[spec.starts[self.scope.index]],)
        return self.graph.starts

    def settle(self, node: int, fired: list[int]) -> None:
        """A node is done and these of its edges fire."""
        out, loops = self.graph.out[node], self.graph.back[node]
        live = self._live(fired, loops) if loops else dict.fromkeys(fired)
        branches = len(live) > 1
        for e in live:
            frame = self.frame
            if branches:
                frame = self.scope.tree.next_id
                self.do("N", self.frame, frame)
            self._fire(e, frame)
        if len(live) < len(out):
            self.todo.extend([("dead", e) for e in out if e not in live and e not in loops])
        if loops:
            self.todo.extend([("back", e) for e in loops if e in live])
            self.todo.extend([("stay", e) for e in loops if e not in live])
        self.run()

    def _live(self, fired: list[int], loops: tuple[int, ...]) -> dict[int, None]:
        """The edges that really fire: a node that begins another turn of a loop does not also leave it by an
        exit."""
        live = dict.fromkeys(fired)
        # Only one loop can turn at a time: the one that was declared first.
        again = next((e for e in loops if e in live), None)
        if again is None:
            return live
        require_turn(self.graph, self.scope, again)
        if len(live) == 1:
            return live
        target, exits = self.graph.target, self.graph.loop_exits
        header = target[again]
        return {
            e: None for e in live if (target[e] == header if e in loops else header not in exits.get(e, ()))
        }

    def _fire(self, e: int, frame: int) -> None:
        open_loops = self.scope.open_loops
        if open_loops and any(header in open_loops for header in self.graph.loop_exits.get(e, ())):
            self.do("E", e, frame)
            return
        self.do("F", e, frame)
        if self.graph.edges[e].loop is None:
            self.todo.append(("fired", e))

    def run(self) -> None:
        while self.todo:
            what, e = self.todo.popleft()
            if what == "fired":
                self._arrived(e, fired=True)
            elif what == "dead":
                self._kill(e)
            else:
                self._back(e, fired=what == "back")

    def _kill(self, e: int) -> None:
        if self.scope.open_loops:
            for header in self.graph.loop_exits.get(e, ()):
                if header in self.scope.open_loops:
                    self.do("P", e, header)
                    return
        self.do("D", e)
        self._arrived(e, fired=False)

    def _arrived(self, e: int, *, fired: bool) -> None:
        node = self.graph.target[e]
        if node < 0:
            return
        if self.graph.indegree[node] == 1:
            if fired:
                self.start(node)
            else:
                self.skip(node)
            return
        self._joined(node, e, fired=fired)

    def _joined(self, node: int, e: int, *, fired: bool) -> None:
        scope, policy = self.scope, self.graph.nodes[node].join
        if node in scope.early or node not in scope.waiting:
            # Its join was decided without this edge.
            if fired:
                self.do("T", e)
            return
        count = scope.arrived.get(node, 0)
        left = scope.waiting[node]
        need = {JoinKind.all: count + left, JoinKind.any: 1, JoinKind.quorum: policy.count}[policy.kind]
        if count and count >= need:
            self.start(node)
        elif left == 0:
            if count == 0:
                self.skip(node)
            else:
                self._unsatisfied(node, count, need)
        elif policy.timeout is not None and fired and count == 1:
            self.opened.append(Exec(scope.path, node, self.visit(node) + 1, 0, self.pos.head, phase="join"))

    def _unsatisfied(self, node: int, count: int, need: int) -> None:
        name = self.graph.nodes[node].id
        raise CannotContinueError(
            "join_unsatisfied",
            f"{name!r} needs {need} incoming branches, but only {count} can still arrive",
            name,
        )

    def visit(self, node: int) -> int:
        return self.scope.visits.get(node, 0)

    def start(self, node: int) -> None:
        name = self.graph.nodes[node].id
        if (self.scope.path, node) in self.pos.execs:
            raise CannotContinueError("stall", f"{name!r} would start again while it is still running", name)
        require_visit(self.graph, self.scope, node)
        policy = self.graph.nodes[node].join
        if policy.timeout is not None:
            token = join_token(self.scope.path, name, self.visit(node) + 1)
            if token in self.pos.join_wakes:
                self._side().close_timers.append(token)
        try:
            self.do("S", node, self.visit(node) + 1)
        except StateError as clash:
            raise CannotContinueError(
                "state_mismatch", f"the branches into {name!r} do not merge: {clash.message}", name
            ) from None
        self.started(node)
        if policy.cancel_losers and node in self.scope.early:
            self._cancel_losers(node)

    def started(self, node: int) -> None:
        execution = self.pos.execs[(self.scope.path, node)]
        kind = self.graph.nodes[node].kind
        if kind is NodeKind.task or kind is NodeKind.guardrail:
            self.decision.starts.append(execution)
        self.opened.append(execution)

    def skip(self, node: int) -> None:
        self.do("K", node)
        self.todo.extend(self._no_way(node))

    def _cancel_losers(self, winner: int) -> None:
        """Executions that run only to reach this join are no longer needed."""
        upstream = self.graph.upstream(winner)
        for key in [k for k in self.pos.execs if k[0] == self.scope.path and k[1] in upstream]:
            self._abandon(key[1])
            self.todo.extend(self._no_way(key[1]))

    def _abandon(self, node: int) -> None:
        """Stop an execution and everything that runs or waits inside it."""
        execution = self.pos.execs[(self.scope.path, node)]
        inside = tuple(
            f"{self.scope.path}{self.graph.nodes[node].id}.{execution.visit}{x}" for x in PARENTS_END
        )
        gone = [execution, *(e for e in self.pos.execs.values() if e.scope.startswith(inside))]
        keys = {(e.scope, e.node) for e in gone}
        side = self._side()
        for hold, waiting in self.pos.holds.items():
            if (waiting.scope, waiting.node) in keys:
                side.close_holds.append(
                    HoldClosed(HoldId(hold), HoldStatus.cancelled, "its branch is no longer needed")
                )
        side.close_timers += [token for token, key in self.pos.timers.items() if key in keys]
        self.decision.cancels += gone
        give_up_effects(self.decision, gone[1:], self.moves)
        self.decision.starts = [s for s in self.decision.starts if (s.scope, s.node) not in keys]
        if is_open_effect(execution):
            self.do("U", node, execution.visit)
        else:
            self.do("A", node)

    def _side(self) -> Side:
        return side_of(self.decision.records[-1][0])

    def _no_way(self, node: int) -> list[tuple[str, int]]:
        return [("stay" if self.graph.edges[e].loop is not None else "dead", e) for e in self.graph.out[node]]

    def _back(self, e: int, *, fired: bool) -> None:
        header = self.graph.target[e]
        state = self.scope.open_loops.get(header)
        if state is None:
            return
        self.do("B", e, int(fired))
        loop = self.graph.loops[header]
        if len(state.decided) < len(loop.edges):
            return
        if state.fired:
            # Executions that still run in the body lost their join: the next turn starts without them.
            if self.pos.execs:
                for node in [n for p, n in self.pos.execs if p == self.scope.path and n in loop.body]:
                    self._abandon(node)
            if self.todo:
                self.todo = deque(step for step in self.todo if self.graph.source[step[1]] not in loop.body)
            self.do("L", header, state.fired[0])
            self.start(header)
            return
        self.do("Q", header)
        for e, frame in state.held.items():
            self._fire(e, frame)
        self.todo.extend(("dead", x) for x in state.dead_exits)

    def open_children(self, execution: Exec) -> list[Scope]:
        """The next children of a node, as many as may run at once; a sub-flow has one."""
        node = self.graph.nodes[execution.node]
        total = len(execution.items or ())
        several = node.map or node.parallel
        limit = several.concurrency if several and several.concurrency else total
        fresh: list[Scope] = []
        while execution.opened < total and execution.opened - len(execution.results) < limit:
            index = execution.opened
            fresh.append(open_child(self.decision.graph, self.pos, self.scope, execution.node, index))
            self.moves.append(("O", self.scope.path, execution.node, index))
        return fresh
