"""Runs that this process had begun and released, because it lacks what they need: what that is, and when
they are tried again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from holdfast.errors import HoldfastError, RunFileMissingError
from holdfast.types.backoff import Backoff
from holdfast.types.clock import MICROS
from holdfast.types.ids import RunId

FILE_BACKOFF: Final = Backoff(first=10.0, longest=300.0)
"""Seconds until a run that misses a file is tried again: each try is in its history."""
_REMEMBERED: Final = 1_000


class ReleasedRuns:
    def __init__(self) -> None:
        self._words: dict[str, tuple[str, ...]] = {}
        self._tries: dict[RunId, int] = {}

    def note(self, run: RunId, version: str, error: HoldfastError) -> None:
        """A file, a program or a commit is noted for this run alone, anything else for its version."""
        missing: Any = error.facts.get("missing", ())
        of_run = isinstance(error, RunFileMissingError)
        self._words[run if of_run else version] = tuple(missing)
        for old in list(self._words)[:-_REMEMBERED]:
            del self._words[old]

    def rest(self, run: RunId) -> int:
        """Microseconds until this process tries the run again, longer each time."""
        if len(self._tries) > _REMEMBERED:
            self._tries.clear()
        times = self._tries[run] = self._tries.get(run, 0) + 1
        return int(FILE_BACKOFF.pause(times) * MICROS)

    def forget(self, run: RunId) -> None:
        """It was served here."""
        self._words.pop(run, None)
        self._tries.pop(run, None)

    def words(self, lacking: Iterable[str], most: int) -> dict[str, tuple[str, ...]]:
        """By run or version, the newest. `lacking`: the versions whose runs this process leaves to others."""
        left = set(lacking)
        found = {key: words for key, words in self._words.items() if key in self._tries or key in left}
        return dict(list(found.items())[-most:])
