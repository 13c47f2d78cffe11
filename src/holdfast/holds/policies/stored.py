"""Policies of a tenant in the store: every write and removal is audited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec

from holdfast.errors import DocumentChangedError, NotFoundError
from holdfast.holds.policies.parse import policy_of
from holdfast.holds.policies.removed_rules import confirm_removal, note_removed
from holdfast.store.protocols import Store
from holdfast.types.audit import NewAudit, canonical
from holdfast.types.document import Document

KIND: Final = "policy"
MAKERS: Final = "policy_makers"
"""Who wrote the policy of this name through a server."""


async def put_policy(
    store: Store,
    tenant: str,
    plain: Mapping[str, Any],
    *,
    by: str,
    people: Sequence[str] = (),
    expect: int | None = None,
) -> Document:
    """Write a policy. Open holds do not change. `people`: who writes it through a server, with everyone in
    the chain of their credential: they take part in what it decides, and cannot decide what an earlier
    version would have bound to several people. `expect`: only if this is the present revision.

    Raises PolicyInvalidError, DocumentChangedError."""
    policy = policy_of(dict(plain))
    body = msgspec.json.encode({**plain, "name": policy.name})
    makers = Document(tenant=tenant, kind=MAKERS, name=policy.name, body=msgspec.json.encode(people))
    await store.put_document(makers)
    old = await store.document(tenant, KIND, policy.name)
    if old is not None:
        # Before the change: a crash between must not leave a weaker policy without its author.
        was = msgspec.json.decode(old.body)
        await note_removed(store, tenant, policy.name, was, msgspec.json.decode(body), people)
    kept = await store.put_document(
        Document(tenant=tenant, kind=KIND, name=policy.name, body=body), expect=expect
    )
    if kept is None:
        raise DocumentChangedError(
            f"policy {policy.name!r} was changed by another writer.", hint="Read it again."
        )
    digest = sha256(body).hexdigest()
    await _note(
        store, tenant, by, "policy_written", policy=policy.name, revision=kept.revision, digest=digest
    )
    return kept


async def delete_policy(store: Store, tenant: str, name: str, *, by: str, people: Sequence[str] = ()) -> None:
    """Its rules match no hold that opens from now on; people decide what they would have decided. Open holds
    keep what it said. `people`: as for `put_policy`. Of a policy that others removed: confirms it, so that
    they may decide what it bound. Raises NotFoundError."""
    old = await store.document(tenant, KIND, name)
    if old is None:
        if not await confirm_removal(store, tenant, name, people):
            raise NotFoundError(
                f"there is no policy {name!r} in this store.", hint="`holdfast policy list` lists them."
            )
        await _note(store, tenant, by, "policy_removal_confirmed", policy=name)
        return
    # The audit entry and the mark come first: a removal must never be missing from them.
    facts = {"policy": name, "revision": old.revision, "digest": sha256(old.body).hexdigest()}
    await _note(store, tenant, by, "policy_dropped", **facts, rules=msgspec.json.decode(old.body)["rules"])
    await note_removed(store, tenant, name, msgspec.json.decode(old.body), {}, people)
    await store.drop_document(tenant, KIND, name)


async def _note(store: Store, tenant: str, by: str, action: str, **data: Any) -> None:
    entry = NewAudit(at=store.now(), actor=by, action=action, data=canonical(data))
    await store.append_audit(tenant, [entry])
