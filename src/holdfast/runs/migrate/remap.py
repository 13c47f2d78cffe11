"""Converts a position on one version of a flow to another version: by names, or not at all.

Everything that a run stores by number (its executions, tokens, counters, open loops) is looked up in the new
graph. What has no place there is a misfit, explained in words; a run with one is not migrated.
"""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.model.breakpoints import SUFFIX
from holdfast.model.graph import Graph
from holdfast.model.moves import join_token
from holdfast.model.position import SETTLED, Exec, ExecKey, LoopState, OpenHold, Position, Scope
from holdfast.model.program import Program
from holdfast.runs.history.graph_match import Match, match, place_in
from holdfast.runs.migrate.blockers import MigrationBlocker, blockers_in
from holdfast.types.record import NewTimer

Named = tuple[str, str]
"""(scope, node)"""


class RemapResult(msgspec.Struct, kw_only=True):
    """The result. With misfits the position can only be used for their explanation."""

    misfits: list[MigrationBlocker]
    forced: list[MigrationBlocker] = []  # accepted by the operator
    matches: dict[str, Match] = {}  # by the old path of the scope
    paths: dict[str, str] = {}  # scopes, old -> new
    bodies: dict[ExecKey, Match] = {}  # of maps and sub-flows
    labels: dict[str, str] = {}  # executions, old -> new, where that differs
    holds: dict[str, tuple[str, str]] = {}  # hold -> (scope, node), where the names differ
    timers: list[NewTimer] = []
    close_timers: list[str] = []


def remap(pos: Position, old: Graph, new: Program, *, force: bool = False) -> RemapResult:
    """Change `pos` (the caller's copy) from the old graph to the new. `force`: accept soft misfits."""
    done = RemapResult(misfits=_standstill(pos))
    if old.walk != new.graph.walk:
        done.misfits.append(MigrationBlocker("", f"NEW is traversed as a {new.graph.spec.traversal}", ""))
    if done.misfits:
        return done
    for path in sorted(pos.scopes, key=lambda path: path.count("/")):
        _match_scope(pos, pos.scopes[path], old, new, done)
    if force:
        done.forced = [misfit for misfit in done.misfits if misfit.soft]
        done.misfits = [misfit for misfit in done.misfits if not misfit.soft]
    if not done.misfits:
        _Remapping(pos, done).run()
    return done


def _standstill(pos: Position) -> list[MigrationBlocker]:
    """A run in the middle of something that only its own version can finish."""
    found: list[MigrationBlocker] = []
    if (pos.failing is not None and pos.status == "running") or pos.cancelling is not None:
        found.append(MigrationBlocker("", "it is about to end", "let its own version end it"))
    if any(wait.why == "code" for wait in pos.holds.values()):
        found.append(MigrationBlocker("", "a person is asked about changed code", "answer that first"))
    if any(SETTLED in e.subs for e in pos.execs.values()):
        found.append(MigrationBlocker("", "it is choosing its next edge", "first resume it on its version"))
    return found


def _match_scope(pos: Position, scope: Scope, old: Graph, new: Program, done: RemapResult) -> None:
    if scope.owner is None:
        matched: Match | None = match(old, new)
    else:
        matched = _match_child(scope.owner, done)
    if matched is None:
        return  # its owner is a misfit already
    done.matches[scope.path] = matched
    done.misfits += blockers_in(pos, scope, matched)


def _match_child(owner: ExecKey, done: RemapResult) -> Match | None:
    outer = done.matches.get(owner[0])
    if outer is None or owner[1] not in outer.nodes:
        return None
    twin = done.bodies.get(owner)  # of another item of the same map
    if twin is None:
        twin = outer.child(owner[1])
        if twin is not None:
            done.bodies[owner] = twin
    return twin


class _Remapping:
    """Everything was found: every number is replaced by the new one."""

    def __init__(self, pos: Position, done: RemapResult) -> None:
        self.pos = pos
        self.done = done
        self.paths = done.paths

    def run(self) -> None:
        pos = self.pos
        for path in sorted(pos.scopes, key=lambda path: path.count("/")):
            self._name(pos.scopes[path])
        self._timers()
        pos.holds = {hold: self._hold(hold, wait) for hold, wait in pos.holds.items()}
        pos.execs = {self._key(key): self._exec(e) for key, e in pos.execs.items()}
        scopes = [self._scope(scope) for scope in pos.scopes.values()]
        pos.scopes = {scope.path: scope for scope in scopes}
        self._own_choices()
        pos.failed_node, pos.code = self._failed_node(), ""

    def _name(self, scope: Scope) -> None:
        """Paths are made of node names: `send.1[0]/` is inside the node that was called `send`."""
        if scope.owner is None:
            self.paths[scope.path] = ""
            return
        outer, node = scope.owner
        matched = self.done.matches[outer]
        rest = scope.path[len(outer) + len(matched.old.nodes[node].id) :]
        self.paths[scope.path] = f"{self.paths[outer]}{matched.name(node)}{rest}"

    def _key(self, key: ExecKey) -> ExecKey:
        path, node = key
        return (self.paths[path], self.done.matches[path].nodes[node] if node >= 0 else node)

    def _label(self, path: str, node: int) -> tuple[Named, Named]:
        matched = self.done.matches[path]
        return (path, matched.old.nodes[node].id), (self.paths[path], matched.name(node))

    def _exec(self, execution: Exec) -> Exec:
        before, after = self._label(execution.scope, execution.node)
        if before != after:
            execution.born = execution.born or before
        if not self.done.matches[execution.scope].new.accepts_code(after[1], execution.code):
            # The operator accepts it: from here on its steps are those of the new code.
            execution.code = ""
        execution.scope, execution.node = self._key((execution.scope, execution.node))
        return execution

    def _hold(self, hold: str, wait: OpenHold) -> OpenHold:
        before, after = self._label(wait.scope, wait.node)
        matched = self.done.matches[wait.scope]
        if before != after:
            self._move_hold(hold, wait, before, after)
        wait.scope, wait.node = self._key((wait.scope, wait.node))
        if (wait.on_timeout or "").startswith("branch:"):
            target = (wait.on_timeout or "")[7:]
            wait.on_timeout = f"branch:{matched.name(matched.old.index[target])}"
        return wait

    def _move_hold(self, hold: str, wait: OpenHold, before: Named, after: Named) -> None:
        if wait.why == "break":
            # A breakpoint has its own name, made from its node's.
            before, after = (before[0], before[1] + SUFFIX), (after[0], after[1] + SUFFIX)
            self.done.labels["".join(before)] = "".join(after)
        self.done.holds[hold] = after

    def _failed_node(self) -> str:
        """The present name of the node that a run, which is to resume, failed at."""
        root = self.done.matches[""]
        return root.name(root.old.index.get(self.pos.failed_node, -1)) if self.pos.failed_node else ""

    def _own_choices(self) -> None:
        """Breakpoints and checkpoints of this run alone name nodes by their paths."""
        pos, root = self.pos, self.done.matches[""]
        pos.breaks = [place for old in pos.breaks if (place := place_in(root, old))]
        if pos.checkpoints.get("exclude"):
            kept = [place for old in pos.checkpoints["exclude"] if (place := place_in(root, old))]
            pos.checkpoints = {**pos.checkpoints, "exclude": kept}

    def _timers(self) -> None:
        """Those of joins are named after their node: they are set again under the new name."""
        pos, done = self.pos, self.done
        timers: dict[str, ExecKey] = {}
        for token, key in pos.timers.items():
            fresh = self._key(key)
            wake = pos.join_wakes.pop(token, None)
            if wake is not None:
                (path, name), (new_path, new_name) = self._label(*key)
                visit = int(token.removeprefix(f"join:{path}{name}."))
                renamed = join_token(new_path, new_name, visit)
                pos.join_wakes[renamed] = wake
                if renamed != token:
                    done.close_timers.append(token)
                    done.timers.append(NewTimer(renamed, wake))
                token = renamed
            timers[token] = fresh
        pos.timers = timers

    def _scope(self, scope: Scope) -> Scope:
        matched = self.done.matches[scope.path]
        nodes, edges = matched.nodes, matched.edges
        self._note_labels(scope, matched)
        for frame in scope.tree.frames.values():
            frame.steps[:] = [msgspec.structs.replace(d, node=matched.order(d.node)) for d in frame.steps]
        scope.tokens = {edges[e]: frame for e, frame in scope.tokens.items()}
        scope.waiting = {nodes[n]: left for n, left in scope.waiting.items()}
        scope.arrived = {nodes[n]: count for n, count in scope.arrived.items()}
        scope.early = [nodes[n] for n in scope.early]
        scope.visits = {nodes[n]: count for n, count in scope.visits.items() if n in nodes}
        scope.before = {nodes[n]: count for n, count in scope.before.items() if n in nodes}
        scope.loop_counts = {edges[e]: count for e, count in scope.loop_counts.items() if e in edges}
        scope.open_loops = {nodes[h]: _loop(state, edges) for h, state in scope.open_loops.items()}
        scope.walk = _walk(scope.walk, matched)
        scope.path = self.paths[scope.path]
        if scope.owner is not None:
            outer, node = scope.owner
            parent = self.pos.scopes[outer]
            body = matched.new.graph.name
            scope.owner = self._key((outer, node))
            scope.graph = f"{parent.graph}/{body}" if parent.graph else body
        return scope

    def _note_labels(self, scope: Scope, matched: Match) -> None:
        for node in matched.nodes:
            (path, name), (new_path, new_name) = self._label(scope.path, node)
            if (path, name) != (new_path, new_name):
                self.done.labels[path + name] = new_path + new_name


def _loop(state: LoopState, edges: dict[int, int]) -> LoopState:
    return LoopState(
        [edges[e] for e in state.decided],
        [edges[e] for e in state.fired],
        [edges[e] for e in state.dead_exits],
        {edges[e]: frame for e, frame in state.held.items()},
    )


def _walk(walk: dict[str, Any], matched: Match) -> dict[str, Any]:
    """Goal gates are identified by the names of their nodes."""
    gates = walk.get("gates")
    if not gates:
        return walk
    index = matched.old.index
    return {**walk, "gates": {matched.name(index[name]): met for name, met in gates.items() if name in index}}
