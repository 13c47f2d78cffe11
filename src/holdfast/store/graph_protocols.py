"""What a store does for threads of other frameworks' graphs (`integrations.langgraph`).

The rules of `store.protocols` apply: each method is one transaction and may be called twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holdfast.types.graph_thread import (
    GraphBatch,
    GraphCheckpointRow,
    GraphClaim,
    GraphClaimRequest,
    GraphCopy,
    GraphDrop,
    GraphExtension,
    GraphFilter,
    GraphRefusal,
    GraphThreadRow,
    GraphValueRow,
)


class GraphThreads(Protocol):
    async def put_graph_rows(self, batch: GraphBatch) -> GraphRefusal | None:
        """Write checkpoints, values and writes, all or nothing. A checkpoint that is there with the same
        digest is left out, another one is replaced. A write with a number of 0 or more stays as it is there.
        Refused if the claim is not the thread's, and without one while another's lives; and if a value is
        missing that a checkpoint refers to, or a new value is built from, or the blob of a new value."""
        ...

    async def graph_checkpoint(
        self, tenant: str, thread: str, ns: str, checkpoint: str | None = None
    ) -> GraphCheckpointRow | None:
        """With its writes, in the order of (path, task, number); without an id, the newest that is listed."""
        ...

    async def graph_checkpoints(
        self, where: GraphFilter, *, after: tuple[str, int] | None = None, limit: int = 100
    ) -> list[GraphCheckpointRow]:
        """With their writes, the greatest id first; `after` is (id, number) of the last row seen."""
        ...

    async def graph_ancestors(
        self, tenant: str, thread: str, ns: str, checkpoint: str, *, limit: int = 100
    ) -> list[GraphCheckpointRow]:
        """The parent of that checkpoint, its parent, and so on, listed or not, with their writes."""
        ...

    async def graph_values(self, tenant: str, thread: str, numbers: Sequence[int]) -> list[GraphValueRow]:
        """These values and all that they are built from, in any order."""
        ...

    async def graph_threads(
        self, tenant: str, *, thread: str | None = None, after: str = "", limit: int = 100
    ) -> list[GraphThreadRow]:
        """In the order of their ids; `after`: the last one seen. `thread`: only this one."""
        ...

    async def drop_graph_rows(self, drop: GraphDrop) -> GraphRefusal | None:
        """Delete checkpoints with their writes, and the values that no checkpoint needs any more. Without the
        claim of the thread, one that has expired is over."""
        ...

    async def copy_graph_thread(self, copy: GraphCopy) -> GraphRefusal | None:
        """Copy all checkpoints and writes; both threads share the values. Refused if the target exists."""
        ...

    async def claim_graph_thread(self, want: GraphClaimRequest) -> GraphClaim | GraphRefusal:
        """The thread is made if it is not there. Refused while another's claim lives. The same owner gets its
        claim again."""
        ...

    async def extend_graph_claims(self, claims: Sequence[GraphExtension], ttl: int) -> list[bool]:
        """True for each claim that is still the thread's, even if it had expired."""
        ...

    async def release_graph_claim(self, claim: GraphExtension) -> bool:
        """False if it is not the thread's any more. A thread without a checkpoint and writes is deleted."""
        ...
