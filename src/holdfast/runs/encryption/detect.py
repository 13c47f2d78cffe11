"""Whether a store is encrypted, found out without loading what encrypts: most stores are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.store.protocols import Store
from holdfast.store.rows import RunFilter
from holdfast.types.ciphertext import is_encrypted

if TYPE_CHECKING:
    from holdfast.runs.encryption.store import EncryptedStore


def encrypted_store_within(store: Store) -> EncryptedStore | None:
    """The encrypted store: this one, or the one that it wraps."""
    return getattr(store, "encrypted_store", None)


async def holds_ciphertext(store: Store) -> bool:
    """Whether the newest run of a store is encrypted: then nothing may be written to it without a key."""
    for row in await store.list_runs(RunFilter(), after=None, limit=1):
        records = await store.read(row.id, first=row.horizon, last=row.horizon)
        return any(is_encrypted(record.payload) for record in records)
    return False
