"""What a handler can read of its run and of the place where it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.model.graph import JoinKind, Node
from holdfast.model.position import Exec
from holdfast.model.secrets import outgoing
from holdfast.runs.context.driver_protocols import ContextCalls
from holdfast.store.blob.objects import Objects
from holdfast.store.protocols import Store
from holdfast.types.ids import RunId


class ContextFacts:
    """The part of a `Context` that only reads."""

    def __init__(self, calls: ContextCalls, execution: Exec, node: Node) -> None:
        self._calls = calls
        self._session = calls.session
        self._exec = execution
        self._node = node

    @property
    def run_id(self) -> RunId:
        return self._session.run

    @property
    def node(self) -> str:
        return self._node.id

    @property
    def visit(self) -> int:
        return self._exec.visit

    @property
    def attempt(self) -> int:
        return self._exec.attempt

    @property
    def failures(self) -> int:
        """How many attempts of this visit have failed."""
        return self._exec.failures

    @property
    def came_by(self) -> str:
        """In a walk: the id of the edge that led here; empty at its start and after a jump."""
        return str(self._session.pos.scopes[self._exec.scope].walk.get("came_by", ""))

    @property
    def restarts(self) -> int:
        """How often the run's walk has restarted."""
        return int(self._session.pos.scopes[""].walk.get("restarts", 0))

    @property
    def tenant(self) -> str:
        return self._session.row.tenant

    @property
    def store(self) -> Store:
        """Of the run, for integrations that keep rows of their own beside it."""
        return self._session.store

    @property
    def objects(self) -> Objects | None:
        """Where large blobs of that store are, if not in it."""
        return self._session.services.blobs.objects

    @property
    def join_timed_out(self) -> bool:
        """Whether the node started because the time limit of its join was over."""
        scope, policy = self._session.pos.scopes[self._exec.scope], self._node.join
        if policy.timeout is None or self._exec.node not in scope.early or policy.kind is JoinKind.any:
            return False
        return policy.kind is JoinKind.all or scope.arrived.get(self._exec.node, 0) < policy.count

    @property
    def flow(self) -> str:
        return self._session.row.flow

    @property
    def instance_key(self) -> str | None:
        """The entity that the run is about, if its deployment has entities."""
        return self._session.row.instance_key

    @property
    def input(self) -> Any:
        return self._session.pos.scopes[self._exec.scope].tree.see(0, "input")

    @property
    def scope(self) -> str:
        """The path of the branch, turn or sub-flow that contains the node; empty at the top."""
        return self._exec.scope

    @property
    def run_input(self) -> Any:
        """The input of the whole run, also in a sub-flow or an item of a map."""
        return self._session.pos.scopes[""].tree.see(0, "input")

    @property
    def totals(self) -> Mapping[str, float]:
        """Totals over all settled steps of the run so far: steps, duration (microseconds), tokens, cost."""
        return dict(self._session.pos.totals)

    @property
    def last_try(self) -> bool:
        """Whether the node's retry policy allows no further attempt after this one."""
        return self._exec.failures + 1 >= self._node.retry.attempts

    def shown(self, value: Any) -> Any:
        """Plain data as people may see it: the flow's secrets are masked."""
        return outgoing(value, self._session.graph.secrets)

    @property
    def dropped(self) -> bool:
        """Whether this execution is not resumed: the run is cancelled, or its branch is."""
        pos = self._session.pos
        return pos.cancelling is not None or (self._exec.scope, self._exec.node) not in pos.execs

    @property
    def idempotency_key(self) -> str:
        """Stable over attempts, new after a fork; from the declared template if there is one."""
        return self._calls.idempotency_key(self._exec, self._node)

    def render(self, text: str) -> str:
        """A template such as `Refund {{order_id}}`, filled from the state that the node sees."""
        return self._calls.render(self._exec, text)
