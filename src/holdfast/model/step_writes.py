"""Merges the writes of a step into the state of a frame (set, delete, reduce), and checks them beforehand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, cast

from holdfast.errors import StateError
from holdfast.model.branch_deltas import Delta
from holdfast.model.growing_lists import Growth, Segment
from holdfast.model.values import DELETED, MISSING
from holdfast.types.record import Op
from holdfast.types.reducers import GROWS, reduce
from holdfast.types.value import FrozenList

if TYPE_CHECKING:
    from holdfast.model.frames import Frame, FrameTree

_EMPTY: Final = FrozenList()
# Longer lists are not inspected when operations are checked, so that the check costs nothing.
LONG: Final = 64


def apply_ops(tree: FrameTree, frame: Frame, delta: Delta, at: int = -1) -> None:
    """`at`: the tree's `next_id`, for a step of the frame itself; -1 where a join brings in others."""
    for partition, key, op, operand in delta.ops:
        inside = frame.over.get(partition)
        if inside is None:
            inside = frame.over[partition] = {}
        if op == "set":
            inside[key] = operand
            if frame.owned:
                frame.owned.discard((partition, key))
            if "aux" in frame.over or frame.parent >= 0:
                _forget_average(tree, frame, partition, key)
            if (tree.grown or tree.refs) and frame.parent < 0:
                _forget(tree, partition, key)
        elif op == "delete":
            if frame.parent < 0:
                inside.pop(key, None)
                _forget(tree, partition, key)
            else:
                inside[key] = DELETED
            _forget_average(tree, frame, partition, key)
        elif op == "avg":
            _average(tree, frame, partition, key, operand)
        else:
            inside[key] = _reduced(tree, frame, partition, key, op, operand, delta.seq, at)


def _forget(tree: FrameTree, partition: str, key: str) -> None:
    tree.grown.pop((partition, key), None)
    tree.refs.pop((partition, key), None)
    tree.lazy.discard((partition, key))


def _reduced(
    tree: FrameTree, frame: Frame, partition: str, key: str, op: str, operand: Any, seq: int, at: int
) -> Any:
    if frame.parent < 0:
        held = frame.over[partition].get(key)
        if op in GROWS and _is_list(held, op, operand):
            growth = tree.grown.get((partition, key))
            if growth is None:
                growth = tree.grown[(partition, key)] = Growth(list[Any](held or ()), [])
            growth.add(seq, at)
            if type(held) is Segment:
                held.grow(operand)
                return held
        elif tree.grown or tree.refs:
            _forget(tree, partition, key)
        if tree.refs:
            tree.refs.pop((partition, key), None)
    old = tree.read(frame.id, partition, key)
    if old is MISSING or old is None:
        # The first write sets. A list is copied: it will grow in place, and the record keeps its own.
        if op == "append" and not isinstance(operand, list):
            operand = [operand]
        return FrozenList(operand) if isinstance(operand, list) else operand  # pyright: ignore[reportUnknownArgumentType]
    if op in GROWS and (partition, key) in frame.owned and type(old) is FrozenList:
        # Not shared: extending it in place keeps the cost of a step independent of the list's length.
        list[Any].extend(old, operand if isinstance(operand, (list, tuple)) else (operand,))  # type: ignore[arg-type]
        return old
    new = reduce(op, old, operand)
    if op in GROWS and type(new) is FrozenList:
        # A new list, so it is not shared. Other reducers may return a list that is used elsewhere.
        frame.owned.add((partition, key))
    return new


def _average(tree: FrameTree, frame: Frame, partition: str, key: str, operand: Any) -> None:
    aux = f"{partition}.{key}"
    kept = tree.read(frame.id, "aux", aux)
    if kept is MISSING:
        first = tree.read(frame.id, partition, key)
        kept = (0, 0) if first is MISSING or first is None else (first, 1)
    total, count = reduce("sum", kept[0], operand), kept[1] + 1
    mean = _mean(total, count)
    frame.over.setdefault("aux", {})[aux] = (total, count)
    frame.over.setdefault(partition, {})[key] = mean


def _forget_average(tree: FrameTree, frame: Frame, partition: str, key: str) -> None:
    """A set starts a new mean."""
    at = frame
    while "aux" not in at.over:
        if at.parent < 0:
            return
        at = tree.frames[at.parent]
    aux = f"{partition}.{key}"
    if tree.read(frame.id, "aux", aux) is not MISSING:
        frame.over.setdefault("aux", {})[aux] = DELETED


def _is_list(held: Any, op: str, operand: Any) -> bool:
    """Whether the value is one that grows in the journal. Texts grow too, but by copying."""
    if held is None:
        return op == "append" or isinstance(operand, list)
    return type(held) is FrozenList or type(held) is Segment


def _mean(total: Any, count: int) -> Any:
    try:
        return total / count
    except TypeError:
        raise StateError(f"the reducer 'avg' cannot average a {type(total).__name__}") from None


def check_ops(tree: FrameTree, frame_id: int, ops: Iterable[Op]) -> None:
    """Raises StateError if a reducer cannot combine the values, before anything is changed."""
    held: dict[tuple[str, str], Any] = {}
    for partition, key, op, operand in ops:
        where = (partition, key)
        old = held[where] if where in held else _kind_of(tree, frame_id, partition, key)
        try:
            held[where] = _would_be(op, old, operand)
        except StateError as error:
            raise StateError(f"{key!r}: {error.message}", hint=error.hint, field=key) from None


def _kind_of(tree: FrameTree, frame_id: int, partition: str, key: str) -> Any:
    """As `read`, but an empty list stands for a long one, and one left in the journal stays there."""
    for i in tree.line(frame_id):
        inside = tree.frames[i].over.get(partition)
        if inside is not None and key in inside:
            value = inside[key]
            return MISSING if value is DELETED else _EMPTY if _is_long(value) else value
    return MISSING


def _is_long(value: Any) -> bool:
    return isinstance(value, Segment) or (isinstance(value, list) and len(cast("list[Any]", value)) > LONG)


def _would_be(op: str, old: Any, operand: Any) -> Any:
    """The kind of value after the operation; a long list is taken as it is, which costs nothing."""
    if op == "delete":
        return MISSING
    if op == "avg":
        return _mean(reduce("sum", 0 if old is MISSING or old is None else old, operand), 1)
    if op == "set" or old is MISSING or old is None:
        return operand if op != "append" or isinstance(operand, list) else [operand]  # pyright: ignore[reportUnknownVariableType]
    if op in GROWS and isinstance(old, list) and len(cast("list[Any]", old)) > LONG:
        return cast("list[Any]", old)
    return reduce(op, old, operand)
