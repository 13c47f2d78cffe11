"""What a node sees: the state at its fork plus the steps that led to it, and nothing of its siblings (D-24).

Frame 0 of a scope is its root: steps are applied to the scope's values at once. A fork gives each live
out-edge a frame of its own with an overlay; a join applies the steps of the incoming frames, each
once, in canonical order, to what the frames have in common. So a merge does not depend on who was first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from heapq import heapify, heappop, heappush
from typing import Any, Final, cast

import msgspec

from holdfast.errors import StateError
from holdfast.types.record import Op
from holdfast.types.reduce import GROWS, reduce
from holdfast.types.value import BlobRef, FrozenList


class _Sentinel(msgspec.Struct, frozen=True):
    name: str

    def __bool__(self) -> bool:
        return False


MISSING: Final = _Sentinel("missing")
DELETED: Final = _Sentinel("deleted")

Values = dict[str, dict[str, Any]]
"""Partition -> key -> value."""


Run = tuple[int, int]
"""From this record to that one."""


class Segment:
    """A long list that grew step by step and was not loaded yet: its items lie in the journal (D-27).

    `prefix`, then what the records of each run added, then `tail` (what was added since loading).
    """

    __slots__ = ("count", "load", "prefix", "runs", "tail")

    def __init__(
        self, prefix: list[Any], runs: list[Run], count: int, load: Callable[[Segment], list[Any]]
    ) -> None:
        self.prefix, self.runs, self.count = prefix, runs, count
        self.tail: list[Any] = []
        self.load = load

    def whole(self) -> FrozenList:
        return FrozenList([*self.prefix, *self.load(self), *self.tail])

    def grow(self, operand: Any) -> None:
        self.tail.extend(operand if isinstance(operand, (list, tuple)) else (operand,))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return self.count + len(self.tail)


class Growth(msgspec.Struct, array_like=True):
    """Where a growing list of the root frame comes from: what it was, and the records that added to it.

    Within a run every step of the scope was the root's own. A fork ends it: what a branch adds belongs to
    the list only if it is merged, and then in canonical order.
    """

    prefix: list[Any]
    runs: list[Run]
    # The tree's `next_id` when the last run grew: another one means that there was a fork since.
    at: int = -1

    def add(self, seq: int, at: int) -> None:
        if self.runs and at >= 0 and at == self.at:
            self.runs[-1] = (self.runs[-1][0], seq)
        else:
            self.runs.append((seq, seq))
        self.at = at


class Delta(msgspec.Struct, frozen=True, array_like=True):
    """One settled step inside a fork: its place in canonical order, and what it changed."""

    seq: int
    node: int
    visit: int
    index: int
    ops: list[Op]


class Frame(msgspec.Struct):
    id: int
    parent: int = -1
    kids: int = 0
    ended: bool = False
    steps: list[Delta] = []
    over: Values = {}
    owned: set[tuple[str, str]] = set()


class FrameTree(msgspec.Struct):
    """The frames of one scope. `values` belongs to frame 0."""

    values: Values
    frames: dict[int, Frame] = {}
    next_id: int = 1
    # Of the root frame only: lists that grow, values that lie in the blob store, lists not loaded yet.
    grown: dict[tuple[str, str], Growth] = {}
    refs: dict[tuple[str, str], BlobRef] = {}
    lazy: set[tuple[str, str]] = set()

    @classmethod
    def rooted(cls, values: Values) -> FrameTree:
        return cls(values, {0: Frame(0, over=values)})

    def read(self, frame_id: int, partition: str, key: str) -> Any:
        """The value that this frame sees, or MISSING."""
        while frame_id >= 0:
            frame = self.frames[frame_id]
            inside = frame.over.get(partition)
            if inside is not None and key in inside:
                value = inside[key]
                if type(value) is Segment:
                    return self.fill(partition, key)
                return MISSING if value is DELETED else value
            frame_id = frame.parent
        return MISSING

    def fill(self, partition: str, key: str) -> Any:
        """Load a list that was left in the journal."""
        inside = self.frames[0].over[partition]
        if type(inside[key]) is Segment:
            inside[key] = inside[key].whole()
            self.lazy.discard((partition, key))
            if (partition, key) in self.grown:
                self.frames[0].owned.add((partition, key))
        return inside[key]

    def fill_all(self) -> None:
        for partition, key in list(self.lazy):
            self.fill(partition, key)

    def see(self, frame_id: int, partition: str, *, lazily: bool = False) -> dict[str, Any]:
        """All of one partition as this frame sees it. The root's own dict is not copied: read it only.
        With `lazily` it may hold Segments."""
        if self.lazy and not lazily:
            self.fill_all()
        frame = self.frames[frame_id]
        if frame.parent < 0:
            return frame.over.get(partition, {})
        chain: list[dict[str, Any]] = []
        while True:
            inside = frame.over.get(partition)
            if inside:
                chain.append(inside)
            if frame.parent < 0:
                break
            frame = self.frames[frame.parent]
        seen: dict[str, Any] = {}
        for inside in reversed(chain):
            seen.update(inside)
        return {k: v for k, v in seen.items() if v is not DELETED}

    def settle(self, frame_id: int, delta: Delta) -> None:
        """Apply a step's changes where its frame can see them."""
        frame = self.frames[frame_id]
        if frame.parent >= 0:
            frame.steps.append(delta)
        if delta.ops:
            self._apply(frame, delta, self.next_id)

    def _apply(self, frame: Frame, delta: Delta, at: int = -1) -> None:
        """`at`: the tree's `next_id`, for a step of the frame itself; -1 where a join brings in others."""
        for partition, key, op, operand in delta.ops:
            inside = frame.over.get(partition)
            if inside is None:
                inside = frame.over[partition] = {}
            if op == "set":
                inside[key] = operand
                if frame.owned:
                    frame.owned.discard((partition, key))
                self._forget_average(frame, partition, key)
                if (self.grown or self.refs) and frame.parent < 0:
                    self._forget(partition, key)
            elif op == "delete":
                if frame.parent < 0:
                    inside.pop(key, None)
                    self._forget(partition, key)
                else:
                    inside[key] = DELETED
                self._forget_average(frame, partition, key)
            elif op == "avg":
                self._average(frame, partition, key, operand)
            else:
                inside[key] = self._reduced(frame, partition, key, op, operand, delta.seq, at)

    def _forget(self, partition: str, key: str) -> None:
        self.grown.pop((partition, key), None)
        self.refs.pop((partition, key), None)
        self.lazy.discard((partition, key))

    def _reduced(
        self, frame: Frame, partition: str, key: str, op: str, operand: Any, seq: int, at: int
    ) -> Any:
        if frame.parent < 0:
            held = frame.over[partition].get(key)
            if op in GROWS and _is_list(held, op, operand):
                growth = self.grown.get((partition, key))
                if growth is None:
                    growth = self.grown[(partition, key)] = Growth(list[Any](held or ()), [])
                growth.add(seq, at)
                if type(held) is Segment:
                    held.grow(operand)
                    return held
            elif self.grown or self.refs:
                self._forget(partition, key)
            if self.refs:
                self.refs.pop((partition, key), None)
        old = self.read(frame.id, partition, key)
        if old is MISSING or old is None:
            # The first write sets. A list is copied: it will grow in place, and the record keeps its own.
            if op == "append" and not isinstance(operand, list):
                operand = [operand]
            return FrozenList(operand) if isinstance(operand, list) else operand  # pyright: ignore[reportUnknownArgumentType]
        if op in GROWS and (partition, key) in frame.owned and type(old) is FrozenList:
            # Ours alone: growing in place keeps the cost of a step independent of the list's length.
            list[Any].extend(old, operand if isinstance(operand, (list, tuple)) else (operand,))  # type: ignore[arg-type]
            return old
        new = reduce(op, old, operand)
        if op in GROWS and type(new) is FrozenList:
            # Fresh, so ours. Other reducers may hand back a list that somebody else holds.
            frame.owned.add((partition, key))
        return new

    def _average(self, frame: Frame, partition: str, key: str, operand: Any) -> None:
        aux = f"{partition}.{key}"
        kept = self.read(frame.id, "aux", aux)
        if kept is MISSING:
            first = self.read(frame.id, partition, key)
            kept = (0, 0) if first is MISSING or first is None else (first, 1)
        total, count = reduce("sum", kept[0], operand), kept[1] + 1
        mean = _mean(total, count)
        frame.over.setdefault("aux", {})[aux] = (total, count)
        frame.over.setdefault(partition, {})[key] = mean

    def _forget_average(self, frame: Frame, partition: str, key: str) -> None:
        """A set begins a new mean."""
        at = frame
        while "aux" not in at.over:
            if at.parent < 0:
                return
            at = self.frames[at.parent]
        aux = f"{partition}.{key}"
        if self.read(frame.id, "aux", aux) is not MISSING:
            frame.over.setdefault("aux", {})[aux] = DELETED

    def fork(self, frame_id: int, child: int) -> None:
        """A new frame that sees what `frame_id` sees now; the parent stands still while it has children."""
        self.frames[frame_id].kids += 1
        self.frames[child] = Frame(child, frame_id, steps=[], over={}, owned=set())
        self.next_id = max(self.next_id, child + 1)

    def join(self, ids: list[int]) -> int:
        """One frame that has seen all of these, each step once. Answers its id."""
        if len(ids) == 1:
            return ids[0]
        common = self._common(ids)
        merged = canonical([self._path(i, common) for i in ids])
        self._check_merge(common, merged)
        for i in ids:
            if i != common:
                self._drop(i, common)
        base = self.frames[common]
        if base.kids == 0:
            return self._collapse(base, merged)
        child = self.next_id
        self.fork(common, child)
        frame = self.frames[child]
        for delta in merged:
            frame.steps.append(delta)
            self._apply(frame, delta)
        return child

    def _check_merge(self, base: int, merged: list[Delta]) -> None:
        self.check(base, (op for delta in merged for op in delta.ops))

    def check(self, frame_id: int, ops: Iterable[Op]) -> None:
        """Raises StateError where a reducer cannot combine what was written, before anything is changed."""
        held: dict[tuple[str, str], Any] = {}
        for partition, key, op, operand in ops:
            where = (partition, key)
            old = held[where] if where in held else self._kind_of(frame_id, partition, key)
            try:
                held[where] = _would_be(op, old, operand)
            except StateError as error:
                raise StateError(f"{key!r}: {error.message}", hint=error.hint, field=key) from None

    def _kind_of(self, frame_id: int, partition: str, key: str) -> Any:
        """As `read`, but an empty list stands for a long one, and one left in the journal stays there."""
        for i in self._line(frame_id):
            inside = self.frames[i].over.get(partition)
            if inside is not None and key in inside:
                value = inside[key]
                return MISSING if value is DELETED else _EMPTY if _is_long(value) else value
        return MISSING

    def _collapse(self, base: Frame, merged: list[Delta]) -> int:
        for delta in merged:
            if base.parent >= 0:
                base.steps.append(delta)
            self._apply(base, delta)
        return base.id

    def end(self, frame_id: int) -> None:
        """The branch leads no further; its steps are kept for the end of the scope."""
        if frame_id in self.frames:
            self.frames[frame_id].ended = True

    def expose(self, frame_id: int) -> None:
        """Somebody keeps what this frame sees: its lists are grown by copying from now on."""
        for i in self._line(frame_id):
            self.frames[i].owned.clear()

    def discard(self, frame_id: int) -> None:
        """The branch lost: what it did is not part of the state."""
        if frame_id != 0:
            self._drop(frame_id, 0)

    def finish(self) -> None:
        """Everything that ended comes together: the scope's final state."""
        leaves = [i for i, frame in self.frames.items() if frame.kids == 0 and i != 0]
        if leaves:
            merged = canonical([self._path(i, 0) for i in leaves])
            self._check_merge(0, merged)
            self.frames = {0: self.frames[0]}
            self.frames[0].kids = 0
            self._collapse(self.frames[0], merged)

    def merged(self) -> Values:
        """What the whole scope has come to so far, over all branches: for looking, not for running."""
        leaves = [i for i, frame in self.frames.items() if frame.kids == 0 and i != 0]
        root = self.frames[0]
        self.fill_all()
        copy = FrameTree.rooted({p: dict(inside) for p, inside in root.over.items()})
        for delta in canonical([self._path(i, 0) for i in leaves]) if leaves else ():
            # A run that fails because branches do not merge can be looked at all the same.
            with suppress(StateError):
                copy._apply(copy.frames[0], delta)
        return copy.values

    def _path(self, frame_id: int, common: int) -> list[Delta]:
        parts: list[list[Delta]] = []
        while frame_id != common:
            frame = self.frames[frame_id]
            if frame.steps:
                parts.append(frame.steps)
            frame_id = frame.parent
        return [delta for part in reversed(parts) for delta in part]

    def _common(self, ids: list[int]) -> int:
        first = self.frames[ids[0]].parent
        if first >= 0 and all(self.frames[i].parent == first for i in ids):
            return first
        lines = [self._line(i) for i in ids]
        shared = set(lines[0]).intersection(*lines[1:])
        return next(i for i in lines[0] if i in shared)

    def _line(self, frame_id: int) -> list[int]:
        line: list[int] = []
        while frame_id >= 0:
            line.append(frame_id)
            frame_id = self.frames[frame_id].parent
        return line

    def _drop(self, frame_id: int, upto: int) -> None:
        """Remove a consumed frame, and ancestors that stood only for it."""
        while frame_id != upto and frame_id != 0:
            frame = self.frames.pop(frame_id)
            parent = self.frames[frame.parent]
            parent.kids -= 1
            if parent.kids > 0:
                return
            frame_id = frame.parent


_EMPTY: Final = FrozenList()
# Up to here a list is looked at as it is; a longer one costs nothing to judge.
LONG: Final = 64


def _is_long(value: Any) -> bool:
    return isinstance(value, Segment) or (isinstance(value, list) and len(cast("list[Any]", value)) > LONG)


def _mean(total: Any, count: int) -> Any:
    try:
        return total / count
    except TypeError:
        raise StateError(f"the reducer 'avg' has no mean of a {type(total).__name__}") from None


def _would_be(op: str, old: Any, operand: Any) -> Any:
    """What kind of value the operation leaves behind; a long list counts as it was, and costs nothing."""
    if op == "delete":
        return MISSING
    if op == "avg":
        return _mean(reduce("sum", 0 if old is MISSING or old is None else old, operand), 1)
    if op == "set" or old is MISSING or old is None:
        return [operand] if op == "append" and not isinstance(operand, list) else operand
    if op in GROWS and isinstance(old, list) and len(cast("list[Any]", old)) > LONG:
        return cast("list[Any]", old)
    return reduce(op, old, operand)


def _is_list(held: Any, op: str, operand: Any) -> bool:
    """Whether the value is one that grows in the journal. Texts grow too, but by copying."""
    if held is None:
        return op == "append" or isinstance(operand, list)
    return type(held) is FrozenList or type(held) is Segment


def canonical(paths: list[list[Delta]]) -> list[Delta]:
    """Merge causal sequences: what came before stays so; otherwise by (node, visit, index), never by seq."""
    if len(paths) == 1:
        return paths[0]
    by_seq: dict[int, Delta] = {}
    followers: dict[int, dict[int, None]] = {}
    waits: dict[int, int] = {}
    for path in paths:
        before: int | None = None
        for delta in path:
            by_seq[delta.seq] = delta
            waits.setdefault(delta.seq, 0)
            if before is not None and delta.seq not in followers.setdefault(before, {}):
                followers[before][delta.seq] = None
                waits[delta.seq] += 1
            before = delta.seq
    ready = [_order(by_seq[seq]) for seq, count in waits.items() if count == 0]
    heapify(ready)
    merged: list[Delta] = []
    while ready:
        *_, seq = heappop(ready)
        merged.append(by_seq[seq])
        for following in followers.get(seq, ()):
            waits[following] -= 1
            if waits[following] == 0:
                heappush(ready, _order(by_seq[following]))
    return merged


def _order(delta: Delta) -> tuple[int, int, int, int]:
    return (delta.node, delta.visit, delta.index, delta.seq)
