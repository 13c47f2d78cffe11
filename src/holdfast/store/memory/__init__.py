"""The memory store: a real store for tests and trials, gone with its process.

It keeps encoded bytes and copies of rows, never the objects it was given, so that a run behaves here as it
does on a disk (D-12). All its methods may be called from any thread and any event loop.
"""

from __future__ import annotations

from holdfast.store.limits import until_open
from holdfast.store.memory.auditing import Auditing
from holdfast.store.memory.blobs import Keeping
from holdfast.store.memory.dying import Dying
from holdfast.store.memory.fleet import Fleet
from holdfast.store.memory.holds import Holding
from holdfast.store.memory.inbox import Telling
from holdfast.store.memory.journal import Reading
from holdfast.store.memory.kept import Resealing
from holdfast.store.memory.losing import Losing
from holdfast.store.memory.memories import Remembering
from holdfast.store.memory.moving import Adopting
from holdfast.store.memory.projections import Projecting
from holdfast.store.memory.scheduling import Scheduling
from holdfast.store.protocols import Capability


class MemoryStore(
    Dying,
    Reading,
    Telling,
    Fleet,
    Holding,
    Auditing,
    Scheduling,
    Adopting,
    Losing,
    Keeping,
    Remembering,
    Projecting,
    Resealing,
):
    capabilities = Capability.inline

    async def wait_change(self, timeout: float) -> bool:
        return await self._bell.wait(until_open(timeout, self._opens_at, self._now()))

    async def close(self) -> None:
        """Wakes who still waits. The data stays: a crash test drops the worker and keeps the store (D-12)."""
        self._bell.ring()


__all__ = ["MemoryStore"]
