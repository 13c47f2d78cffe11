"""Two moments of runs side by side, as data: what a comparison found. Made by `runs.comparing`."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.checkpoint.diff import Change, Changes, show


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """One side: a run after one of its records."""

    run: str
    seq: int
    checkpoint: str
    node: str
    at: int
    status: str
    flow: str
    version: str


class Parting(msgspec.Struct, frozen=True, kw_only=True):
    """The last moment that both sides have in common."""

    run: str
    seq: int
    node: str


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """Durations in microseconds."""

    steps: int = 0
    duration: int = 0
    tokens: int = 0
    cost: float = 0.0


Sides = tuple[list[str], list[str]]


class NodeDiff(msgspec.Struct, frozen=True, kw_only=True):
    """One visit of one node. `kind`: added (only in B), removed (only in A), changed, same.

    `changes`: outcome, effect, attempts, error, output, routes; `calls`: sub-steps and tool calls by name and
    ordinal; `asked`: questions and answers. Time alone does not make a visit differ: see `a` and `b`."""

    node: str
    visit: int
    kind: str
    changes: list[Change] = []
    calls: list[Change] = []
    asked: list[Change] = []
    a: Spent | None = None
    b: Spent | None = None
    outcome: tuple[str, str] = ("", "")

    @property
    def all(self) -> list[Change]:
        return [*self.changes, *self.calls, *self.asked]


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """`relation`: same (one run), branches (one history, then two), runs (two histories). Nodes are those
    after `parted`, where there is such a moment."""

    a: Moment
    b: Moment
    relation: str
    parted: Parting | None
    input: Changes
    state: Changes
    artifacts: Changes
    nodes: list[NodeDiff]
    same_nodes: int
    spent: tuple[Spent, Spent]
    # What only A has, what only B has: nodes passed by, edges on their way, edges taken since they parted.
    skipped: Sides
    pending: Sides
    edges: Sides

    @property
    def same(self) -> bool:
        values = (self.input, self.state, self.artifacts)
        routes = (*self.skipped, *self.pending)
        return not self.nodes and not any(changes.shown for changes in values) and not any(routes)

    def as_json(self) -> dict[str, Any]:
        """JSON-safe; values that are large are told by size and digest."""
        told: dict[str, Any] = {"same": self.same}
        for name in self.__struct_fields__:
            told[name] = _plain(getattr(self, name))
        return told


def _plain(value: Any) -> Any:
    if isinstance(value, Change):
        told = {"path": value.path, "kind": value.kind}
        sides = {"before": value.kind != "added", "after": value.kind != "removed"}
        return told | {side: show(getattr(value, side)) for side, there in sides.items() if there}
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]  # type: ignore[misc]
    return value
