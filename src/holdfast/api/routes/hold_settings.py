"""Settings of holds: calendars and policies; and undelivered notifications."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from holdfast.api.auth.rights import Right
from holdfast.api.masked_values import require_unmasked
from holdfast.api.pagination import Cursor, Limit, Page, cursor_of, decode_cursor
from holdfast.api.routing import ApiCall, Routes
from holdfast.api.schemas.common import moment
from holdfast.api.schemas.hold_query import Instant
from holdfast.errors import (
    DocumentChangedError,
    InputError,
    NotFoundError,
    PolicyInvalidError,
    SettingsError,
)
from holdfast.holds.policies.parse import policy_of
from holdfast.holds.policies.simulate import Simulation
from holdfast.holds.policies.simulate import simulate as _simulate
from holdfast.holds.policies.stored import KIND as POLICY
from holdfast.holds.policies.stored import drop_policy as _drop_policy
from holdfast.holds.policies.stored import put_policy as _put_policy
from holdfast.holds.timing.reschedule import change_calendar
from holdfast.holds.timing.stored_calendars import KIND as CALENDAR
from holdfast.types.clock import require_moment
from holdfast.types.outbox import OutboxRow, OutboxState

routes = Routes("arrangements")

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Rules = dict[str, Any]


class HoldSetting(msgspec.Struct, kw_only=True):
    """The text of a calendar or policy."""

    name: str
    rules: Any
    version: int


# ---------------------------------------------------------------------- calendars


@routes.get("/calendars", needs=Right.holds_read)
async def list_calendars(call: ApiCall) -> Page[HoldSetting]:
    """Business calendars; holds that name none use `default`."""
    return Page(items=await _documents(call, CALENDAR))


async def _documents(call: ApiCall, kind: str) -> list[HoldSetting]:
    found = await (await call.hf.open()).documents(call.tenant, kind)
    return [
        HoldSetting(name=each.name, rules=msgspec.json.decode(each.body), version=each.revision)
        for each in found
    ]


async def _require_unmasked(call: ApiCall, kind: str, name: str, body: Rules) -> None:
    known = await (await call.hf.open()).document(call.tenant, kind, name)
    require_unmasked(body, None if known is None else msgspec.json.decode(known.body))


@routes.put("/calendars/{name}", needs=Right.manage, raises=(SettingsError, DocumentChangedError, InputError))
async def put_calendar(call: ApiCall, name: str, body: Rules) -> HoldSetting:
    """Set it. Deadlines of open holds that use it are recalculated."""
    await _require_unmasked(call, CALENDAR, name, body)
    await change_calendar(await call.hf.open(), call.tenant, name, body, by=call.actor.id)
    (kept,) = [each for each in await _documents(call, CALENDAR) if each.name == name]
    return kept


# ---------------------------------------------------------------------- policies


class SimulatePolicies(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`policy`: its text; none: the stored ones. `since`: only holds opened since then."""

    policy: Rules | None = None
    since: Instant | None = None
    flows: list[Name] = []
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1000


@routes.get("/policies", needs=Right.holds_read)
async def list_policies(call: ApiCall) -> Page[HoldSetting]:
    """The stored policies, by name."""
    return Page(items=await _documents(call, POLICY))


@routes.put(
    "/policies/{name}", needs=Right.admin, raises=(PolicyInvalidError, DocumentChangedError, InputError)
)
async def put_policy(call: ApiCall, name: str, body: Rules) -> HoldSetting:
    """Store it: it applies to holds that open from now on."""
    store = await call.hf.open()
    await _require_unmasked(call, POLICY, name, body)
    kept = await _put_policy(
        store, call.tenant, {**body, "name": name}, by=call.actor.id, people=call.actor.people
    )
    return HoldSetting(name=kept.name, rules=msgspec.json.decode(kept.body), version=kept.revision)


@routes.delete("/policies/{name}", needs=Right.admin, raises=(NotFoundError,))
async def drop_policy(call: ApiCall, name: str) -> None:
    """Delete it: its rules apply to no hold that opens from now on; open holds keep what they said.

    The people who delete a rule that needs several people, or excludes some, cannot decide what it would have
    bound, until another person deletes it again and so confirms it. A change of such a rule has the same
    effect."""
    await _drop_policy(await call.hf.open(), call.tenant, name, by=call.actor.id, people=call.actor.people)


@routes.post("/policies/simulate", needs=Right.manage, raises=(PolicyInvalidError,))
async def simulate_policies(call: ApiCall, body: SimulatePolicies) -> Simulation:
    """Replay past decisions under these rules. Nothing is changed, and no judge is called."""
    if body.policy is not None:
        policies = [policy_of(body.policy)]
    else:
        policies = [policy_of(each.rules, each.name) for each in await _documents(call, POLICY)]
    return await _simulate(
        await call.hf.open(),
        policies,
        tenant=call.tenant,
        since=None if body.since is None else require_moment(body.since, "since"),
        flows=tuple(body.flows),
        limit=body.limit,
        guardrails=(await call.hf.holds()).ctx.guardrails,
    )


# ---------------------------------------------------------------------- notifications

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
    place = decode_cursor(query.cursor, tuple[int])
    found = await (await call.hf.open()).list_outbox(
        tenant=call.tenant,
        state=_STATES[query.state],
        before=_NEWEST if place is None else place[0],
        limit=query.limit + 1,
    )
    shown = found[: query.limit]
    more = cursor_of(shown[-1].id) if len(found) > len(shown) else None
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


@routes.post("/notices/dead/{message}/replay", needs=Right.manage, status=202, raises=(NotFoundError,))
async def replay_notice(call: ApiCall, message: str) -> DeadNotice:
    """Retry it, after its cause was fixed."""
    store = await call.hf.open()
    found = await store.list_outbox(tenant=call.tenant, state=OutboxState.dead, limit=10_000)
    meant = [each for each in found if str(each.id) == message]
    if not meant or not await store.replay_outbox(meant[0].id):
        raise NotFoundError(f"message {message!r} was not given up.", hint="GET /v1/notices/dead")
    return _notice(meant[0])
