"""What a node sees: the state at its fork plus the steps that led to it, and nothing of its siblings (D-24).

Frame 0 of a scope is its root: steps are applied to the scope's values at once. A fork gives each live
out-edge its own frame with an overlay; a join applies the steps of the incoming frames, each
once, in canonical order, to their common ancestor. So a merge does not depend on which branch was first.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from holdfast.errors import StateError
from holdfast.model.branch_deltas import Delta, canonical
from holdfast.model.growing_lists import Growth, Segment
from holdfast.model.step_writes import apply_ops, check_ops
from holdfast.model.values import DELETED, MISSING, Values
from holdfast.types.value import BlobRef


class Frame(msgspec.Struct):
    id: int
    parent: int = -1
    kids: int = 0
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
            apply_ops(self, frame, delta, self.next_id)

    def fork(self, frame_id: int, child: int) -> None:
        """A new frame that sees what `frame_id` sees now; the parent does not change while it has
        children."""
        self.frames[frame_id].kids += 1
        self.frames[child] = Frame(child, frame_id, steps=[], over={}, owned=set())
        self.next_id = max(self.next_id, child + 1)

    def join(self, ids: list[int]) -> int:
        """Merge these frames into one, each step applied once. Returns its id."""
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
            apply_ops(self, frame, delta)
        return child

    def _check_merge(self, base: int, merged: list[Delta]) -> None:
        check_ops(self, base, (op for delta in merged for op in delta.ops))

    def _collapse(self, base: Frame, merged: list[Delta]) -> int:
        for delta in merged:
            if base.parent >= 0:
                base.steps.append(delta)
            apply_ops(self, base, delta)
        return base.id

    def expose(self, frame_id: int) -> None:
        """A caller keeps values of this frame: its lists are copied instead of extended in place from now
        on."""
        for i in self.line(frame_id):
            self.frames[i].owned.clear()

    def discard(self, frame_id: int) -> None:
        """The branch lost: its changes are not part of the state."""
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
        """The scope's values over all branches so far: for display, not for running."""
        leaves = [i for i, frame in self.frames.items() if frame.kids == 0 and i != 0]
        root = self.frames[0]
        self.fill_all()
        copy = FrameTree.rooted({p: dict(inside) for p, inside in root.over.items()})
        for delta in canonical([self._path(i, 0) for i in leaves]) if leaves else ():
            # A run that failed because its branches do not merge can still be displayed.
            with suppress(StateError):
                apply_ops(copy, copy.frames[0], delta)
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
        lines = [self.line(i) for i in ids]
        shared = set(lines[0]).intersection(*lines[1:])
        return next(i for i in lines[0] if i in shared)

    def line(self, frame_id: int) -> list[int]:
        """The frame, its parent, and so on up to the root."""
        line: list[int] = []
        while frame_id >= 0:
            line.append(frame_id)
            frame_id = self.frames[frame_id].parent
        return line

    def _drop(self, frame_id: int, upto: int) -> None:
        """Remove a consumed frame, and ancestors that were kept only for it."""
        while frame_id != upto and frame_id != 0:
            frame = self.frames.pop(frame_id)
            parent = self.frames[frame.parent]
            parent.kids -= 1
            if parent.kids > 0:
                return
            frame_id = frame.parent
