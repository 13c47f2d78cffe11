"""Verifies the audit: walks its chain of hashes from the first record to the head (HI-5).

A signed head, stored elsewhere, also reveals a chain that was truncated or rewritten from some record on.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, Final

import msgspec

from holdfast.errors import InputError
from holdfast.store.protocols import Store
from holdfast.types.audit import GENESIS, AuditRow, canonical, hash_of
from holdfast.types.clock import iso

LEAST_SECRET: Final = 16
_PAGE: Final = 1000


class SignedHead(msgspec.Struct, frozen=True, kw_only=True):
    """The head of a tenant's audit at a time. `signature`: HMAC-SHA256 with the key named `key`."""

    tenant: str
    seq: int
    hash: str
    at: str
    key: str = ""
    signature: str = ""


class AuditCheck(msgspec.Struct, frozen=True, kw_only=True):
    """`problem`: None, or edited, removed, reordered, truncated, with the number of the record in `seq`."""

    tenant: str
    records: int
    problem: str | None = None
    seq: int | None = None
    why: str = ""

    @property
    def whole(self) -> bool:
        return self.problem is None


async def records_of(
    store: Store, tenant: str, *, after: int = 0, upto: int | None = None, hold: str | None = None
) -> list[AuditRow]:
    """All records in order, or those of one hold."""
    found: list[AuditRow] = []
    while upto is None or after < upto:
        page = await store.audit(tenant, after=after, limit=_PAGE, hold=hold)
        found += [row for row in page if upto is None or row.seq <= upto]
        if len(page) < _PAGE:
            break
        after = page[-1].seq
    return found


async def verify_audit(store: Store, tenant: str, *, against: SignedHead | None = None) -> AuditCheck:
    """Every record, in order. `against`: a head that was signed before; it must be part of this chain.

    Others may write in the meantime: records that existed at the start must exist, and new ones must fit."""
    # Read before the records: everything up to here must be found, whatever is appended meanwhile.
    seq, head = await store.audit_head(tenant)
    known = {seq: head.hex()} if against is None else {seq: head.hex(), against.seq: against.hash}
    last, prev = 0, GENESIS
    while page := await store.audit(tenant, after=last, limit=_PAGE):
        for row in page:
            problem = _problem(row, last + 1, prev)
            if problem is None and known.get(row.seq, row.hash.hex()) != row.hash.hex():
                problem = "edited"
            if problem is not None:
                return _broken(tenant, last, problem, last + 1 if problem != "edited" else row.seq)
            last, prev = row.seq, row.hash
    if max(known) > last:
        return _broken(tenant, last, "truncated", last + 1)
    return await _at_the_end(store, tenant, last, prev)


def _problem(row: AuditRow, seq: int, prev: bytes) -> str | None:
    if row.seq != seq:
        return "removed" if row.seq > seq else "reordered"
    if hash_of(row) != row.hash:
        return "edited"
    # Its content matches its hash, but it does not follow the record before it.
    return None if row.prev == prev else "reordered"


async def _at_the_end(store: Store, tenant: str, last: int, prev: bytes) -> AuditCheck:
    """The head is stored separately: it must name the last record, and none may be after it."""
    seq, head = await store.audit_head(tenant)
    if seq < last or (seq == last and head != prev):
        return _broken(tenant, last, "edited", last)
    return AuditCheck(tenant=tenant, records=last)


_WHY: Final = {
    "edited": "record {seq} was changed after it was written",
    "removed": "record {seq} is missing",
    "reordered": "record {seq} does not follow the one before it",
    "truncated": "the records from {seq} on are missing",
}


def _broken(tenant: str, records: int, problem: str, seq: int) -> AuditCheck:
    why = _WHY[problem].format(seq=seq)
    return AuditCheck(tenant=tenant, records=records, problem=problem, seq=seq, why=why)


# ---------------------------------------------------------------------- signed heads


async def sign_head(store: Store, tenant: str, secret: bytes) -> SignedHead:
    """The present head of the audit, to be stored where writers of the store have no access.

    Raises InputError for a secret that is too short to prove anything."""
    require_secret(secret)
    seq, head = await store.audit_head(tenant)
    bare = SignedHead(tenant=tenant, seq=seq, hash=head.hex(), at=iso(store.now()), key=_key_name(secret))
    return msgspec.structs.replace(bare, signature=_signature(bare, secret))


def require_secret(secret: bytes) -> None:
    """Raises InputError."""
    if len(secret) < LEAST_SECRET:
        raise InputError(f"a key must have at least {LEAST_SECRET} bytes.", hint="Use 32 random bytes.")


def check_head(head: SignedHead, secrets: Iterable[bytes]) -> None:
    """Raises InputError if it is not signed with one of these secrets."""
    signed = [_signature(head, secret) for secret in secrets if _key_name(secret) == head.key]
    if not any(hmac.compare_digest(each, head.signature) for each in signed):
        raise InputError(
            f"the head of the audit of {head.tenant!r} at record {head.seq} is not signed with a known key.",
            hint="It was changed, or its key is not configured.",
        )


def _key_name(secret: bytes) -> str:
    return sha256(secret).hexdigest()[:8]


def _signature(head: SignedHead, secret: bytes) -> str:
    fields: dict[str, Any] = {
        name: value for name, value in msgspec.structs.asdict(head).items() if name != "signature"
    }
    return hmac.new(secret, canonical(fields), sha256).hexdigest()
