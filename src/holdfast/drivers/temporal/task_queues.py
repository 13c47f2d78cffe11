"""Task queues: which workers get the runs of a version."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

from holdfast.errors import FlowNotFoundError
from holdfast.model.fingerprint import CODED, decode_graph, dialect_of
from holdfast.model.graph import GraphSpec
from holdfast.runs.driver.runtime import Runtime
from holdfast.runs.store_identity import store_identity
from holdfast.runs.worker.served_versions import offers_of
from holdfast.store.rows import RunRow

_KEPT: Final = 10_000


def queue_of(store: str, lane: str, flow: str, version: str) -> str:
    """Of a flow in Python: only workers with its code and its store poll it. `store`: the store's own
    name."""
    return f"holdfast/{lane}/{flow}@{version.partition('-')[2][:12] or version}/{store[:8]}"


def shared_queue(store: str, lane: str, needs: frozenset[str] = frozenset()) -> str:
    """Of the documents and pipelines of a lane. Those that name functions, backends or models share one with
    others that need the same: a worker without them never gets their tasks."""
    # A digest: the names of functions and models are no business of the cluster.
    more = f"+{sha256(' '.join(sorted(needs)).encode()).hexdigest()[:12]}" if needs else ""
    return f"holdfast/{lane}{more}/{store[:8]}"


def _nothing(_spec: GraphSpec) -> frozenset[str]:
    return frozenset()


class TaskQueues:
    """Of the runs of one store, as this process knows them."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._needs: dict[str, frozenset[str]] = {}

    async def of(self, row: RunRow) -> str:
        """Raises FlowNotFoundError if the graph of a document or pipeline is not stored."""
        store = await store_identity(self._runtime.store)
        if dialect_of(row.version) == CODED:
            return queue_of(store, row.lane, row.flow, row.version)
        return shared_queue(store, row.lane, await self.needs(row.flow, row.version))

    async def needs(self, flow: str, version: str) -> frozenset[str]:
        """What a worker must have to run a stored graph; of a flow in Python nothing but its code."""
        dialect: Any = self._runtime.dialects.get(dialect_of(version))
        if dialect is None:
            return frozenset()
        known: frozenset[str] | None = self._needs.get(version)
        if known is None:
            stored = await self._runtime.store.flow(flow, version)
            if stored is None:
                raise FlowNotFoundError(f"the graph of flow {flow!r} is not stored.", flow=flow)
            asks: Callable[[GraphSpec], frozenset[str]] = getattr(dialect, "needs", _nothing)
            known = asks(decode_graph(stored.graph))
            if len(self._needs) >= _KEPT:
                self._needs.clear()
            self._needs[version] = known
        return known

    async def is_served(self, row: RunRow) -> bool:
        """Whether this process has what the run needs."""
        if dialect_of(row.version) not in self._runtime.dialects:
            return row.version in self._runtime.programs
        needs = await self.needs(row.flow, row.version)
        return not needs or needs <= offers_of(self._runtime)
