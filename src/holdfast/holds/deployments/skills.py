"""The registry of skills: published once, found by name and range, yanked but never lost (2.8)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from holdfast.errors import InputError, SkillNotFoundError, SkillPublishedError
from holdfast.holds.deployments import version_ranges
from holdfast.store.protocols import Store
from holdfast.telemetry import log
from holdfast.types.deployment import Binding
from holdfast.types.document import Document
from holdfast.types.ids import DEFAULT_TENANT
from holdfast.types.skill import Skill, SkillPin, SkillTool, digest_of, is_changed, pin_of
from holdfast.types.text import clean_text, require_text

KIND = "skill"
MAX_BYTES = 1 << 20
NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")

Tools = Sequence[str | SkillTool | Mapping[str, Any]]


class SkillRegistry:
    """Skills of one store; each belongs to a tenant."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def publish(
        self,
        name: str,
        version: str,
        *,
        instructions: str = "",
        tools: Tools = (),
        description: str = "",
        data: Mapping[str, Any] | None = None,
        by: str = "user:local",
        tenant: str = DEFAULT_TENANT,
    ) -> Skill:
        """A new version, for good. The same content again is no change; other content under a version that
        exists raises SkillPublishedError."""
        said = {
            "name": check_name(name),
            "version": version_ranges.parse_version(version),
            "instructions": require_text(instructions, f"the instructions of skill {name!r}"),
            "tools": tuple(_tool_of(each, name) for each in _listed(tools, name)),
            "description": require_text(description, f"the description of skill {name!r}"),
            "data": dict(data or {}),
        }
        return await self._keep(_made(said, by, self.store.now()), tenant)

    async def _keep(self, skill: Skill, tenant: str) -> Skill:
        body = msgspec.json.encode(skill)
        if len(body) > MAX_BYTES:
            raise InputError(
                f"skill {skill.name}@{skill.version} takes {len(body):,} bytes; {MAX_BYTES:,} is the most.",
                hint="Let its instructions name where the rest is.",
            )
        name = f"{skill.name}@{skill.version}"
        new = Document(tenant=tenant, kind=KIND, name=name, body=body)
        if await self.store.put_document(new, expect=0) is not None:
            return skill
        known = await self.get(skill.name, skill.version, tenant=tenant)
        if known.digest == skill.digest:
            return known
        raise SkillPublishedError(
            f"skill {name} is published already, with other content.",
            hint="A version never changes: publish the next one.",
            skill=skill.name,
            version=skill.version,
        )

    async def get(self, name: str, version: str, *, tenant: str = DEFAULT_TENANT) -> Skill:
        """That very version, yanked or not. Raises SkillNotFoundError."""
        found = await self.find(name, version, tenant=tenant)
        if found is None:
            raise await self._unknown(name, version, tenant)
        return found

    async def find(self, name: str, version: str, *, tenant: str = DEFAULT_TENANT) -> Skill | None:
        found = await self.store.document(tenant, KIND, f"{name}@{version}")
        return None if found is None else msgspec.json.decode(found.body, type=Skill)

    async def list(self, name: str | None = None, *, tenant: str = DEFAULT_TENANT) -> list[Skill]:
        """By name, then from the oldest version to the newest, with those that were yanked."""
        prefix = "" if name is None else f"{name}@"
        found: list[Skill] = []
        after = ""
        while page := await self.store.documents(tenant, KIND, prefix=prefix, after=after, limit=500):
            found += [msgspec.json.decode(each.body, type=Skill) for each in page]
            after = page[-1].name
        return sorted(found, key=lambda skill: (skill.name, version_ranges.order_of(skill.version)))

    async def resolve(self, name: str, versions: str = "", *, tenant: str = DEFAULT_TENANT) -> Skill:
        """The newest version that fits and was not yanked. Raises SkillNotFoundError."""
        version_ranges.check_range(versions)
        known = {skill.version: skill for skill in await self.list(name, tenant=tenant)}
        chosen = version_ranges.newest(
            versions, [each.version for each in known.values() if not each.is_yanked]
        )
        if chosen is None:
            raise await self._unknown(name, versions, tenant)
        return known[chosen]

    async def pin(self, bound: Iterable[Binding], *, tenant: str = DEFAULT_TENANT) -> list[SkillPin]:
        """What a run that starts now works with, to its end."""
        found = [await self.resolve(each.skill, each.versions, tenant=tenant) for each in bound]
        return [pin_of(skill) for skill in found]

    async def yank(
        self,
        name: str,
        version: str,
        *,
        reason: str = "",
        by: str = "user:local",
        tenant: str = DEFAULT_TENANT,
    ) -> Skill:
        """No new run gets it; runs that are pinned to it go on with it, and are warned."""
        said = require_text(reason, "the reason to yank a skill")
        at = self.store.now()
        return await self._mark(name, version, tenant, yanked_at=at, yanked_by=by, yanked_reason=said)

    async def restore(self, name: str, version: str, *, tenant: str = DEFAULT_TENANT) -> Skill:
        """Undo a yank."""
        return await self._mark(name, version, tenant, yanked_at=None, yanked_by="", yanked_reason="")

    async def _mark(self, name: str, version: str, tenant: str, **marks: Any) -> Skill:
        while True:
            found = await self.store.document(tenant, KIND, f"{name}@{version}")
            if found is None:
                raise await self._unknown(name, version, tenant)
            marked = msgspec.structs.replace(msgspec.json.decode(found.body, type=Skill), **marks)
            changed = msgspec.structs.replace(found, body=msgspec.json.encode(marked))
            if await self.store.put_document(changed, expect=found.revision) is not None:
                return marked

    async def _unknown(self, name: str, versions: str, tenant: str) -> SkillNotFoundError:
        known = await self.list(name, tenant=tenant)
        named = ", ".join(f"{s.version} (yanked)" if s.is_yanked else s.version for s in known[-8:])
        return SkillNotFoundError(
            f"there is no skill {name}@{versions or 'latest'}"
            + (f"; there are: {named}." if known else f", nor any other version of {name!r}."),
            hint="`holdfast skills list` shows them; `holdfast skills publish` adds one.",
            skill=name,
            versions=versions,
        )


def check_name(name: str) -> str:
    if not NAME.fullmatch(require_text(name, "the name of a skill")):
        raise InputError(
            f"a skill cannot be called {clean_text(repr(name), 80)}.",
            hint="Small letters, digits, and . _ - between them, 64 at most.",
        )
    return name


def parse_binding(text: str | Binding) -> Binding:
    """`refunds`, `refunds@^1.2`. Raises InputError."""
    if isinstance(text, Binding):
        name, versions = text.skill, text.versions
    else:
        name, _, versions = require_text(text, "a skill to bind").partition("@")
    return Binding(check_name(name.strip()), version_ranges.check_range(versions.strip()))


def _listed(tools: Any, name: str) -> Tools:
    if isinstance(tools, str):
        raise InputError(
            f"the tools of skill {name!r} are a list, not one text.", hint=f"Write tools=[{tools!r}]."
        )
    return tools


def _tool_of(given: str | SkillTool | Mapping[str, Any], name: str) -> SkillTool:
    if isinstance(given, str):
        return SkillTool(require_text(given, f"a tool of skill {name!r}"))
    try:
        return msgspec.convert(msgspec.to_builtins(given), SkillTool)
    except (msgspec.ValidationError, TypeError) as error:
        raise InputError(
            f"a tool of skill {name!r} cannot be read: {error}.",
            hint='Write its name, or {"name": ..., "description": ..., "settings": {...}}.',
        ) from error


def _made(said: dict[str, Any], by: str, now: int) -> Skill:
    skill = Skill(**said, published_at=now, published_by=by)
    try:
        json.dumps([skill.data, [tool.settings for tool in skill.tools]], allow_nan=False)
        return msgspec.structs.replace(skill, digest=digest_of(skill))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(f"skill {skill.name!r} holds what is no JSON: {error}.") from error


async def load_pinned(store: Store, tenant: str, pins: Iterable[SkillPin], run: str) -> dict[str, Skill]:
    """The versions that a run is pinned to, as they are now. What is not as it was is logged (SK-4, SK-5,
    SK-9); a version that is gone is left out."""
    registry = SkillRegistry(store)
    found: dict[str, Skill] = {}
    for pin in pins:
        skill = await registry.find(pin.id, pin.version, tenant=tenant)
        trouble = trouble_with(pin, skill)
        if trouble:
            log.warning("skill %s of run %s %s", pin, run, trouble, extra={"run": run})
        if skill is not None:
            found[pin.id] = skill
    return found


def trouble_with(pin: SkillPin, skill: Skill | None) -> str:
    """What whoever keeps the run should know of its pin; empty where all is as it was."""
    if skill is None:
        return "is gone: whoever calls for it is told so"
    if is_changed(pin, skill):
        return "has another content than when the run was pinned to it"
    if skill.is_yanked:
        return "was yanked" + (f": {skill.yanked_reason}" if skill.yanked_reason else "")
    return ""
