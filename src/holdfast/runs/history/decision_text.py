"""A decision in words: what a record decided, with the names of its graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.model.events import graph_at
from holdfast.model.graph import Graph
from holdfast.model.record_bodies import AskedBody, AttemptBody, EndBody, StepBody, SubstepBody
from holdfast.model.shown_names import shown_name
from holdfast.types.record import Kind, Move, Record

Named = tuple[str, str, str]
"""(what, where, target): a move without numbers, so that two versions of a graph can be compared."""

_EDGES = {
    "R": "restarted by",
    "F": "took",
    "G": "took",
    "D": "did not take",
    "E": "took",
    "P": "did not take",
}
_NODES = {
    "K": "skipped",
    "S": "started",
    "Z": "started",
    "A": "abandoned",
    "U": "gave up",
    "V": "dropped a branch of",
    "L": "turned the loop at",
}


def name_moves(graph: Graph, moves: Iterable[Move]) -> list[Named]:
    """Moves by the ids of edges and nodes."""
    return [named for move in moves for named in _named(graph, *move)]


def _named(graph: Graph, what: str, scope: str, a: int, b: int) -> list[Named]:
    inner = graph_at(graph, scope)
    if what == "G":
        target = inner.nodes[inner.target[a]].id
        return [("F", scope, inner.edges[a].id), ("S", scope, f"{target}.{b}")]
    if what in ("F", "D", "T", "P", "E", "B", "R"):
        number = f".{b}" if what == "B" else ""
        return [(what, scope, inner.edges[a].id + number)]
    if what in ("S", "O", "W", "V"):
        return [(what, scope, f"{inner.nodes[a].id}.{b}")]
    if what in ("Z", "K", "A", "U", "L", "Q"):
        return [(what, scope, inner.nodes[a].id)]
    return [(what, scope, f"{a}.{b}")]


def moves_text(graph: Graph, moves: Iterable[Move]) -> str:
    """Which edges were taken and which were not, and what started."""
    shown: dict[str, list[str]] = {}
    for what, scope, who in name_moves(graph, moves):
        verb = _EDGES.get(what) or _NODES.get(what)
        if verb:
            name = who.rpartition(".")[0] if what in ("S", "V") else who
            shown.setdefault(verb, []).append(shown_name(scope + name, graph))
        elif what == "C" and not scope:
            shown.setdefault("came to the end", [])
    return "; ".join(f"{verb} {', '.join(dict.fromkeys(names))}".strip() for verb, names in shown.items())


def decision_text(graph: Graph, record: Record, body: Any) -> str:
    """One line: what happened at this record."""
    who = shown_name(f"{record.scope}{record.node}", graph) or "the run"
    return _TEXTS.get(Kind(record.kind), _other)(graph, record, who, body)


def _step(graph: Graph, record: Record, who: str, body: StepBody) -> str:
    moves = moves_text(graph, body.moves)
    halts = ", and no node handles that" if body.halts else ""
    return f"{who} settled with {record.outcome!r}{halts}{_then(moves)}"


def _then(moves: str) -> str:
    return f": {moves}" if moves else ", and nothing followed"


def _attempt(graph: Graph, _record: Record, who: str, body: AttemptBody) -> str:
    moves = moves_text(graph, body.moves)
    error = f" ({body.error.type}: {body.error.message})" if body.error is not None else ""
    wake = f", to wake at {body.wake_at}" if body.wake_at is not None else ""
    return f"{who}: {body.reason.replace('_', ' ')}{error}{wake}" + (f": {moves}" if moves else "")


def _asked(_graph: Graph, _record: Record, who: str, body: AskedBody) -> str:
    whom = f" of {body.assignee}" if body.assignee else ""
    return f"{who} asked{whom}: {body.prompt}"


def _substep(_graph: Graph, _record: Record, who: str, body: SubstepBody) -> str:
    return f"{who}: {'answer to ' if body.hold else 'step '}{body.name!r} recorded"


def _end(_graph: Graph, _record: Record, _who: str, body: EndBody) -> str:
    error = f" ({body.error.type}: {body.error.message})" if body.error is not None else ""
    return f"{ended_text(body.status)}{error}"


def ended_text(status: str) -> str:
    return f"the run {'was ' if status == 'cancelled' else ''}{status}"


def _created(graph: Graph, _record: Record, _who: str, body: Any) -> str:
    return f"the run began: {moves_text(graph, body.moves)}"


def _other(_graph: Graph, record: Record, who: str, _body: Any) -> str:
    return f"{who}: {Kind(record.kind).name}"


_TEXTS: dict[Kind, Any] = {
    Kind.created: _created,
    Kind.step: _step,
    Kind.attempt: _attempt,
    Kind.asked: _asked,
    Kind.substep: _substep,
    Kind.end: _end,
}
