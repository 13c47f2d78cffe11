"""Which versions a worker claims runs of."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from holdfast.errors import HoldfastError
from holdfast.model.fingerprint import decode_graph, dialect_of
from holdfast.runs.driver.runtime import Runtime
from holdfast.runs.driver.settings import ALLOW_CODE
from holdfast.store.rows import FlowRow
from holdfast.telemetry import log
from holdfast.types.own_threads import in_thread

LOOK_EVERY: Final = 0.1  # seconds between two looks at what was stored meanwhile
_OVERLAP: Final = 60_000_000  # microseconds; rows may become visible later than the instant in them


class ServedVersions:
    """Those whose code is loaded, and every version of the dialects that it can run. A stored document may
    name a function, check or tool that this process lacks. Where there is such a version, the versions of
    its dialect are listed one by one, without it: a run that is claimed and given back costs others their
    turn."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._needs: dict[str, frozenset[str]] = {}
        self._lacking: set[str] = set()
        self._since = 0
        self._next = 0.0

    async def names(self) -> tuple[str, ...]:
        runtime = self._runtime
        await self._look()
        lacking = self.lacking
        if not lacking:
            return (*runtime.programs, *runtime.dialects)
        apart = {dialect_of(version) for version in lacking}
        rest = (each for each in runtime.dialects if each not in apart)
        listed = sorted(each for each in self._needs.keys() - lacking if dialect_of(each) in apart)
        loaded = (each for each in runtime.programs if each not in lacking)
        return (*loaded, *rest, *listed)

    @property
    def lacking(self) -> set[str]:
        """The versions whose runs it leaves to others."""
        return self._runtime.lacking | self._lacking

    async def _look(self) -> None:
        """At what was stored since the last look, and at what this process has now."""
        if time.monotonic() < self._next:
            return
        rows = await self._runtime.store.flows(self._since - _OVERLAP if self._since else 0)
        new = [row for row in rows if row.version not in self._needs]
        if new:
            self._needs |= await in_thread(self._needs_of, new)
        self._since = max((self._since, *(row.created_at for row in rows)))
        offers = offers_of(self._runtime) if any(self._needs.values()) else frozenset[str]()
        lacking = {version for version, needs in self._needs.items() if not needs <= offers}
        # What was lacking when it was met may be here by now.
        self._runtime.lacking -= {each for each in self._runtime.lacking if self._needs.get(each)} - lacking
        self._lacking = lacking
        self._next = time.monotonic() + LOOK_EVERY

    def _needs_of(self, rows: Iterable[FlowRow]) -> dict[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = {}
        for row in rows:
            dialect: Any = self._runtime.dialects.get(dialect_of(row.version))
            asks = getattr(dialect, "needs", None)
            found[row.version] = frozenset() if asks is None else asks(decode_graph(row.graph))
        return found


def offers_of(runtime: Runtime) -> frozenset[str]:
    """What the documents that it runs may name: `function:score`, `check:pii`, `tool:grep`."""
    found = frozenset({ALLOW_CODE} if runtime.settings.allow_code else ())
    for dialect in runtime.dialects.values():
        offers = getattr(dialect, "offers", None)
        try:
            found |= frozenset[str]() if offers is None else offers()
        # Settings that cannot be read now: the worker goes on with everything else.
        except HoldfastError as error:
            _warn_once(str(error))
    return found


@lru_cache(maxsize=100)
def _warn_once(text: str) -> None:
    log.warning("what this worker has for documents could not be announced: %s", text)
