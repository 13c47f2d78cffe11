"""The identity of a store: a random name that it keeps for life, also when it is moved or restored."""

from __future__ import annotations

from holdfast.store.protocols import Store
from holdfast.types.document import Document
from holdfast.types.ids import DEFAULT_TENANT, new_id

KIND = "store"
NAME = "identity"
PLACE = "blobs"


async def known_identity(store: Store) -> str | None:
    """None: no process has asked for it yet."""
    found = await store.document(DEFAULT_TENANT, KIND, NAME)
    return None if found is None else found.body.decode()


async def store_identity(store: Store) -> str:
    """Made by the first process that asks."""
    found = await store.document(DEFAULT_TENANT, KIND, NAME)
    if found is None:
        made = Document(tenant=DEFAULT_TENANT, kind=KIND, name=NAME, body=new_id().encode())
        await store.put_document(made, expect=0)
        # Of two processes at once, one has made it.
        found = await store.document(DEFAULT_TENANT, KIND, NAME)
    assert found is not None, "it is never dropped"
    return found.body.decode()


async def has_blob_place(store: Store) -> bool:
    """Whether a blob store was marked as that of this store."""
    return await store.document(DEFAULT_TENANT, KIND, PLACE) is not None


async def keep_blob_place(store: Store) -> None:
    """From now on, a blob store without the marker is another one."""
    await store.put_document(Document(tenant=DEFAULT_TENANT, kind=KIND, name=PLACE, body=b"marked"), expect=0)
