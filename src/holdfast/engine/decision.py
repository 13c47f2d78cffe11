"""A decision of the engine: records to append, in order, and what the worker does next."""

from __future__ import annotations

from typing import Protocol

from holdfast.model.apply import apply_record
from holdfast.model.breakpoints import place_of
from holdfast.model.graph import Graph, Node
from holdfast.model.position import Exec, Position
from holdfast.model.record_bodies import AttemptBody, ErrorInfo
from holdfast.types.ids import HoldId
from holdfast.types.record import Body, Kind, Op, Record, Side


class ValueChecker(Protocol):
    """Checks values that do not come from a handler against the state's types, which only code knows."""

    def ops(self, decision: Decision, execution: Exec, ops: list[Op], /) -> list[Op] | ErrorInfo:
        """The update of a hold, a map or a sub-flow, converted to the state's types; or why it does not
        fit."""
        ...

    def inputs(self, decision: Decision, execution: Exec, /) -> ErrorInfo | None:
        """Why the input that a map or sub-flow passes to its children does not fit their state."""
        ...

    def stops(self, decision: Decision, /) -> bool:
        """Whether a missing name stops a run that was started before it always did. False only in a replay,
        where the journal shows that the run continued."""
        ...


class CannotContinueError(Exception):
    """The run cannot continue from here: becomes a failure of the run."""

    def __init__(self, code: str, message: str, node: str) -> None:
        super().__init__(message)
        self.code, self.message, self.node = code, message, node


class Decision:
    """Records are drafts: the worker encodes their bodies. The position has already been advanced by them."""

    __slots__ = ("cancels", "ended", "fits", "graph", "now", "pos", "probes", "records", "starts")

    def __init__(self, graph: Graph, pos: Position, now: int, fits: ValueChecker | None = None) -> None:
        self.fits = fits
        self.graph = graph
        self.pos = pos
        # Time never goes back within a run (D-5).
        self.now = now if now > pos.at else pos.at
        self.records: list[tuple[Record, Body]] = []
        self.starts: list[Exec] = []
        self.cancels: list[Exec] = []
        self.probes: list[Exec] = []
        self.ended = False

    def is_strict(self) -> bool:
        """Whether an expression that meets a missing name stops the run here (D-26)."""
        return self.pos.strict_names or self.fits is None or self.fits.stops(self)

    def draft(
        self,
        kind: Kind,
        body: Body,
        *,
        node: str = "",
        execution: Exec | None = None,
        effect: str = "",
        outcome: str = "",
        listed: bool = False,
        side: Side | None = None,
    ) -> Record:
        """A record that follows the last one; its payload is encoded later."""
        record = Record(
            self.pos.head + 1,
            kind,
            self.now,
            0,
            node,
            execution.visit if execution else 0,
            execution.attempt if execution else 0,
            execution.scope if execution else "",
            effect,
            outcome,
            listed,
            0,
            b"",
            b"",
            side,
        )
        self.records.append((record, body))
        return record


def node_of(graph: Graph, pos: Position, execution: Exec) -> Node:
    scope = pos.scopes[execution.scope]
    return pos.scope_graph(graph, scope).nodes[execution.node]


def lists_checkpoint(pos: Position, graph: Graph, node: Node, moment: str, scope: str = "") -> bool:
    """One precedence, for new and resumed runs alike (D-10): what this run excludes (or lists not at
    all), then the node's setting, then the run's policy, then the flow's."""
    own = pos.checkpoints
    if own and (own["policy"] == "none" or place_of(scope, node.id) in own["exclude"]):
        return False
    setting = node.checkpoint
    if setting is None:
        policy = own["policy"] if own else graph.spec.checkpoints
        when = own.get("when") if own else None
        setting = when or graph.spec.checkpoint_when if policy == "every_node" else "none"
    return setting in (moment, "both")


def side_of(record: Record) -> Side:
    if record.side is None:
        record.side = Side()
    return record.side


def consume_hold(decision: Decision, hold: str, before: int) -> None:
    """The outcome of this hold is marked as received with the first record that follows from it: those after
    the first `before` ones."""
    # With the first of them, because all records of a decision commit together.
    if len(decision.records) > before:
        side_of(decision.records[before][0]).resumed_holds.append(HoldId(hold))


def consume(decision: Decision, inbox: int) -> None:
    """Mark an inbox message that has no effect any more, so that it is not read again."""
    if inbox:
        body = AttemptBody("ignored")
        record = decision.draft(Kind.attempt, body, side=Side(inbox_done=[inbox]))
        apply_record(decision.graph, decision.pos, record, body)
