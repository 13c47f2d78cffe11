"""The memory store: a complete store for tests and experiments, lost with its process.

It keeps encoded bytes and copies of rows, never the objects it was given, so that a run behaves here as it
does on a disk. All its methods may be called from any thread and any event loop.
"""

from __future__ import annotations

from holdfast.store.limit_admission import wait_until_open
from holdfast.store.memory.audit import MemoryAudit
from holdfast.store.memory.blobs import MemoryBlobs, MemoryNodeMemories
from holdfast.store.memory.engine_runs import MemoryEngineRuns
from holdfast.store.memory.graph_threads import MemoryGraphThreads
from holdfast.store.memory.holds import MemoryHolds
from holdfast.store.memory.journal import MemoryInbox, MemoryJournal
from holdfast.store.memory.queues import MemoryQueues
from holdfast.store.memory.raw_rows import MemoryReencryption
from holdfast.store.memory.reclaim import MemoryRecovery
from holdfast.store.memory.runs import MemoryLostHistory
from holdfast.store.memory.transfer import MemoryProjections, MemoryRunTransfer
from holdfast.store.memory.workers import MemoryFleet, MemorySchedules
from holdfast.store.rows import Capability


class MemoryStore(
    MemoryRecovery,
    MemoryEngineRuns,
    MemoryJournal,
    MemoryInbox,
    MemoryFleet,
    MemoryHolds,
    MemoryAudit,
    MemoryQueues,
    MemorySchedules,
    MemoryRunTransfer,
    MemoryLostHistory,
    MemoryBlobs,
    MemoryNodeMemories,
    MemoryGraphThreads,
    MemoryProjections,
    MemoryReencryption,
):
    capabilities = Capability.inline

    async def wait_change(self, timeout: float) -> bool:
        return await self._changes.wait(wait_until_open(timeout, self._opens_at, self._now()))

    async def close(self) -> None:
        """Wakes all waiting callers. The data stays: a crash test drops the worker and keeps the store."""
        self._changes.notify()
        self._queue_changes.notify()
