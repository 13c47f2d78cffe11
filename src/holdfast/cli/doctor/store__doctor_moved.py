"""What `doctor` says of a store that is one half of a move."""

from __future__ import annotations

from holdfast.cli.doctor.finding import WARN, Finding
from holdfast.cli.output.results import clock_time
from holdfast.store.copy import Mark
from holdfast.store.open import half_of_move


async def of_move(address: str) -> Finding | None:
    """None for a store that nobody moves, as nearly all are."""
    if address == "memory:":
        return None
    half = half_of_move(address)
    try:
        mark = await half.mark()
        return None if mark is None else _finding(mark, half.where)
    finally:
        await half.close()


def _finding(mark: Mark, where: str) -> Finding:
    since = clock_time(mark.at)
    if mark.state == "moved":
        said = f"this store was moved to {mark.peer}, begun {since}: it can be read, nothing more"
        return Finding("moved", WARN, said, f"use that one: --store {mark.peer}")
    if mark.state == "filling":
        said, old, new = f"this store is being filled from {mark.peer} since {since}", mark.peer, where
    else:
        said, old, new = f"this store is being moved to {mark.peer} since {since}", where, mark.peer
    todo = f"go on with it if nobody does: holdfast promote {old} {new}; or take it back: --undo"
    return Finding("moved", WARN, said, todo)
