"""Frames against a naive reference: every frame knows its whole history and applies it afresh."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Flow, Holdfast
from holdfast.errors import StateError
from holdfast.model.branch_deltas import Delta, canonical
from holdfast.model.frames import FrameTree
from holdfast.types.record import Op
from holdfast.types.reducers import reduce
from holdfast.types.value import FrozenDict, FrozenList, thaw

KEYS = ("log", "text", "sum", "mean", "bag", "plain")


@st.composite
def changes(draw) -> list[Op]:
    made: list[Op] = []
    for key in draw(st.lists(st.sampled_from(KEYS), max_size=3)):
        number = draw(st.integers(0, 9))
        op, operand = {
            "log": ("append", FrozenList([number])),
            "text": ("concat", str(number)),
            "sum": ("sum", number),
            "mean": ("avg", number),
            "bag": ("merge", FrozenDict({str(number % 3): FrozenDict({str(number): number})})),
            "plain": ("set", number),
        }[key]
        if draw(st.integers(0, 9)) == 9:
            op, operand = draw(
                st.sampled_from(
                    [("delete", None), ("set", FrozenList([number]) if key == "log" else operand)]
                )
            )
            if key == "mean":
                op, operand = "avg", number
        made.append(("scratch", key, op, operand))
    return made


@dataclass
class Known:
    """The reference: each delta with everything that came before it."""

    deltas: dict[int, Delta] = field(default_factory=dict)
    before: dict[int, frozenset[int]] = field(default_factory=dict)
    root: frozenset[int] = frozenset()

    def order(self, history: frozenset[int]) -> list[Delta]:
        """Whatever may come next, the smallest by (node, visit, index) does."""
        left, done, out = set(history), set(), []
        while left:
            ready = [d for d in left if self.before[d] <= done]
            d = min(ready, key=lambda i: (self.deltas[i].node, self.deltas[i].visit, self.deltas[i].index))
            left.remove(d)
            done.add(d)
            out.append(self.deltas[d])
        return out

    def values(self, history: frozenset[int]) -> dict[str, Any]:
        state: dict[str, Any] = {}
        means: dict[str, list[int]] = {}
        for delta in self.order(history):
            for _, key, op, operand in delta.ops:
                if op == "set":
                    state[key] = operand
                elif op == "delete":
                    state.pop(key, None)
                elif op == "avg":
                    means.setdefault(key, []).append(operand)
                    state[key] = sum(means[key]) / len(means[key])
                else:
                    state[key] = reduce(op, state[key], operand) if key in state else operand
        return thaw(state)


class Bench:
    """A tree and the reference side by side, taken through the same life."""

    def __init__(self) -> None:
        self.tree = FrameTree.rooted({"scratch": {}})
        self.known = Known()
        self.live: dict[int, frozenset[int]] = {0: frozenset()}
        self.given: dict[int, tuple[dict[str, Any], Any]] = {}
        self.visits: dict[int, int] = {}

    def hand_out(self, frame: int) -> None:
        """What a handler that starts in this frame gets: by reference, with a copy to compare."""
        view = dict(self.tree.see(frame, "scratch"))
        self.given[frame] = (view, thaw(view))

    def settle(self, frame: int, node: int, ops: list[Op]) -> None:
        seq = len(self.known.deltas)
        self.visits[node] = self.visits.get(node, 0) + 1
        delta = Delta(seq, node, self.visits[node], 0, ops)
        self.given.pop(frame, None)
        self.tree.settle(frame, delta)
        self.known.deltas[seq], self.known.before[seq] = delta, self.live[frame]
        self.live[frame] |= {seq}
        self.hand_out(frame)

    def fork(self, frame: int, count: int) -> None:
        history = self.live.pop(frame)
        self.given.pop(frame, None)
        if frame == 0:
            self.known.root = history
        for _ in range(count):
            child = self.tree.next_id
            self.tree.fork(frame, child)
            self.live[child] = history
            self.hand_out(child)

    def join(self, frames: list[int]) -> None:
        history = frozenset().union(*(self.live.pop(f) for f in frames))
        for f in frames:
            self.given.pop(f, None)
        merged = self.tree.join(frames)
        self.live[merged] = history
        self.hand_out(merged)

    def discard(self, frame: int) -> None:
        del self.live[frame]
        self.given.pop(frame, None)
        self.tree.discard(frame)

    def check(self) -> None:
        for frame, history in self.live.items():
            assert thaw(self.tree.see(frame, "scratch")) == self.known.values(history)
        for view, copy in self.given.values():
            assert thaw(view) == copy, "a value changed under a handler that reads it"


def live_on(draw, bench: Bench) -> None:
    frames = sorted(bench.live)
    what = draw(st.sampled_from(["settle"] * 5 + ["fork"] * 2 + ["join"] * 2 + ["discard"]))
    some = draw(st.sampled_from(frames))
    if what == "fork" and len(frames) < 7:
        bench.fork(some, draw(st.integers(2, 3)))
    elif what == "join" and len(frames) > 1:
        bench.join(draw(st.lists(st.sampled_from(frames), min_size=2, max_size=3, unique=True)))
    elif what == "discard" and len(frames) > 1 and some != 0:
        bench.discard(some)
    else:
        bench.settle(some, draw(st.integers(0, 5)), draw(changes()))


def check_frames(data: st.DataObject, steps: int) -> None:
    bench = Bench()
    for _ in range(steps):
        live_on(data.draw, bench)
        bench.check()
    everything = frozenset().union(bench.known.root, *bench.live.values())
    looked = thaw(bench.tree.merged()["scratch"])
    bench.tree.finish()
    assert thaw(bench.tree.values["scratch"]) == bench.known.values(everything)
    assert looked == bench.known.values(everything)
    assert list(bench.tree.frames) == [0]


@pytest.mark.covers("CORE-PROP-05", "D-24", "D-25")
@given(data=st.data(), steps=st.integers(1, 14))
@settings(max_examples=120)
def test_frames_agree_with_a_naive_reference_when_they_fork_and_join_at_random(
    data: st.DataObject, steps: int
) -> None:
    check_frames(data, steps)


@pytest.mark.soak
@given(data=st.data(), steps=st.integers(1, 40))
def test_frames_agree_with_a_naive_reference_for_long(data: st.DataObject, steps: int) -> None:
    check_frames(data, steps)


@pytest.mark.covers("D-24")
@given(data=st.data())
@settings(max_examples=60)
def test_canonical_order_is_the_same_when_branches_settle_in_another_order(data: st.DataObject) -> None:
    """The same branches, with numbers (seq) dealt out in another order of arrival."""
    branches = data.draw(st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=2, max_size=4))
    places = [(b, i) for b, branch in enumerate(branches) for i in range(len(branch))]

    def merged(order: list[tuple[int, int]]) -> list[tuple[int, int]]:
        seqs: dict[tuple[int, int], int] = {}
        left = [list(range(len(branch))) for branch in branches]
        for seq, (b, _) in enumerate(order):
            seqs[(b, left[b].pop(0))] = seq
        # A node settles once in each visit: the branch stands for the visit here.
        paths = [
            [Delta(seqs[(b, i)], node, 10 * b + i, 0, []) for i, node in enumerate(branch)]
            for b, branch in enumerate(branches)
        ]
        return [(d.node, d.visit) for d in canonical(paths)]

    assert merged(places) == merged(data.draw(st.permutations(places)))


ANYTHING = st.integers(0, 3) | st.text("ab", max_size=2) | st.just(FrozenList([1])) | st.just(FrozenDict(a=1))
REDUCERS = st.sampled_from(
    ["set", "delete", "append", "concat", "sum", "avg", "max", "merge", "first", "longest"]
)


@pytest.mark.covers("D-24")
@given(branches=st.lists(st.tuples(REDUCERS, ANYTHING), min_size=2, max_size=4), start=st.none() | ANYTHING)
@settings(max_examples=300)
def test_join_changes_nothing_when_a_reducer_cannot_combine_its_branches(
    branches: list[tuple[str, Any]], start: Any
) -> None:
    tree = FrameTree.rooted({"scratch": {} if start is None else {"x": start}})
    for child, (op, operand) in enumerate(branches, 1):
        tree.fork(0, child)
        try:
            tree.settle(child, Delta(child, child, 1, 0, [("scratch", "x", op, operand)]))
        except StateError:
            return  # the worker finds that when the node ends
    before = [thaw(tree.see(child, "scratch")) for child in range(len(branches) + 1)]
    try:
        assert tree.join(list(range(1, len(branches) + 1))) == 0
    except StateError:
        assert [thaw(tree.see(child, "scratch")) for child in range(len(branches) + 1)] == before


@pytest.mark.anyio
@pytest.mark.parametrize("joined", [True, False])
async def test_run_fails_with_a_name_for_it_when_branches_do_not_merge(joined: bool) -> None:
    flow = Flow("clash", reducers={"x": "sum"}, effect="pure")
    first, left, right, last = (
        flow.node(id=name)(giving(update))
        for name, update in zip("abcd", [{}, {"x": 1}, {"x": "one"}, {}], strict=True)
    )
    flow.start(first)
    for side in (left, right):
        flow.edge(first, side)
        if joined:
            flow.edge(side, last)
    if not joined:
        flow.edge(left, last)
    async with Holdfast("memory:") as hf:
        result = await flow.run({}, on=hf)
        assert result.failed
        assert result.error.code == "state_mismatch"
        assert "sum" in result.error.message


def giving(update: dict[str, Any]):
    async def node() -> dict[str, Any]:
        return update

    return node
