"""The audit of a tenant: read, and checked."""

from __future__ import annotations

from typing import Annotated

import msgspec

from holdfast.api.auth.rights import Right
from holdfast.api.pagination import Cursor, Limit, Page, cursor_of, decode_cursor
from holdfast.api.routing import ApiCall, Routes
from holdfast.api.schemas.audit import AuditWire, audit_wire, module_of
from holdfast.api.schemas.common import moment
from holdfast.api.schemas.hold_query import Instant, Words
from holdfast.errors import InputError
from holdfast.holds.queries.audit import SignedHead
from holdfast.types.audit import AuditRow
from holdfast.types.clock import END_OF_TIME, START_OF_TIME, require_moment

routes = Routes("audit")

_PAGE = 1000
MOST_READ = 20 * _PAGE
"""Records that one request scans; `next` continues from there."""
AuditSeq = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


class ListAudit(msgspec.Struct, kw_only=True):
    """AND across the fields, OR within each. `module`: scaicore (holds and runs) or holdfast (the server)."""

    module: Words = []
    checkpoint: str | None = None
    execution: Words = []
    actor: Words = []
    action: Words = []
    since: Instant | None = None
    until: Instant | None = None
    limit: Limit = 100
    cursor: Cursor | None = None


class AuditHead(msgspec.Struct, kw_only=True):
    """The head of the audit: keep it where users with access to the store cannot change it."""

    tenant: str
    seq: int
    hash: str
    at: str | None


class KnownHead(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An earlier head: it must be part of the chain."""

    seq: Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
    hash: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class AuditVerification(msgspec.Struct, kw_only=True):
    """`problem`: none, or edited, removed, reordered, truncated, at record `seq`."""

    tenant: str
    whole: bool
    records: int
    problem: str | None
    seq: int | None
    why: str


class VerifyAudit(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    against: KnownHead | None = None


@routes.get("/audit", needs=Right.audit_read)
async def list_audit(call: ApiCall, query: ListAudit) -> Page[AuditWire]:
    """Actions and refusals, oldest first. A page may be short and still have a `next`."""
    store = await call.hf.open()
    window = (
        START_OF_TIME if query.since is None else require_moment(query.since, "since"),
        END_OF_TIME if query.until is None else require_moment(query.until, "until"),
    )
    place = decode_cursor(query.cursor, tuple[AuditSeq])
    after, read, found = (0 if place is None else place[0]), 0, list[AuditRow]()
    while read < MOST_READ:
        page = await store.audit(call.tenant, after=after, limit=_PAGE, hold=query.checkpoint)
        for row in page:
            after, read = row.seq, read + 1
            if _is_match(row, query, window):
                found.append(row)
            if len(found) > query.limit:
                shown = found[: query.limit]
                return Page(items=[audit_wire(each) for each in shown], next=cursor_of(shown[-1].seq))
        if len(page) < _PAGE:
            return Page(items=[audit_wire(each) for each in found])
    return Page(items=[audit_wire(each) for each in found], next=cursor_of(after))


def _is_match(row: AuditRow, query: ListAudit, window: tuple[int, int]) -> bool:
    since, until = window
    return (
        (not query.module or module_of(row) in query.module)
        and (not query.execution or row.run in query.execution)
        and (not query.actor or row.actor in query.actor)
        and (not query.action or row.action in query.action)
        and since <= row.at < until
    )


@routes.get("/audit/head", needs=Right.audit_read)
async def audit_head(call: ApiCall) -> AuditHead:
    """The current head of the audit."""
    store = await call.hf.open()
    seq, found = await store.audit_head(call.tenant)
    return AuditHead(tenant=call.tenant, seq=seq, hash=found.hex(), at=moment(store.now()))


@routes.post("/audit/verify", needs=Right.audit_read, raises=(InputError,))
async def verify_audit(call: ApiCall, body: VerifyAudit) -> AuditVerification:
    """Verify the chain from the first record to the head. `against`: an earlier head that you kept."""
    service = await call.holds()
    head = None
    if body.against is not None:
        head = SignedHead(tenant=call.tenant, seq=body.against.seq, hash=body.against.hash, at="")
    found = await service.verify_audit(call.tenant, against=head)
    return AuditVerification(**msgspec.structs.asdict(found), whole=found.whole)
