"""The encrypted content of graphs' threads: bodies, values and writes.

No ciphertext is bound to the thread: a copy of a thread is made by the store below, as it is stored. Metadata
cannot be searched there, so pages are decrypted and searched here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.types.graph_thread import (
    GraphBatch,
    GraphCheckpointRow,
    GraphFilter,
    GraphRefusal,
    GraphValueRow,
)

if TYPE_CHECKING:
    from holdfast.runs.encryption.cipher import FieldCipher
    from holdfast.store.protocols import Store

_PAGE = 200


class EncryptedGraphThreads:
    """A part of `EncryptedStore`."""

    inner: Store
    cipher: FieldCipher

    async def put_graph_rows(self, batch: GraphBatch) -> GraphRefusal | None:
        tenant, encrypt = batch.tenant, self.cipher.encrypt
        return await self.inner.put_graph_rows(
            replace(
                batch,
                checkpoints=tuple(
                    replace(encrypt(row, tenant), digest=self.cipher.keyed_digest(row.digest, tenant))
                    for row in batch.checkpoints
                ),
                values=tuple(encrypt(row, tenant) for row in batch.values),
                writes=tuple(encrypt(row, tenant) for row in batch.writes),
            )
        )

    async def graph_checkpoint(
        self, tenant: str, thread: str, ns: str, checkpoint: str | None = None
    ) -> GraphCheckpointRow | None:
        found = await self.inner.graph_checkpoint(tenant, thread, ns, checkpoint)
        return None if found is None else self._readable(found, tenant)

    async def graph_checkpoints(
        self, where: GraphFilter, *, after: tuple[str, int] | None = None, limit: int = 100
    ) -> list[GraphCheckpointRow]:
        sought = bool(where.facets or where.absent)
        below = replace(where, facets=(), absent=()) if sought else where
        step, found = _PAGE if sought else limit, list[GraphCheckpointRow]()
        while len(found) < limit:
            page = await self.inner.graph_checkpoints(below, after=after, limit=step)
            readable = [self._readable(row, where.tenant) for row in page]
            found += [row for row in readable if where.admits(row.facets)]
            if len(page) < step:
                break
            after = (page[-1].id, page[-1].number)
        return found[:limit]

    async def graph_ancestors(
        self, tenant: str, thread: str, ns: str, checkpoint: str, *, limit: int = 100
    ) -> list[GraphCheckpointRow]:
        found = await self.inner.graph_ancestors(tenant, thread, ns, checkpoint, limit=limit)
        return [self._readable(row, tenant) for row in found]

    async def graph_values(self, tenant: str, thread: str, numbers: Sequence[int]) -> list[GraphValueRow]:
        found = await self.inner.graph_values(tenant, thread, numbers)
        return [self.cipher.decrypt(row, tenant=tenant) for row in found]

    def _readable(self, row: GraphCheckpointRow, tenant: str) -> GraphCheckpointRow:
        writes = tuple(self.cipher.decrypt(write, tenant=tenant) for write in row.writes)
        return replace(self.cipher.decrypt(row, tenant=tenant), writes=writes)
