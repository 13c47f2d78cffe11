"""What governs holds: calendars and policies; and notices that were given up."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from holdfast.api.auth.rights import Right
from holdfast.api.pagination import Page
from holdfast.api.routing import ApiCall, Routes
from holdfast.api.schemas.common import moment
from holdfast.api.schemas.hold_query import Instant
from holdfast.errors import (
    DocumentChangedError,
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
from holdfast.types.clock import to_micros
from holdfast.types.outbox import OutboxRow, OutboxState

routes = Routes("arrangements")

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Rules = dict[str, Any]


class HoldSetting(msgspec.Struct, kw_only=True):
    """A calendar or policy as it was written."""

    name: str
    rules: Any
    version: int


# ---------------------------------------------------------------------- calendars


@routes.get("/calendars", needs=Right.holds_read)
async def list_calendars(call: ApiCall) -> Page[HoldSetting]:
    """Those that business time is counted by; `default` is that of holds that name none."""
    return Page(items=await _documents(call, CALENDAR))


async def _documents(call: ApiCall, kind: str) -> list[HoldSetting]:
    found = await (await call.hf.open()).documents(call.tenant, kind)
    return [
        HoldSetting(name=each.name, rules=msgspec.json.decode(each.body), version=each.revision)
        for each in found
    ]


@routes.put("/calendars/{name}", needs=Right.manage, raises=(SettingsError, DocumentChangedError))
async def put_calendar(call: ApiCall, name: str, body: Rules) -> HoldSetting:
    """Write it. The deadlines of open holds that it counts are counted again."""
    await change_calendar(await call.hf.open(), call.tenant, name, body, by=call.actor.id)
    (kept,) = [each for each in await _documents(call, CALENDAR) if each.name == name]
    return kept


# ---------------------------------------------------------------------- policies


class SimulatePolicies(msgspec.Struct, kw_only=True):
    """`policy`: as it would be written; none: those in the store. `since`: of holds that opened from then."""

    policy: Rules | None = None
    since: Instant | None = None
    flows: list[Name] = []
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1000


@routes.get("/policies", needs=Right.holds_read)
async def list_policies(call: ApiCall) -> Page[HoldSetting]:
    """Those that are kept in the store, by name."""
    return Page(items=await _documents(call, POLICY))


@routes.put("/policies/{name}", needs=Right.admin, raises=(PolicyInvalidError, DocumentChangedError))
async def put_policy(call: ApiCall, name: str, body: Rules) -> HoldSetting:
    """Write it: it counts for holds that open from now on."""
    store = await call.hf.open()
    kept = await _put_policy(store, call.tenant, {**body, "name": name}, by=call.actor.id)
    return HoldSetting(name=kept.name, rules=msgspec.json.decode(kept.body), version=kept.revision)


@routes.delete("/policies/{name}", needs=Right.admin, raises=(NotFoundError,))
async def drop_policy(call: ApiCall, name: str) -> None:
    """Its rules match nothing more."""
    await _drop_policy(await call.hf.open(), call.tenant, name, by=call.actor.id)


@routes.post("/policies/simulate", needs=Right.manage, raises=(PolicyInvalidError,))
async def simulate_policies(call: ApiCall, body: SimulatePolicies) -> Simulation:
    """What past decisions would have been under these rules. Nothing is written, no judge is asked."""
    if body.policy is not None:
        policies = [policy_of(body.policy)]
    else:
        policies = [policy_of(each.rules, each.name) for each in await _documents(call, POLICY)]
    return await _simulate(
        await call.hf.open(),
        policies,
        tenant=call.tenant,
        since=None if body.since is None else to_micros(body.since),
        flows=tuple(body.flows),
        limit=body.limit,
    )


# ---------------------------------------------------------------------- notices that were given up


class DeadNotice(msgspec.Struct, kw_only=True):
    id: int
    at: str | None
    topic: str
    hold_id: str | None
    attempts: int
    error: str | None


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
    """Messages to people that were given up, at most 200."""
    store = await call.hf.open()
    found = await store.list_outbox(tenant=call.tenant, state=OutboxState.dead, limit=200)
    return Page(items=[_notice(each) for each in found])


@routes.post("/notices/dead/{message}/replay", needs=Right.manage, status=202, raises=(NotFoundError,))
async def replay_notice(call: ApiCall, message: str) -> DeadNotice:
    """Try it again, once its cause is fixed."""
    store = await call.hf.open()
    found = await store.list_outbox(tenant=call.tenant, state=OutboxState.dead, limit=10_000)
    meant = [each for each in found if str(each.id) == message]
    if not meant or not await store.replay_outbox(meant[0].id):
        raise NotFoundError(f"message {message!r} was not given up.", hint="GET /v1/notices/dead")
    return _notice(meant[0])
