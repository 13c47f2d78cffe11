"""Chapters of which only the outline is known: a fork and a pruned run carry no more of what was before."""

from __future__ import annotations

from typing import Final

from holdfast.checkpoint.fold import Execution
from holdfast.runs.history.story import Chapter

STATES: Final = {"skipped": "failed", "unknown": "unknown", "fail": "failed"}
"""What an outcome makes of a chapter; any other: done. What was skipped has failed and was let pass."""


def outline(execution: Execution, run: str) -> Chapter:
    return Chapter(
        node=execution.node,
        scope=execution.scope,
        visit=execution.visit,
        run=execution.run or run,
        started_at=execution.at - execution.duration,
        effect=execution.effect,
        state=STATES.get(execution.outcome, "done"),
        outcome=execution.outcome,
        seq=execution.seq,
        ended_at=execution.at,
        attempts=execution.attempt,
        duration=execution.duration,
        tokens=execution.tokens,
        cost=execution.cost,
        output=execution.output,
        error=execution.error,
        halts=not execution.settled,
        readable=execution.readable,
    )
