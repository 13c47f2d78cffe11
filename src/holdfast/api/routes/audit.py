"""The audit of a tenant: read, and checked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec

from holdfast.api.auth.rights import Right
from holdfast.api.pagination import Cursor, Limit, Page, cursor_of, place_of
from holdfast.api.routing import ApiCall, Routes
from holdfast.api.schemas.audit import AuditWire, audit_wire, module_of
from holdfast.api.schemas.common import moment
from holdfast.api.schemas.hold_query import Instant, Words
from holdfast.errors import InputError
from holdfast.holds.queries.audit import SignedHead
from holdfast.holds.queries.audit_text import AuditedHold, audit_sentence, questions_of
from holdfast.types.audit import AuditRow
from holdfast.types.clock import END_OF_TIME, START_OF_TIME, require_moment

routes = Routes("audit")

_PAGE = 1000
MOST_READ = 20 * _PAGE
"""Records that one request scans; `next` continues from there."""
AuditSeq = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


Part = Annotated[str, msgspec.Meta(max_length=200)]


class ListAudit(msgspec.Struct, kw_only=True):
    """AND across the fields, OR within each. `module`: scaicore (holds and runs) or holdfast (the server).
    `actor_part`, `action_part`: a part of the name, in any case. `text`: a part of actor, action, an id,
    the data or the sentence. `order`: by default the oldest first."""

    module: Words = []
    checkpoint: str | None = None
    execution: Words = []
    actor: Words = []
    action: Words = []
    actor_part: Part = ""
    action_part: Part = ""
    text: Part = ""
    order: Literal["oldest", "newest"] = "oldest"
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


class _Read(NamedTuple):
    """Records in the order of the list. `place`: the record that was read last, also where none was found."""

    rows: list[AuditRow]
    place: int
    is_last: bool


@routes.get("/audit", needs=Right.audit_read)
async def list_audit(call: ApiCall, query: ListAudit) -> Page[AuditWire]:
    """Actions and refusals, the oldest first unless `order` is `newest`. A page may be short and still have a
    `next`."""
    is_match = _matcher(query)
    place = place_of(call.hf.cell, query.cursor, tuple[AuditSeq])
    reads = (_newest if query.order == "newest" else _oldest)(
        call, query, None if place is None else place[0]
    )
    read, found = 0, list[AuditRow]()
    async for page in reads:
        questions = await _questions(call, page.rows) if query.text else dict[str, AuditedHold]()
        for row in page.rows:
            if is_match(row, questions):
                found.append(row)
            if len(found) > query.limit:
                shown = found[: query.limit]
                return await _page_of(call, shown, cursor_of(call.hf.cell, shown[-1].seq))
        read += _PAGE
        if read >= MOST_READ and not page.is_last:
            return await _page_of(call, found, cursor_of(call.hf.cell, page.place))
    return await _page_of(call, found, None)


async def _page_of(call: ApiCall, rows: Sequence[AuditRow], following: str | None) -> Page[AuditWire]:
    questions = await _questions(call, rows)
    return Page(items=[audit_wire(each, questions) for each in rows], next=following)


async def _questions(call: ApiCall, rows: Sequence[AuditRow]) -> Mapping[str, AuditedHold]:
    """The right to read the audit is not the right to read what is asked."""
    if not call.who.may(Right.view):
        return {}
    return await questions_of(await call.hf.open(), call.tenant, rows)


async def _oldest(call: ApiCall, query: ListAudit, after: int | None) -> AsyncIterator[_Read]:
    store, place, is_last = await call.hf.open(), after or 0, False
    while not is_last:
        rows = await store.audit(call.tenant, after=place, limit=_PAGE, hold=query.checkpoint)
        place, is_last = rows[-1].seq if rows else place, len(rows) < _PAGE
        yield _Read(rows, place, is_last)


async def _newest(call: ApiCall, query: ListAudit, before: int | None) -> AsyncIterator[_Read]:
    """The numbers of a chain have no gaps, so the records before one are found by their numbers."""
    store = await call.hf.open()
    upper = (await store.audit_head(call.tenant))[0] if before is None else before - 1
    while upper > 0:
        lower = max(0, upper - _PAGE)
        rows = await store.audit(call.tenant, after=lower, limit=_PAGE, hold=query.checkpoint)
        yield _Read([row for row in reversed(rows) if row.seq <= upper], lower + 1, lower == 0)
        upper = lower


def _matcher(query: ListAudit) -> Callable[[AuditRow, Mapping[str, AuditedHold]], bool]:
    since = START_OF_TIME if query.since is None else require_moment(query.since, "since")
    until = END_OF_TIME if query.until is None else require_moment(query.until, "until")
    actor, action, text = (part.casefold() for part in (query.actor_part, query.action_part, query.text))

    def is_match(row: AuditRow, questions: Mapping[str, AuditedHold]) -> bool:
        return (
            (not query.module or module_of(row) in query.module)
            and (not query.execution or row.run in query.execution)
            and (not query.actor or row.actor in query.actor)
            and (not query.action or row.action in query.action)
            and since <= row.at < until
            and actor in row.actor.casefold()
            and action in row.action.casefold()
            and (not text or text in _words(row, questions))
        )

    return is_match


def _words(row: AuditRow, questions: Mapping[str, AuditedHold]) -> str:
    """What a search for a text reads."""
    data = row.data.decode(errors="replace")
    named = (row.actor, row.action, row.hold or "", row.run or "", data, audit_sentence(row, questions))
    return "\n".join(named).casefold()


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
