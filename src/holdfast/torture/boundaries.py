"""The boundaries of a run: points between which a different state is durable when the process dies.

Besides the crash points of Holdfast (`telemetry.CRASH_POINTS`) there are two for each call of user code: just
before it, and after it returned and before its result is recorded.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

from holdfast.telemetry import CRASH_POINTS, arm_each

BEFORE: Final = "before_call"
AFTER: Final = "after_call"
# The same places as the two above, under the names that Holdfast's own tests use.
_TWINS: Final = frozenset({"lease_lost_mid_handler", "after_handler"})
NAMES: Final = (BEFORE, AFTER, *(name for name in CRASH_POINTS if name not in _TWINS))

MEANING: Final = {
    BEFORE: "just before the call",
    AFTER: "after the call, before its result is recorded",
    "after_claim": "the run was claimed",
    "after_intent": "the intent is durable, the effect has not started",
    "after_substep": "a sub-step is recorded, perhaps not durable",
    "after_blob_put": "a large value is stored, but not referenced yet",
    "inside_settle": "in the middle of a commit",
    "after_settle": "right after a commit",
    "before_park": "the run is about to wait",
    "after_park": "the run waits, and no worker has it",
    "after_answer": "an answer was given, the run has not received it yet",
    "after_timer_fired": "a timer fired, the run has not received it yet",
    "after_lapse": "a hold has expired, the run has not received it yet",
    "after_publish": "the commit is visible to others",
    "during_backoff": "during the wait before a retry",
    "inside_snapshot": "in the middle of a snapshot",
    "lease_lost_before_commit": "records are ready, the commit has not started",
}


class Point(msgspec.Struct, frozen=True):
    """The `nth` time that `name` is reached; `where` is the call that it belongs to, for people."""

    index: int
    name: str
    nth: int
    where: str

    def __str__(self) -> str:
        return f"{self.name}:{self.nth}"

    @property
    def description(self) -> str:
        return f"at {self.where or 'the start'} ({self.meaning})"

    @property
    def meaning(self) -> str:
        return MEANING.get(self.name, self.name)


class RecordingWatcher:
    """Counts all boundaries as they are reached, and reports each."""

    def __init__(self, report: Callable[[Point], None]) -> None:
        self._report = report
        self._reached: Counter[str] = Counter()
        self._index = 0
        self.where = ""
        for name in NAMES:
            arm_each(name, self._passing(name))

    def _passing(self, name: str) -> Callable[[], None]:
        return lambda: self.passed(name)

    def passed(self, name: str) -> None:
        self._reached[name] += 1
        self._report(Point(self._index, name, self._reached[name], self.where))
        self._index += 1


class KillingWatcher:
    """Ends the process at one point, at once and without clean-up."""

    def __init__(self, point: Point) -> None:
        self._point = point
        self._left = point.nth
        self.where = ""
        arm_each(point.name, lambda: self.passed(point.name))

    def passed(self, name: str) -> None:
        if name == self._point.name:
            self._left -= 1
            if self._left == 0:
                # A signal and not an exit code: by it the parent knows that the boundary was reached.
                os.kill(os.getpid(), signal.SIGKILL)


class NullWatcher:
    """For a process whose boundaries are not recorded."""

    def __init__(self) -> None:
        self.where = ""

    def passed(self, name: str) -> None:
        pass


Watcher = RecordingWatcher | KillingWatcher | NullWatcher
