"""Which versions a worker claims runs of."""

from __future__ import annotations

import time
from typing import Final

from holdfast.model.fingerprint import dialect_of
from holdfast.runs.driver.runtime import Runtime

LISTED_FOR: Final = 2.0  # seconds; a version that is stored later is claimed after them


class ServedVersions:
    """Those whose code is loaded, and every version of the dialects that it can run. Once a document was met
    that names a function or check which this process lacks, the versions of its dialect are listed one by
    one, without it: a run that is claimed and given back again costs others their turn."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._listed: tuple[str, ...] = ()
        self._without: set[str] = set()
        self._until = 0.0

    async def names(self) -> tuple[str, ...]:
        runtime = self._runtime
        if not runtime.lacking:
            return (*runtime.programs, *runtime.dialects)
        apart = {dialect_of(version) for version in runtime.lacking}
        if time.monotonic() >= self._until or runtime.lacking != self._without:
            await self._list(apart)
        rest = (each for each in runtime.dialects if each not in apart)
        return (*runtime.programs, *rest, *self._listed)

    async def _list(self, dialects: set[str]) -> None:
        lacking = set(self._runtime.lacking)
        known = {row.version for row in await self._runtime.store.flows()}
        self._listed = tuple(
            sorted(version for version in known - lacking if dialect_of(version) in dialects)
        )
        self._without, self._until = lacking, time.monotonic() + LISTED_FOR
