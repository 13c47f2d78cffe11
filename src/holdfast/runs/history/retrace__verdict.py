"""Whether what is decided now is what was written then, and how the first difference is told."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.model.graph import Graph
from holdfast.runs.history.decision_text import name_moves, tell_decision
from holdfast.types.record import Kind, Record

_COLUMNS = ("kind", "node", "scope", "visit", "attempt", "outcome", "effect", "listed")
# What another version of a flow may say differently without deciding differently.
_LOOSE = frozenset({"effect", "listed", "version", "code", "scratch", "schema"})


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """The first record that the engine would not write today, or would write otherwise."""

    seq: int
    kind: str
    node: str
    fields: list[str]
    then: str
    now: str


class DiffersError(Exception):
    def __init__(self, difference: Difference) -> None:
        super().__init__(difference.now)
        self.difference = difference


class Verdict:
    """`graph` decides now, `told` is the one that the journal was written with."""

    def __init__(self, graph: Graph, told: Graph) -> None:
        self.graph, self.told = graph, told

    def fields(self, draft: Record, drafted: Any, record: Record, body: Any) -> list[str]:
        """The names of what differs."""
        loose = _LOOSE if self.graph is not self.told else frozenset[str]()
        found = [c for c in _COLUMNS if c not in loose and getattr(draft, c) != getattr(record, c)]
        if type(drafted) is not type(body) or "kind" in found:
            return found or ["kind"]
        names = [name for name in body.__struct_fields__ if name not in loose]
        return found + [n for n in names if not self._same(n, getattr(drafted, n), getattr(body, n))]

    def _same(self, name: str, now: Any, then: Any) -> bool:
        if name == "moves" and self.graph is not self.told:
            return name_moves(self.graph, now) == name_moves(self.told, then)
        if name == "moves":
            return [tuple[Any, ...](move) for move in now] == [tuple[Any, ...](move) for move in then]
        if name == "routes" and self.graph is not self.told:
            return True
        return bool(now == then) or _alike(now, then)

    def differs(self, record: Record, body: Any, fields: list[str], now: str) -> DiffersError:
        then = tell_decision(self.told, record, body)
        if then == now:
            then, now = (f"{text} ({', '.join(fields)} differ)" for text in (then, now))
        return DiffersError(
            Difference(
                seq=record.seq,
                kind=Kind(record.kind).name,
                node=record.scope + record.node,
                fields=fields,
                then=then,
                now=now,
            )
        )


def _alike(now: Any, then: Any) -> bool:
    """A NaN is like another, at any depth."""
    try:
        return repr(now) == repr(then)
    except ValueError:  # a number of more digits than Python writes
        return False
