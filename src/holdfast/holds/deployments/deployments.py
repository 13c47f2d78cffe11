"""Deployments of a store: create, find, delegate to a person, and revoke."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from holdfast.errors import DeploymentNotFoundError, InputError
from holdfast.holds.deployments.defaults import check_defaults
from holdfast.holds.deployments.skills import SkillRegistry, parse_binding
from holdfast.holds.permissions.assignees import parse_assignee, person_key
from holdfast.store.protocols import Store
from holdfast.types.audit import NewAudit, canonical
from holdfast.types.clock import micros, require_moment
from holdfast.types.deployment import Binding, Defaults, Delegation, Deployment, Mode, deployment_id
from holdfast.types.document import Document
from holdfast.types.ids import DEFAULT_TENANT, is_id
from holdfast.types.text import clean_text, require_text

KIND = "deployment"
NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
CHANGED = ("warn", "fail")

When = datetime | timedelta | None
"""A datetime, or a timedelta from now."""


class Deployments:
    """The deployments of one store. Also finds the person that `delegated_user` stands for (AS-9)."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.skills = SkillRegistry(store)

    async def put(
        self,
        name: str,
        flow: str,
        *,
        version: str = "",
        mode: str | Mode = Mode.plain,
        skills: Iterable[str | Binding] = (),
        on_changed_skill: str = "warn",
        defaults: Defaults | None = None,
        policies: Iterable[str] = (),
        by: str = "user:local",
        made_by: tuple[str, ...] = (),
        tenant: str = DEFAULT_TENANT,
    ) -> Deployment:
        """Create it, or change its settings: started runs keep their pins, and it keeps its delegation.
        `made_by`: everybody who took part in this, where it comes through a server. Raises
        SkillNotFoundError if a skill that it binds does not exist."""
        bound = tuple(parse_binding(each) for each in skills)
        fields: dict[str, Any] = {
            "flow": require_text(flow, "the flow of a deployment"),
            "version": require_text(version, "the version of a flow"),
            "mode": Mode(_one_of(mode, tuple(Mode), "mode", name)),
            "skills": _each_once(bound, name),
            "on_changed_skill": _one_of(on_changed_skill, CHANGED, "on_changed_skill", name),
            "defaults": check_defaults(defaults or Defaults(), name),
            "policies": tuple(policies),
        }
        await self.skills.pin(bound, tenant=tenant)
        written: dict[str, Any] = {**fields, "made_by": made_by}
        found = deployment_id(tenant, check_name(name))
        new = Deployment(id=found, name=name, created_at=self.store.now(), created_by=by, **written)
        await self._audit(tenant, by, "deployed", new, **msgspec.to_builtins(fields))
        return await self._change(tenant, found, lambda old: msgspec.structs.replace(old, **written), new)

    async def get(self, ref: str, *, tenant: str = DEFAULT_TENANT) -> Deployment:
        """By name or id. Raises DeploymentNotFoundError."""
        found = await self.find(ref, tenant=tenant)
        if found is None:
            raise _unknown(ref)
        return found

    async def find(self, ref: str, *, tenant: str = DEFAULT_TENANT) -> Deployment | None:
        kept = await self.store.document(tenant, KIND, _key(ref, tenant))
        return None if kept is None else msgspec.json.decode(kept.body, type=Deployment)

    async def list(self, *, tenant: str = DEFAULT_TENANT) -> list[Deployment]:
        found: list[Deployment] = []
        after = ""
        while page := await self.store.documents(tenant, KIND, after=after, limit=500):
            found += [msgspec.json.decode(each.body, type=Deployment) for each in page]
            after = page[-1].name
        return sorted(found, key=lambda each: each.name)

    async def delegate(
        self,
        ref: str,
        to: str,
        *,
        since: When = None,
        until: When = None,
        by: str = "user:local",
        made_by: tuple[str, ...] = (),
        tenant: str = DEFAULT_TENANT,
    ) -> Deployment:
        """From now on (or `since`) it runs on behalf of `to`. Also restores a revoked delegation. `made_by`:
        everybody who took part in this, where it comes through a server."""
        person = parse_assignee(to)
        if person.type != "user":
            raise InputError(f"{clean_text(repr(to), 80)} is not a person.", hint="Write user:dana@acme.")
        start, end = self._instant(since), self._instant(until)
        if end is not None and end <= (start if start is not None else self.store.now()):
            raise InputError("the delegation would end before it starts.", hint="Give a later until=.")
        new = Delegation(to=str(person), since=start, until=end, made_by=made_by)
        found = await self.get(ref, tenant=tenant)
        await self._audit(tenant, by, "delegated", found, to=new.to, since=start, until=end)
        return await self._change(
            tenant, _key(ref, tenant), lambda old: msgspec.structs.replace(old, delegation=new)
        )

    async def revoke(self, ref: str, *, by: str = "user:local", tenant: str = DEFAULT_TENANT) -> Deployment:
        """Its holds for `delegated_user` are treated as unrouted until it is delegated again."""
        now, found = self.store.now(), await self.get(ref, tenant=tenant)
        if found.delegation is None:
            raise InputError(f"deployment {found.name!r} is not delegated.")
        await self._audit(tenant, by, "delegation_revoked", found, to=found.delegation.to)

        def revoked(old: Deployment) -> Deployment:
            if old.delegation is None or old.delegation.revoked:
                return old
            gone = msgspec.structs.replace(old.delegation, revoked=True, revoked_at=now, revoked_by=by)
            return msgspec.structs.replace(old, delegation=gone)

        return await self._change(tenant, _key(ref, tenant), revoked)

    # ------------------------------------------------------------------ lookups for assignees
    async def delegation(self, tenant: str, ref: str) -> Delegation | None:
        found = await self.find(ref, tenant=tenant)
        return None if found is None else found.delegation

    async def delegated_to(self, tenant: str, people: frozenset[str], now: int) -> frozenset[str]:
        """The deployments, by id and by name, that are delegated now to a person with one of these names."""
        found: set[str] = set()
        for each in await self.list(tenant=tenant):
            held = each.delegation
            if held is not None and held.is_active(now) and person_key(held.to) in people:
                found |= {each.id, each.name}
        return frozenset(found)

    async def astray(self, tenant: str, now: int) -> frozenset[str]:
        """The deployments, by id, whose delegation is not in force, so that `delegated_user` stands for no
        person."""
        found = await self.list(tenant=tenant)
        return frozenset(each.id for each in found if each.delegation and not each.delegation.is_active(now))

    # ------------------------------------------------------------------ storage
    async def _change(
        self,
        tenant: str,
        key: str,
        change: Callable[[Deployment], Deployment],
        new: Deployment | None = None,
    ) -> Deployment:
        while True:
            kept = await self.store.document(tenant, KIND, key)
            if kept is None and new is None:
                raise _unknown(key)
            changed = new if kept is None else change(msgspec.json.decode(kept.body, type=Deployment))
            assert changed is not None
            body = msgspec.json.encode(changed)
            document = Document(tenant=tenant, kind=KIND, name=key, body=body)
            revision = 0 if kept is None else kept.revision
            if await self.store.put_document(document, expect=revision) is not None:
                return changed

    async def _audit(self, tenant: str, by: str, action: str, about: Deployment, **facts: Any) -> None:
        """The audit entry comes first: a change of who may decide must never be missing from it."""
        data = canonical({"deployment": about.id, "name": about.name, **facts})
        result = NewAudit(at=self.store.now(), actor=by, action=action, data=data)
        await self.store.append_audit(tenant, [result])

    def _instant(self, when: When) -> int | None:
        if when is None:
            return None
        if isinstance(when, timedelta):
            return self.store.now() + micros(when)
        if when.tzinfo is None:
            raise InputError("the datetime has no time zone.", hint="Give datetime(..., tzinfo=UTC).")
        return require_moment(when, "the datetime")


def check_name(name: str) -> str:
    if not NAME.fullmatch(require_text(name, "the name of a deployment")) or is_id(name):
        raise InputError(
            f"{clean_text(repr(name), 80)} is not a valid name for a deployment.",
            hint="Use lower-case letters, digits, and . _ - between them; at most 64 characters.",
        )
    return name


def _key(ref: str, tenant: str) -> str:
    text = require_text(ref, "a deployment")
    return text if is_id(text) else deployment_id(tenant, text)


def _unknown(ref: str) -> DeploymentNotFoundError:
    return DeploymentNotFoundError(
        f"there is no deployment {clean_text(repr(ref), 80)}.",
        hint="`holdfast deployments list` lists them.",
        deployment=ref,
    )


def _one_of(given: str, known: tuple[str, ...], what: str, name: str) -> str:
    if given not in known:
        raise InputError(
            f"deployment {name!r}: {what} {clean_text(repr(given), 80)} is not one of {', '.join(known)}."
        )
    return given


def _each_once(bound: tuple[Binding, ...], name: str) -> tuple[Binding, ...]:
    names = [each.skill for each in bound]
    twice = sorted({each for each in names if names.count(each) > 1})
    if twice:
        raise InputError(f"deployment {name!r} binds {', '.join(twice)} twice.", hint="Bind each skill once.")
    return bound
