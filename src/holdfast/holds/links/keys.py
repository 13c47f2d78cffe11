"""The keys that sign links: the operator's from the environment, or a tenant's in the store."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence

import msgspec

from holdfast.errors import NotFoundError
from holdfast.holds.links.tokens import LinkKey, keys_from_environment, new_key
from holdfast.store.protocols import Store
from holdfast.types.document import Document
from holdfast.types.redaction import redactor

KIND = "link_key"


class _Kept(msgspec.Struct, frozen=True):
    secret: str
    made_at: int


class LinkKeys:
    """Read at each use: a removed key is no longer valid, in any process."""

    def __init__(self, store: Store, fixed: Sequence[LinkKey] | None = None) -> None:
        self.store = store
        self._fixed = tuple(keys_from_environment() if fixed is None else fixed)

    @property
    def are_fixed(self) -> bool:
        return bool(self._fixed)

    async def all(self, tenant: str) -> tuple[LinkKey, ...]:
        """The valid keys; the first one signs."""
        return self._fixed or tuple(key for key, _ in await self.kept(tenant))

    async def signing(self, tenant: str) -> LinkKey:
        """A tenant without a key gets its first one."""
        known = await self.all(tenant)
        return known[0] if known else await self.rotate(tenant)

    async def rotate(self, tenant: str) -> LinkKey:
        """A new key signs from now on. Links of older keys stay valid until those keys are dropped."""
        key, now = new_key(), self.store.now()
        body = msgspec.json.encode(_Kept(b64encode(key.secret).decode(), now))
        await self.store.put_document(Document(tenant=tenant, kind=KIND, name=key.id, body=body))
        return key

    async def delete(self, tenant: str, name: str) -> None:
        """Every link that it signed is void from now on. Raises NotFoundError."""
        if not await self.store.drop_document(tenant, KIND, name):
            raise NotFoundError(f"there is no link key {name!r}.", hint="`holdfast links keys` lists them.")

    async def kept(self, tenant: str) -> list[tuple[LinkKey, int]]:
        """The keys in the store with their creation time, newest first."""
        found: list[tuple[LinkKey, int]] = []
        for document in await self.store.documents(tenant, KIND):
            kept = msgspec.json.decode(document.body, type=_Kept)
            redactor.learn_for(tenant, kept.secret)
            found.append((LinkKey(document.name, b64decode(kept.secret)), kept.made_at))
        return sorted(found, key=lambda each: (-each[1], each[0].id))
