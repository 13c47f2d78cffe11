"""What a store does for runs that an engine drives instead of the built-in workers. An engine has the lease
of its runs, under its name and without an end.

The rules of `store.protocols` apply: each method is one transaction and may be called twice."""

from __future__ import annotations

from typing import Protocol

from holdfast.store.rows import RunMove, RunRow
from holdfast.types.event import EventRow
from holdfast.types.fleet import Death
from holdfast.types.ids import RunId
from holdfast.types.lease import Lease


class EngineRuns(Protocol):
    async def move_run(self, move: RunMove) -> RunRow | None:
        """Give the lease of a run to an engine, or take it from one: the term grows, so that the run has one
        owner at every moment. Without an engine the run is parked, and claimable if a message waits for it.
        With `resume`, a failed run is moved and runs again; otherwise one that waits. None if it is another
        one by now, or has another worker, term or last record than `move` names."""
        ...

    async def change_limit(self, lease: Lease, limit: str) -> bool:
        """The run counts against this limit from now on, while it keeps its lease; '' for none. False if the
        limit does not admit it, or the term is not current."""
        ...

    async def mark_dead(self, run: RunId, *, death: Death, event: EventRow) -> bool:
        """A run that failed because its workers were lost is a dead letter: the death is recorded. False if
        it has not failed in the term of the death, or is one already."""
        ...
