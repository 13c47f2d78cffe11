"""A position as plain data, for snapshot records and forks; and back.

A snapshot is an index, not a copy (D-27): a list that grew step by step is named by the records that
hold its items, a large value by its blob. A fork's snapshot is self-contained: it is dumped `whole`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from holdfast.model.branch_deltas import Delta
from holdfast.model.budget_ledger import Amounts, BudgetAnswer, Ledger, Reservation
from holdfast.model.frames import FrameTree
from holdfast.model.growing_lists import Growth, Segment
from holdfast.model.position import Exec, LoopState, OpenHold, Position, Scope, Sub
from holdfast.model.record_bodies import ErrorInfo
from holdfast.model.values import DELETED

_DELETED = ("holdfast", "deleted")
_SCALARS = frozenset((int, str, float, bool, bytes, type(None)))
_SEGMENT = "holdfast:segment"
# Of a frame that has nothing of its own but values.
_FRAME: dict[str, Any] = {"parent": -1, "kids": 0, "steps": []}
# Only longer lists are left in the journal (D-27).
SEGMENT_ITEMS = 64

How = tuple[bool, bool, bool]
"""(whole, by reference, brief)"""

Loader = Callable[[str, str, str, Segment], list[Any]]
"""(scope, partition, key, segment) -> the items that its records added."""


def dump_position(
    pos: Position, *, whole: bool = True, by_ref: bool = False, brief: bool = False
) -> dict[str, Any]:
    """Values stay as they are (frozen); the structs around them become dicts and lists.

    `whole`: with every list written out. `by_ref`: large values as references to their blobs. `brief`:
    without fields that have their default.
    """
    plain = _plain(pos, (whole, by_ref, brief))
    plain["execs"] = list(plain.get("execs", {}).values())
    # A cancellation stays in the inbox until the run has ended (D-32), so it is read again after loading.
    for key in ("cancelling", "cancel_rows"):
        plain.pop(key, None)
    return plain


# The structs of a position. Other structs are values: references to blobs, instances of users' types.
_PARTS = (
    Position, Scope, Exec, Sub, OpenHold, LoopState, ErrorInfo, Delta,
    Ledger, Reservation, BudgetAnswer, Amounts,
)  # fmt: skip


@cache
def _defaults(kind: type[msgspec.Struct]) -> tuple[tuple[str, Any], ...]:
    found: list[tuple[str, Any]] = []
    for field in msgspec.structs.fields(kind):
        made = field.default_factory
        found.append((field.name, field.default if made is msgspec.NODEFAULT else made()))
    return tuple(found)


def _set_fields(value: msgspec.Struct) -> dict[str, Any]:
    return {
        name: found
        for name, default in _defaults(type(value))
        if type(found := getattr(value, name)) is not type(default) or found != default
    }


def _plain(value: Any, how: How) -> Any:
    # Most values are plain, and `isinstance` is slow in the sandbox of a cluster's workflow.
    if type(value) in _SCALARS:
        return value
    if type(value) is dict:
        return {k: _plain(v, how) for k, v in value.items()}  # type: ignore[misc]
    if type(value) is list:
        return [_plain(v, how) for v in value]  # type: ignore[misc]
    if value is DELETED:
        return _DELETED
    if isinstance(value, FrameTree):
        return _plain_tree(value, how)
    if isinstance(value, _PARTS):
        if value.__struct_config__.array_like:
            return [_plain(getattr(value, name), how) for name in value.__struct_fields__]
        if how[2]:
            return {name: _plain(field, how) for name, field in _set_fields(value).items()}
        return {name: _plain(getattr(value, name), how) for name in value.__struct_fields__}
    return value


def _plain_tree(tree: FrameTree, how: How) -> dict[str, Any]:
    if how[0]:
        tree.fill_all()
    frames = {number: _plain_frame(tree, number, how) for number in tree.frames}
    return {"frames": frames, "next_id": tree.next_id}


def _plain_frame(tree: FrameTree, number: int, how: How) -> dict[str, Any]:
    frame = tree.frames[number]
    over = {
        partition: {key: _plain_value(tree, number, partition, key, v, how) for key, v in inside.items()}
        for partition, inside in frame.over.items()
    }
    plain: dict[str, Any] = {
        "id": frame.id,
        "parent": frame.parent,
        "kids": frame.kids,
        "steps": [_plain(delta, how) for delta in frame.steps],
        "over": over,
    }
    if how[2]:
        return {name: field for name, field in plain.items() if _FRAME.get(name, _DELETED) != field}
    return plain


def _plain_value(tree: FrameTree, frame: int, partition: str, key: str, value: Any, how: How) -> Any:
    if value is DELETED:
        return _DELETED
    if frame != 0:
        return value
    if how[1] and (partition, key) in tree.refs:
        return tree.refs[(partition, key)]
    growth = tree.grown.get((partition, key))
    if not how[0] and growth is not None and len(value) > SEGMENT_ITEMS:
        return (_SEGMENT, tuple(growth.prefix), tuple(growth.runs), len(value))
    return value


def load_position(plain: dict[str, Any], *, load: Loader | None = None) -> Position:
    """`load` reads the items of a list that was left in the journal."""
    given = dict(plain)
    executions = [dict(e) for e in plain["execs"]]
    given["execs"] = {(e["scope"], e["node"]): e for e in executions}
    given["timers"] = {k: tuple(v) for k, v in plain.get("timers", {}).items()}
    scopes = {path: dict(scope) for path, scope in plain["scopes"].items()}
    trees = {path: scope.pop("tree") for path, scope in scopes.items()}
    given["scopes"] = {
        path: {**scope, "tree": {"values": {}}, "walk": dict(scope.get("walk", {}))}
        for path, scope in scopes.items()
    }
    pos = msgspec.convert(given, Position)
    for path, tree in trees.items():
        pos.scopes[path].tree = _load_tree(path, tree, load)
    return pos


def left_in_journal(plain: dict[str, Any]) -> list[tuple[int, int]]:
    """The ranges of records that lists of a dumped position were left in."""
    values = [
        value
        for scope in plain["scopes"].values()
        for inside in scope["tree"]["frames"].get(0, {"over": {}})["over"].values()
        for value in inside.values()
    ]
    return sorted({(first, last) for value in values if _is_segment(value) for first, last in value[2]})


def _load_tree(path: str, plain: Any, load: Loader | None) -> FrameTree:
    frames: dict[int, dict[str, Any]] = {
        number: {
            **frame,
            "over": {p: dict(inside) for p, inside in frame["over"].items()},
            "owned": list[Any](),
        }
        for number, frame in plain["frames"].items()
    }
    tree = msgspec.convert({"values": {}, "frames": frames, "next_id": plain["next_id"]}, FrameTree)
    tree.values = tree.frames[0].over
    for number, frame in tree.frames.items():
        for partition, inside in frame.over.items():
            for key, value in inside.items():
                if value == _DELETED:
                    inside[key] = DELETED
                elif number == 0 and _is_segment(value):
                    _load_segment(tree, path, partition, key, value, load)
    return tree


def _is_segment(value: Any) -> bool:
    return type(value) is tuple and len(value) == 4 and value[0] == _SEGMENT  # type: ignore[arg-type]


def _load_segment(
    tree: FrameTree, path: str, partition: str, key: str, marker: Any, load: Loader | None
) -> None:
    _, prefix, runs, count = marker
    assert load is not None
    segment = Segment(list(prefix), list(runs), count, lambda s: load(path, partition, key, s))
    tree.frames[0].over[partition][key] = segment
    tree.grown[(partition, key)] = Growth(list(prefix), list(runs))
    tree.lazy.add((partition, key))
