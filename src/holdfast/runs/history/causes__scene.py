"""A record at which something was decided, and the messages that several of the causes are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from holdfast.engine.messages import Answered, Doubted, Finished, Lapsed, Message
from holdfast.errors import HoldCancelledError
from holdfast.model.graph import Graph, InDoubt, Node
from holdfast.model.position import Exec, Position, find_exec
from holdfast.model.record_bodies import ErrorInfo
from holdfast.types.record import Record
from holdfast.types.value import FrozenDict

NO_ERROR: Final = ErrorInfo("", "", "")


class Scene(msgspec.Struct, frozen=True):
    """A record at which something was decided, and where the run stood. `graph`: the one that decides now;
    `told`: the one that the journal's numbers are about."""

    graph: Graph
    told: Graph
    pos: Position
    record: Record
    body: Any
    reason: str = ""  # why the run was cancelled, if it was

    @property
    def execution(self) -> Exec:
        return find_exec(self.graph, self.pos, self.record)

    def node(self, execution: Exec) -> Node:
        return self.pos.scope_graph(self.graph, self.pos.scopes[execution.scope]).nodes[execution.node]

    def hold(self, why: str, key: str = "") -> str:
        """The open question of the record's node; empty where there is none."""
        at = self.execution
        for hold, wait in self.pos.holds.items():
            if (wait.scope, wait.node, wait.why) == (at.scope, at.node, why) and key in ("", wait.key):
                return hold
        return ""

    def policy(self, node: Node) -> InDoubt:
        return node.in_doubt or self.graph.spec.in_doubt


Cause = Sequence[Message] | None
"""What the engine was told; nothing: the record is a worker's own; None: it only follows from another."""


def said(hold: str, resolution: Any) -> Answered:
    resolution = resolution if isinstance(resolution, FrozenDict) else FrozenDict(resolution)
    return Answered(hold=hold, resolution=resolution, by=resolution.get("resolved_by") or "", at=0)


def lapse(hold: str, error: ErrorInfo | None) -> Lapsed:
    """A hold that nobody decided, as its error tells."""
    if error is None or error.code != HoldCancelledError.code:
        return Lapsed(hold=hold)
    return Lapsed(
        hold=hold, withdrawn=True, raises=True, reason=error.message.partition(" was withdrawn: ")[2]
    )


def ended_badly(execution: Exec, error: ErrorInfo | None, **more: Any) -> Finished:
    return Finished(
        scope=execution.scope,
        node=execution.node,
        visit=execution.visit,
        outcome="fail",
        error=error or NO_ERROR,
        **more,
    )


def doubt(execution: Exec, substep: str, error: ErrorInfo | None) -> Message:
    if not substep:
        return ended_badly(execution, error, unknown=True)
    return Doubted(
        scope=execution.scope,
        node=execution.node,
        visit=execution.visit,
        substep=substep,
        error=error or NO_ERROR,
    )
