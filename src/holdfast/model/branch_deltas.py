"""Settled steps inside a fork, and the one order in which a join applies them."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import msgspec

from holdfast.types.record import Op


class Delta(msgspec.Struct, frozen=True, array_like=True):
    """One settled step inside a fork: its place in canonical order, and what it changed."""

    seq: int
    node: int
    visit: int
    index: int
    ops: list[Op]


def canonical(paths: list[list[Delta]]) -> list[Delta]:
    """Merge causal sequences: causal order is kept; otherwise the order is (node, visit, index), never
    seq."""
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
