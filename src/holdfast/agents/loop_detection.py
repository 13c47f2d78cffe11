"""Finds a model that repeats itself: the same call, or the same two or three calls, again and again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final

from holdfast.agents.messages import ToolCall

WINDOW: Final = 10
PATTERNS: Final = (1, 2, 3)
WARNING: Final = (
    "Your last calls repeat the same pattern and lead nowhere. Do not make them again: think about what is "
    "missing and try another way, or say what keeps you from the task."
)


class LoopDetector:
    """`warned`: the model was told once; a second loop ends its conversation."""

    def __init__(self) -> None:
        self._calls: list[str] = []
        self.warned = False

    def add(self, calls: Iterable[ToolCall]) -> bool:
        """Whether the latest calls are a loop. Then counting begins anew."""
        self._calls += [sha256(f"{call.name}\0{call.arguments}".encode()).hexdigest() for call in calls]
        del self._calls[:-WINDOW]
        if not is_loop(self._calls):
            return False
        self._calls.clear()
        return True


def is_loop(calls: Sequence[str]) -> bool:
    """Of ten calls, the last ones that a pattern divides: nine for a pattern of three."""
    if len(calls) < WINDOW:
        return False
    for size in PATTERNS:
        last = calls[-(WINDOW - WINDOW % size) :]
        if all(last[index] == last[index % size] for index in range(len(last))):
            return True
    return False
