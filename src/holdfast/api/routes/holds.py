"""Holds: list, show, decide, reassign. `holds.permissions.check` decides who may do what."""

from __future__ import annotations

import msgspec

from holdfast.agents.conversation import HoldConversation, conversation_at
from holdfast.api.auth.rights import Right
from holdfast.api.pagination import Page
from holdfast.api.problems import HttpError
from holdfast.api.routing import ApiCall, ApiReply, Routes
from holdfast.api.schemas.hold_query import Filters, ListHolds, query_of
from holdfast.api.schemas.holds import (
    AnswerSchema,
    BulkAnswer,
    BulkWire,
    ClaimHold,
    Count,
    EntryWire,
    ExtendHold,
    HoldAnswer,
    HoldMetricsQuery,
    HoldWire,
    PlaceDecision,
    PreviewAnswer,
    Reason,
    ReassignHold,
    ShadowWire,
    bulk_wire,
    entry_wire,
    hold_wire,
    listed_wire,
)
from holdfast.errors import (
    AnswerInvalidError,
    CheckpointCorruptError,
    ConflictError,
    ForbiddenError,
    HoldChangedError,
    HoldNotFoundError,
    InputError,
)
from holdfast.holds.actions.comments import COMMENT_KINDS
from holdfast.holds.actions.decide import ResolveResult
from holdfast.holds.actions.submission import read_body
from holdfast.holds.queries.metrics import HoldMetrics
from holdfast.holds.queries.search import Query
from holdfast.holds.service import HoldService
from holdfast.holds.timing.stored_calendars import Calendars
from holdfast.runs.preview.preview import HoldPreview
from holdfast.types.hold import HoldRow

routes = Routes("holds")

LOOKING = (HoldNotFoundError, ForbiddenError)
CHANGING = (*LOOKING, ConflictError, HoldChangedError, InputError)
DECIDING = (*CHANGING, AnswerInvalidError)

# ---------------------------------------------------------------------- looking


@routes.get("/holds", needs=Right.holds_read, raises=(InputError, ForbiddenError))
async def list_holds(call: ApiCall, query: ListHolds) -> Page[HoldWire]:
    """Holds that you may see, with stable pages. `view=mine` is your inbox."""
    service = await call.holds()
    now = service.ctx.now()
    rows, following = await find_holds(call, query_of(query, call.actor, now), query)
    counts = await service.store.count_notes([row.id for row in rows], kinds=COMMENT_KINDS)
    listed: list[HoldWire] = []
    for row in rows:
        until = await service.snoozed_until(call.actor, row.id) if query.view == "snoozed" else None
        listed.append(listed_wire(row, now, counts.get(row.id, 0), until))
    return Page(items=listed, next=following)


async def find_holds(call: ApiCall, asked: Query, query: ListHolds) -> tuple[list[HoldRow], str | None]:
    """A page of rows, and the cursor of the next page."""
    service = await call.holds()
    page = await service.list(
        call.actor,
        view=query.view,
        where=asked.where,
        order=query.order,
        cursor=query.cursor,
        limit=query.limit,
    )
    return [row for row in page.rows if await _has(service, row, asked)], page.cursor


async def _has(service: HoldService, row: HoldRow, asked: Query) -> bool:
    """`has:comment` is checked for each row of a page, which may be shorter than its limit."""
    return not asked.has or bool(await service.store.hold_notes(row.id, kinds=asked.has))


@routes.get("/holds/count", needs=Right.holds_read, raises=(InputError, ForbiddenError))
async def count_holds(call: ApiCall, query: Filters) -> Count:
    """The number of holds in that list."""
    service = await call.holds()
    asked = query_of(query, call.actor, service.ctx.now())
    if asked.has:
        raise InputError("a filter with has: cannot be counted.", hint="List the holds.")
    return Count(count=await service.count(call.actor, view=query.view, where=asked.where))


@routes.get("/holds/metrics", needs=Right.holds_read, raises=(InputError, ForbiddenError))
async def hold_metrics(call: ApiCall, query: HoldMetricsQuery) -> HoldMetrics:
    """Metrics of the holds that you may see. Durations are seconds, rates are shares of 1."""
    service = await call.holds()
    asked = query_of(query, call.actor, service.ctx.now())
    lasting = None
    if query.calendar is not None:
        calendar = await Calendars(service.store).named(call.tenant, query.calendar)
        lasting = calendar.between
    return await service.metrics(call.actor, where=asked.where, lasting=lasting)


@routes.get("/holds/{hold}", needs=Right.holds_read, raises=LOOKING)
async def get_hold(call: ApiCall, hold: str) -> ApiReply[HoldWire]:
    """One hold. Its ETag is its version: send it as If-Match to decide on what you have seen."""
    service = await call.holds()
    row = await service.get(call.actor, hold)
    reply = hold_reply(service, row)
    reply.body.why = await service.why(call.actor, row.id)
    shadow = None if row.terms.shadow is None else await service.shadow(call.actor, row.id)
    if shadow is not None:
        reply.body.shadow = msgspec.convert(shadow, ShadowWire, from_attributes=True)
    return reply


@routes.get("/holds/{hold}/history", needs=Right.holds_read, raises=LOOKING)
async def hold_history(call: ApiCall, hold: str) -> Page[EntryWire]:
    """Its history, oldest first. Each entry has its number in the audit."""
    found = await (await call.holds()).history(call.actor, hold)
    return Page(items=[entry_wire(each) for each in found])


@routes.get("/holds/{hold}/schema", needs=Right.holds_read, raises=LOOKING)
async def hold_schema(call: ApiCall, hold: str) -> AnswerSchema:
    """The schema of an answer to it, for programs."""
    row = await (await call.holds()).get(call.actor, hold)
    return AnswerSchema(
        json_schema=None if row.schema is None else msgspec.json.decode(row.schema),
        request_hash=row.request_hash,
        decisions=None if row.options is None else [option.id for option in row.options],
    )


@routes.get("/holds/{hold}/conversation", needs=Right.holds_read, raises=(*LOOKING, CheckpointCorruptError))
async def hold_conversation(call: ApiCall, hold: str) -> HoldConversation:
    """What was said before an agent asked: its instructions, its model, its tools and their results. Empty
    if no agent asked. Secrets are masked; results of tools are not checked."""
    row = await (await call.holds()).get(call.actor, hold)
    return conversation_at((await (await call.runs()).story(row.run)).visits, row.id)


@routes.get("/holds/{hold}/consequences", needs=Right.holds_read, raises=(*LOOKING, ConflictError))
async def hold_consequences(call: ApiCall, hold: str) -> HoldPreview:
    """What each option would lead to, with the values that its form proposes: the run is continued in memory
    up to the next questions and outside effects. Nothing is done outside, and nothing is stored."""
    row = await (await call.holds()).get(call.actor, hold)
    return await (await call.runs()).preview(row)


@routes.post(
    "/holds/{hold}/consequences", needs=Right.holds_read, raises=(*LOOKING, ConflictError, InputError)
)
async def preview_hold(call: ApiCall, hold: str, body: PreviewAnswer) -> HoldPreview:
    """The same for one option, or with values that were filled in."""
    row = await (await call.holds()).get(call.actor, hold)
    return await (await call.runs()).preview(row, decision=body.decision, data=body.response_data)


# ---------------------------------------------------------------------- deciding


@routes.post("/holds/{hold}/resolve", needs=Right.holds_write, guarded=True, keyed=True, raises=DECIDING)
async def resolve_hold(call: ApiCall, hold: str, body: HoldAnswer) -> ApiReply[HoldWire]:
    """Decide it, once; if several people must agree, vote.

    `Idempotency-Key`: a repeated request gets the same answer. `If-Match`: only the version that you read.
    409 names who decided before; 422 names each invalid field, and the hold stays open."""
    return _decided(await call.holds(), await resolve_row(call, hold, body))


@routes.post("/holds/{hold}/vote", needs=Right.holds_write, guarded=True, keyed=True, raises=DECIDING)
async def vote_on_hold(call: ApiCall, hold: str, body: HoldAnswer) -> ApiReply[HoldWire]:
    """The same as resolve, for holds on which several people must agree."""
    return _decided(await call.holds(), await resolve_row(call, hold, body))


async def resolve_row(call: ApiCall, hold: str, body: HoldAnswer) -> ResolveResult:
    service = await call.holds()
    return await service.resolve(
        call.actor,
        hold,
        body.body(),
        if_match=if_match(call),
        idempotency_key=call.key,
        reason=body.reason,
    )


@routes.post("/holds/{hold}/place", needs=Right.holds_write, guarded=True, keyed=True, raises=DECIDING)
async def place_decision(call: ApiCall, hold: str, body: PlaceDecision) -> ApiReply[HoldWire]:
    """Decide it after a few seconds, unless you undo the decision before."""
    service = await call.holds()
    done = await service.place(
        call.actor,
        hold,
        body.body(),
        seconds=body.seconds,
        if_match=if_match(call),
        idempotency_key=call.key,
        reason=body.reason,
    )
    return _decided(service, done)


@routes.post("/holds/{hold}/undo", needs=Right.holds_write, raises=CHANGING)
async def undo_decision(call: ApiCall, hold: str) -> ApiReply[HoldWire]:
    """Undo your placed decision."""
    service = await call.holds()
    return hold_reply(service, await service.undo(call.actor, hold))


@routes.post("/holds/bulk", needs=Right.holds_write, raises=(InputError, AnswerInvalidError))
async def decide_many(call: ApiCall, body: BulkAnswer) -> BulkWire:
    """Apply one decision to many holds, each separately. By default only a preview."""
    answer = {"decision": body.decision, **({"comment": body.comment} if body.comment is not None else {})}
    read_body(answer)
    service = await call.holds()
    found = await service.bulk(
        call.actor,
        body.holds,
        answer,
        preview=body.preview,
        undo=body.undo,
        versions=body.versions or None,
    )
    return bulk_wire(found)


@routes.post("/holds/{hold}/cancel", needs=Right.holds_write, guarded=True, raises=CHANGING)
async def cancel_hold(call: ApiCall, hold: str, body: Reason) -> ApiReply[HoldWire]:
    """Withdraw it without a decision."""
    return hold_reply(await call.holds(), await cancel_row(call, hold, body))


async def cancel_row(call: ApiCall, hold: str, body: Reason) -> HoldRow:
    service = await call.holds()
    options = {} if body.reason is None else {"reason": body.reason}
    return await service.cancel(call.actor, hold, if_match=if_match(call), **options)


# ---------------------------------------------------------------------- assignee and deadline


@routes.post("/holds/{hold}/reassign", needs=Right.holds_write, guarded=True, raises=CHANGING)
async def reassign_hold(call: ApiCall, hold: str, body: ReassignHold) -> ApiReply[HoldWire]:
    """Reassign it; the new assignee is notified. Older links become invalid."""
    return hold_reply(await call.holds(), await reassign_row(call, hold, body))


async def reassign_row(call: ApiCall, hold: str, body: ReassignHold) -> HoldRow:
    service = await call.holds()
    return await service.reassign(
        call.actor,
        hold,
        body.assignee,
        expires_at=body.expires_at,
        reason=body.reason,
        if_match=if_match(call),
    )


@routes.post("/holds/{hold}/extend", needs=Right.holds_write, guarded=True, raises=CHANGING)
async def extend_hold(call: ApiCall, hold: str, body: ExtendHold) -> ApiReply[HoldWire]:
    """Extend its deadline."""
    service = await call.holds()
    row = await service.extend(call.actor, hold, body.expires_at, reason=body.reason, if_match=if_match(call))
    return hold_reply(service, row)


@routes.post("/holds/{hold}/claim", needs=Right.holds_write, raises=CHANGING)
async def claim_hold(call: ApiCall, hold: str, body: ClaimHold) -> ApiReply[HoldWire]:
    """Claim it for a while; an unassigned one becomes yours."""
    service = await call.holds()
    return hold_reply(
        service, await service.claim(call.actor, hold, seconds=body.seconds, reason=body.reason)
    )


@routes.post("/holds/{hold}/release", needs=Right.holds_write, raises=CHANGING)
async def release_hold(call: ApiCall, hold: str) -> ApiReply[HoldWire]:
    """Release a claim."""
    service = await call.holds()
    return hold_reply(service, await service.release(call.actor, hold))


# ---------------------------------------------------------------------- replies


def hold_reply(service: HoldService, row: HoldRow) -> ApiReply[HoldWire]:
    return ApiReply(body=hold_wire(row, service.ctx.now()), etag=str(row.version))


def _decided(service: HoldService, done: ResolveResult) -> ApiReply[HoldWire]:
    body = hold_wire(done.row, service.ctx.now(), replay=done.replay)
    return ApiReply(body=body, etag=str(done.row.version))


def if_match(call: ApiCall) -> int | None:
    """The version that the caller read. Raises HttpError for an invalid ETag."""
    given = call.request.headers.get("if-match")
    if given is None or given.strip() == "*":
        return None
    tag = given.strip().removeprefix("W/").strip('"')
    if not (tag.isascii() and tag.isdecimal()) or len(tag) > 15:
        raise HttpError(
            412,
            "If-Match is not a version of this hold.",
            code="version_stale",
            hint='Get it again, and send its ETag, such as "7".',
        )
    return int(tag)
