"""Notifications: in which state they are, and failed ones sent again."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from holdfast.api.auth.rights import Right
from holdfast.api.pagination import Cursor, Limit, Page, cursor_of, place_of
from holdfast.api.routing import ApiCall, Routes
from holdfast.api.schemas.common import moment
from holdfast.errors import NotFoundError
from holdfast.holds.notify.audience import skip_reason
from holdfast.holds.notify.recipients import recipients_of
from holdfast.store.protocols import Store
from holdfast.types.ids import HoldId
from holdfast.types.outbox import OutboxRow, OutboxState

routes = Routes("arrangements")

_STATES = {
    "waiting": OutboxState.waiting,
    "sent": OutboxState.done,
    "failed": OutboxState.dead,
    "unneeded": OutboxState.skipped,
}
_WORDS = {state: word for word, state in _STATES.items()}
_NEWEST = 2**63 - 1


class DeadNotice(msgspec.Struct, kw_only=True):
    id: int
    at: str | None
    topic: str
    hold_id: str | None
    attempts: int
    error: str | None


class NoticeWire(DeadNotice, kw_only=True):
    """`due_at`: of a notification that waits, the time of its next attempt."""

    state: str
    due_at: str | None


class ListNotices(msgspec.Struct, kw_only=True):
    """`unneeded`: its hold was decided before it was sent, or it had no recipient."""

    state: Literal["waiting", "sent", "failed", "unneeded"] = "failed"
    limit: Limit = 50
    cursor: Cursor | None = None


@routes.get("/notices", needs=Right.manage)
async def list_notices(call: ApiCall, query: ListNotices) -> Page[NoticeWire]:
    """Notifications in one state, newest first."""
    place = place_of(call.hf.cell, query.cursor, tuple[int])
    found = await (await call.hf.open()).list_outbox(
        tenant=call.tenant,
        state=_STATES[query.state],
        before=_NEWEST if place is None else place[0],
        limit=query.limit + 1,
    )
    shown = found[: query.limit]
    more = cursor_of(call.hf.cell, shown[-1].id) if len(found) > len(shown) else None
    return Page(items=[_state_notice(each) for each in shown], next=more)


def _state_notice(row: OutboxRow) -> NoticeWire:
    fields = msgspec.structs.asdict(_notice(row))
    due = moment(row.due_at) if row.state is OutboxState.waiting else None
    return NoticeWire(**fields, state=_WORDS[row.state], due_at=due)


def _notice(row: OutboxRow) -> DeadNotice:
    return DeadNotice(
        id=row.id,
        at=moment(row.at),
        topic=row.topic,
        hold_id=row.hold,
        attempts=row.attempts,
        error=row.error,
    )


@routes.get("/notices/dead", needs=Right.manage)
async def list_dead_notices(call: ApiCall) -> Page[DeadNotice]:
    """Notifications that could not be delivered, at most 200."""
    store = await call.hf.open()
    found = await store.list_outbox(tenant=call.tenant, state=OutboxState.dead, limit=200)
    return Page(items=[_notice(each) for each in found])


class ReplayNotices(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`preview`: change nothing."""

    notices: Annotated[
        list[Annotated[int, msgspec.Meta(ge=0, lt=_NEWEST)]], msgspec.Meta(min_length=1, max_length=500)
    ]
    preview: bool = True


class ReplayedNotice(msgspec.Struct, kw_only=True):
    """`text`: what happens to it, or why nothing does. `sends`: false if it waits again but will not be sent,
    because its hold does not need it any more."""

    id: int
    done: bool
    sends: bool = False
    text: str


class ReplayedNotices(msgspec.Struct, kw_only=True):
    """In a preview `done` is the number of notifications that would wait again."""

    preview: bool
    done: int
    items: list[ReplayedNotice]


@routes.post("/notices/replay", needs=Right.manage)
async def replay_notices(call: ApiCall, body: ReplayNotices) -> ReplayedNotices:
    """Retry failed notifications, each separately. By default only a preview."""
    store = await call.hf.open()
    items: list[ReplayedNotice] = []
    for message in dict.fromkeys(body.notices):
        row = await _failed(store, call.tenant, message)
        if row is None or not (body.preview or await store.replay_outbox(row.id)):
            text = "There is no failed notification with this number."
            items.append(ReplayedNotice(id=message, done=False, text=text))
        else:
            items.append(await _explained(store, row))
    return ReplayedNotices(preview=body.preview, done=sum(each.done for each in items), items=items)


async def _explained(store: Store, row: OutboxRow) -> ReplayedNotice:
    hold = None if row.hold is None else await store.hold(HoldId(row.hold))
    payload: dict[str, Any] = msgspec.json.decode(row.payload)
    skipped = skip_reason(hold, row, payload, store.now())
    if skipped is not None:
        return ReplayedNotice(id=row.id, done=True, text=f"Will not be sent: {skipped}.")
    known = [each for each in await recipients_of(store, row.hold or "") if each.notice == row.key]
    have = len({(each.channel, each.to) for each in known if each.accepted})
    text = "Is sent with all its attempts."
    if have:
        text += f" {have} recipient{'s' if have > 1 else ''} that got it will not get it again."
    return ReplayedNotice(id=row.id, done=True, sends=True, text=text)


async def _failed(store: Store, tenant: str, message: int) -> OutboxRow | None:
    found = await store.list_outbox(tenant=tenant, state=OutboxState.dead, before=message + 1, limit=1)
    return found[0] if found and found[0].id == message else None


@routes.post("/notices/dead/{message}/replay", needs=Right.manage, status=202, raises=(NotFoundError,))
async def replay_notice(call: ApiCall, message: str) -> DeadNotice:
    """Retry it, after its cause was fixed."""
    store = await call.hf.open()
    is_number = message.isascii() and message.isdecimal() and len(message) < 19
    row = await _failed(store, call.tenant, int(message)) if is_number else None
    if row is None or not await store.replay_outbox(row.id):
        raise NotFoundError(f"message {message!r} was not given up.", hint="GET /v1/notices/dead lists them.")
    return _notice(row)
