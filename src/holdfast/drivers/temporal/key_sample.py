"""Whether the processes of a cluster have the same keys: one leaves a sample in the store, and each reads it
before it starts anything there."""

from __future__ import annotations

from typing import Final

from holdfast.checkpoint.encrypt import header_of
from holdfast.errors import EngineError, KeyMissingError
from holdfast.runs.encryption.detect import encrypted_store_within
from holdfast.store.protocols import Store
from holdfast.types.ciphertext import is_encrypted
from holdfast.types.document import Document

KIND: Final = "store"
NAME: Final = "engine_keys"
SAMPLE: Final = b"the keys are the same"


async def require_same_keys(store: Store, tenant: str) -> None:
    """Raises EngineError if another process encrypts what this one cannot read."""
    try:
        found = await store.document(tenant, KIND, NAME)
    except KeyMissingError as error:
        raise _differ(tenant) from error
    if found is not None and found.body != SAMPLE:
        # Without any keys it is read as it is stored.
        raise _differ(tenant)
    if found is None or await _is_older(store, tenant):
        # Processes that lack the key of this one will find that out.
        await store.put_document(Document(tenant=tenant, kind=KIND, name=NAME, body=SAMPLE))


async def _is_older(store: Store, tenant: str) -> bool:
    """Whether the sample was written with another key than this process writes with, or with none."""
    encrypted = encrypted_store_within(store)
    if encrypted is None:
        return False
    raw = await encrypted.inner.document(tenant, KIND, NAME)
    if raw is None or not is_encrypted(raw.body):
        return True
    return header_of(raw.body).key != encrypted.cipher.key(tenant).id


def _differ(tenant: str) -> EngineError:
    return EngineError(
        f"this process cannot read what others write for runs of tenant {tenant!r} on the cluster: their "
        "keys differ.",
        hint="Give all processes that start runs or work on them the same keys (HOLDFAST_KEYS).",
    )
