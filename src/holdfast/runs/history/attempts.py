"""The attempts of a visit, each with its start, its end, its worker and why it failed."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from holdfast.checkpoint.visit import AttemptDetail, Visit

# After these the handler continues: it has not failed.
_GOES_ON = frozenset({"woke", "continued", "withdrawn"})


class AttemptSpan(msgspec.Struct, frozen=True, kw_only=True):
    """`worker`: empty if no record names it. `reason`: why there was this attempt; empty for the first."""

    number: int
    reason: str
    started_at: int
    ended_at: int | None
    term: int
    worker: str
    error: dict[str, str] | None
    traceback: str


def attempts_of(visit: Visit, workers: Mapping[int, str]) -> list[AttemptSpan]:
    """In order. A retry starts when its pause has ended."""
    again = [trial for trial in visit.trials if trial.reason not in _GOES_ON]
    begun: list[AttemptDetail | None] = [None, *again]
    spans: list[AttemptSpan] = []
    for place, trial in enumerate(begun):
        following = again[place] if place < len(again) else None
        term = visit.term if trial is None else trial.term
        spans.append(
            AttemptSpan(
                number=1 if trial is None else trial.attempt,
                reason="" if trial is None else trial.reason,
                started_at=visit.started_at if trial is None else trial.wake_at or trial.at,
                ended_at=visit.ended_at if following is None else _end_before(visit, following),
                term=term,
                worker=workers.get(term, ""),
                error=visit.error if following is None else following.error,
                traceback=visit.traceback if following is None else following.traceback,
            )
        )
    return spans


def _end_before(visit: Visit, following: AttemptDetail) -> int:
    """When the attempt before another one ended: a run that failed stands still until it is retried."""
    stood = (wait for wait in visit.waits if wait.kind == "failed" and wait.until == following.at)
    return next((wait.since for wait in stood), following.at)
