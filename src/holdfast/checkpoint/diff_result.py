"""The result of comparing two moments of runs, as data. Made by `runs.history.diff`."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from holdfast.checkpoint.value_diff import Change, ChangeList, show, text_lines
from holdfast.types.clock import iso


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


class DivergencePoint(msgspec.Struct, frozen=True, kw_only=True):
    """The last moment that both sides have in common."""

    run: str
    seq: int
    node: str


class RunUsage(msgspec.Struct, frozen=True, kw_only=True):
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
    a: RunUsage | None = None
    b: RunUsage | None = None
    outcome: tuple[str, str] = ("", "")

    @property
    def all(self) -> list[Change]:
        return [*self.changes, *self.calls, *self.asked]


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """`relation`: same (one run), branches (one history, then two), runs (two histories). Nodes are those
    after `parted`, if there is such a moment."""

    a: Moment
    b: Moment
    relation: str
    parted: DivergencePoint | None
    input: ChangeList
    state: ChangeList
    artifacts: ChangeList
    nodes: list[NodeDiff]
    same_nodes: int
    spent: tuple[RunUsage, RunUsage]
    # What only A has, what only B has: bypassed nodes, waiting edges, edges taken since they diverged.
    skipped: Sides
    pending: Sides
    edges: Sides

    @property
    def same(self) -> bool:
        values = (self.input, self.state, self.artifacts)
        routes = (*self.skipped, *self.pending)
        return not self.nodes and not any(changes.shown for changes in values) and not any(routes)

    def as_json(self, room: int = 0) -> dict[str, Any]:
        """JSON-safe; large values are shown by size and digest, texts of several lines also by line.

        `room`: the maximum number of bytes of any one list (0: no limit). The number of omitted parts of each
        list is in `left_out`, of the whole and of a node; it is empty if nothing is omitted.
        """
        result = _fields(self, room)
        return {"same": self.same, **result, "left_out": result.get("left_out", {})}


def _fields(value: msgspec.Struct, room: int) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    left_out: dict[str, Any] = {}
    for name in value.__struct_fields__:
        shown[name], missing = _plain(getattr(value, name), room)
        if missing:
            left_out[name] = missing
    if isinstance(value, Moment):
        shown["at"] = iso(value.at)
    return {**shown, "left_out": left_out} if left_out else shown


def _plain(value: Any, room: int) -> tuple[Any, Any]:
    """A part as JSON, and how much of it was omitted: a number, one for each side, or nothing."""
    if isinstance(value, Change):
        result: dict[str, Any] = {"path": value.path, "kind": value.kind}
        sides = {"before": value.kind != "added", "after": value.kind != "removed"}
        result |= {side: show(getattr(value, side)) for side, there in sides.items() if there}
        lines = text_lines(value)
        return result | ({"lines": lines} if lines else {}), 0
    if isinstance(value, ChangeList):
        shown, missing = _fitting(value.shown, room)
        return {"shown": shown, "left_out": value.left_out + missing}, value.left_out + missing
    if isinstance(value, msgspec.Struct):
        return _fields(value, room), 0
    if isinstance(value, list):
        return _fitting(cast("list[Any]", value), room)
    if isinstance(value, tuple):
        pairs = [_plain(part, room) for part in cast("tuple[Any, ...]", value)]
        lost = [missing for _, missing in pairs]
        return [result for result, _ in pairs], lost if any(lost) else 0
    return value, 0


def _fitting(parts: list[Any], room: int) -> tuple[list[Any], int]:
    """At least the first of them, and as many more as there is room for; the number of omitted ones."""
    lines: list[Any] = []
    used = 0
    for part in parts:
        plain, _ = _plain(part, room)
        used += len(msgspec.json.encode(plain)) if room else 0
        if lines and used > room:
            break
        lines.append(plain)
    return lines, len(parts) - len(lines)
