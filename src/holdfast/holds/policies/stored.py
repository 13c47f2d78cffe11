"""Policies in the store, a tenant's own: written, listed, dropped, each time with an entry in the audit."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec

from holdfast.errors import DocumentChangedError, NotFoundError
from holdfast.holds.policies.parse import policy_of
from holdfast.store.protocols import Store
from holdfast.types.audit import NewAudit, canonical
from holdfast.types.document import Document

KIND: Final = "policy"


async def put_policy(
    store: Store, tenant: str, plain: Mapping[str, Any], *, by: str, expect: int | None = None
) -> Document:
    """Write it. Open holds stay as they are. `expect`: only over this revision.

    Raises PolicyInvalidError, DocumentChangedError."""
    policy = policy_of(dict(plain))
    body = msgspec.json.encode({**plain, "name": policy.name})
    kept = await store.put_document(
        Document(tenant=tenant, kind=KIND, name=policy.name, body=body), expect=expect
    )
    if kept is None:
        raise DocumentChangedError(f"policy {policy.name!r} was changed meanwhile.", hint="Read it again.")
    digest = sha256(body).hexdigest()
    await _note(
        store, tenant, by, "policy_written", policy=policy.name, revision=kept.revision, digest=digest
    )
    return kept


async def drop_policy(store: Store, tenant: str, name: str, *, by: str) -> None:
    """Its rules match nothing more; what one may still decide goes to people. Raises NotFoundError."""
    if not await store.drop_document(tenant, KIND, name):
        raise NotFoundError(f"there is no policy {name!r} in this store.", hint="holdfast policy list")
    await _note(store, tenant, by, "policy_dropped", policy=name)


async def _note(store: Store, tenant: str, by: str, action: str, **data: Any) -> None:
    entry = NewAudit(at=store.now(), actor=by, action=action, data=canonical(data))
    await store.append_audit(tenant, [entry])
