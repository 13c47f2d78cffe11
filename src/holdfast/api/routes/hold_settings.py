"""Settings of holds: calendars and policies."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from holdfast.api.auth.rights import Right
from holdfast.api.masked_values import require_unmasked
from holdfast.api.pagination import Page
from holdfast.api.routing import ApiCall, Routes
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
from holdfast.holds.policies.stored import delete_policy as _delete_policy
from holdfast.holds.policies.stored import put_policy as _put_policy
from holdfast.holds.timing.reschedule import change_calendar
from holdfast.holds.timing.stored_calendars import KIND as CALENDAR
from holdfast.types.clock import require_moment

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
async def delete_policy(call: ApiCall, name: str) -> None:
    """Delete it: its rules apply to no hold that opens from now on; open holds keep what they said.

    The people who delete a rule that needs several people, or excludes some, cannot decide what it would have
    bound, until another person deletes it again and so confirms it. A change of such a rule has the same
    effect."""
    await _delete_policy(await call.hf.open(), call.tenant, name, by=call.actor.id, people=call.actor.people)


@routes.post("/policies/simulate", needs=Right.manage, raises=(PolicyInvalidError,))
async def simulate_policies(call: ApiCall, body: SimulatePolicies) -> Simulation:
    """Replay past decisions under these rules. Nothing is changed, and no judge is called."""
    if body.policy is not None:
        policies = [policy_of(body.policy)]
    else:
        policies = [
            policy_of(each.rules, each.name, written=False) for each in await _documents(call, POLICY)
        ]
    return await _simulate(
        await call.hf.open(),
        policies,
        tenant=call.tenant,
        since=None if body.since is None else require_moment(body.since, "since"),
        flows=tuple(body.flows),
        limit=body.limit,
        guardrails=(await call.hf.holds()).ctx.guardrails,
    )
