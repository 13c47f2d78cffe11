"""The registry of skills: published once, found by name and range, yanked but never deleted (2.8)."""

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
CONTENT = "skill_content"
"""The content that runs are pinned to, by its digest: a run has it when the version is lost or changed."""
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
        """Publish a version; it cannot be changed. Publishing the same content again changes nothing;
        different content under an existing version raises SkillPublishedError."""
        fields = {
            "name": check_name(name),
            "version": version_ranges.parse_version(version),
            "instructions": require_text(instructions, f"the instructions of skill {name!r}"),
            "tools": tuple(_tool_of(each, name) for each in _listed(tools, name)),
            "description": require_text(description, f"the description of skill {name!r}"),
            "data": dict(data or {}),
        }
        return await self._keep(_made(fields, by, self.store.now()), tenant)

    async def _keep(self, skill: Skill, tenant: str) -> Skill:
        body = msgspec.json.encode(skill)
        if len(body) > MAX_BYTES:
            raise InputError(
                f"skill {skill.name}@{skill.version} has {len(body):,} bytes; the maximum is {MAX_BYTES:,}.",
                hint="Move large content elsewhere and refer to it in the instructions.",
            )
        name = f"{skill.name}@{skill.version}"
        new = Document(tenant=tenant, kind=KIND, name=name, body=body)
        if await self.store.put_document(new, expect=0) is not None:
            return skill
        known = await self.get(skill.name, skill.version, tenant=tenant)
        if known.digest == skill.digest:
            return known
        raise SkillPublishedError(
            f"skill {name} is published already, with different content.",
            hint="A version never changes: publish the next one.",
            skill=skill.name,
            version=skill.version,
        )

    async def get(self, name: str, version: str, *, tenant: str = DEFAULT_TENANT) -> Skill:
        """This exact version, yanked or not. Raises SkillNotFoundError."""
        found = await self.find(name, version, tenant=tenant)
        if found is None:
            raise await self._unknown(name, version, tenant)
        return found

    async def find(self, name: str, version: str, *, tenant: str = DEFAULT_TENANT) -> Skill | None:
        found = await self.store.document(tenant, KIND, f"{name}@{version}")
        return None if found is None else msgspec.json.decode(found.body, type=Skill)

    async def list(self, name: str | None = None, *, tenant: str = DEFAULT_TENANT) -> list[Skill]:
        """By name, then from the oldest version to the newest, including yanked ones."""
        prefix = "" if name is None else f"{name}@"
        found: list[Skill] = []
        after = ""
        while page := await self.store.documents(tenant, KIND, prefix=prefix, after=after, limit=500):
            found += [msgspec.json.decode(each.body, type=Skill) for each in page]
            after = page[-1].name
        return sorted(found, key=lambda skill: (skill.name, version_ranges.order_of(skill.version)))

    async def resolve(self, name: str, versions: str = "", *, tenant: str = DEFAULT_TENANT) -> Skill:
        """The newest version in the range that is not yanked. Raises SkillNotFoundError."""
        version_ranges.check_range(versions)
        known = {skill.version: skill for skill in await self.list(name, tenant=tenant)}
        chosen = version_ranges.newest(
            versions, [each.version for each in known.values() if not each.is_yanked]
        )
        if chosen is None:
            raise await self._unknown(name, versions, tenant)
        return known[chosen]

    async def pin(self, bound: Iterable[Binding], *, tenant: str = DEFAULT_TENANT) -> list[SkillPin]:
        """The versions that a run that starts now would use to its end."""
        found = [await self.resolve(each.skill, each.versions, tenant=tenant) for each in bound]
        return [pin_of(skill) for skill in found]

    async def keep_content(self, pins: Iterable[SkillPin], *, tenant: str = DEFAULT_TENANT) -> None:
        """Before the run that is pinned to them is stored. Raises SkillNotFoundError."""
        for pin in pins:
            if await self.store.document(tenant, CONTENT, pin.digest) is None:
                body = msgspec.json.encode(await self.get(pin.id, pin.version, tenant=tenant))
                await self.store.put_document(
                    Document(tenant=tenant, kind=CONTENT, name=pin.digest, body=body), expect=0
                )

    async def find_pinned(self, pin: SkillPin, *, tenant: str = DEFAULT_TENANT) -> Skill | None:
        """The content that was pinned, also if its version was changed or lost since."""
        listed = await self.find(pin.id, pin.version, tenant=tenant)
        if listed is not None and not is_changed(pin, listed):
            return listed
        kept = await self.store.document(tenant, CONTENT, pin.digest)
        skill = None if kept is None else msgspec.json.decode(kept.body, type=Skill)
        return listed if skill is None or is_changed(pin, skill) else skill

    async def yank(
        self,
        name: str,
        version: str,
        *,
        reason: str = "",
        by: str = "user:local",
        tenant: str = DEFAULT_TENANT,
    ) -> Skill:
        """New runs do not get it; runs that are pinned to it continue with it, and log a warning."""
        text = require_text(reason, "the reason to yank a skill")
        at = self.store.now()
        return await self._mark(name, version, tenant, yanked_at=at, yanked_by=by, yanked_reason=text)

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
            f"skill {name}@{versions or 'latest'} does not exist"
            + (f"; known versions: {named}." if known else f", and no other version of {name!r} does."),
            hint="`holdfast skills list` lists them; `holdfast skills publish` adds one.",
            skill=name,
            versions=versions,
        )


def check_name(name: str) -> str:
    if not NAME.fullmatch(require_text(name, "the name of a skill")):
        raise InputError(
            f"{clean_text(repr(name), 80)} is not a valid name for a skill.",
            hint="Use lower-case letters, digits, and . _ - between them; at most 64 characters.",
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
            f"the tools of skill {name!r} must be a list, not one text.", hint=f"Write tools=[{tools!r}]."
        )
    return tools


def _tool_of(given: str | SkillTool | Mapping[str, Any], name: str) -> SkillTool:
    if isinstance(given, str):
        return SkillTool(require_text(given, f"a tool of skill {name!r}"))
    try:
        return msgspec.convert(msgspec.to_builtins(given), SkillTool)
    except (msgspec.ValidationError, TypeError) as error:
        raise InputError(
            f"a tool of skill {name!r} is not valid: {error}.",
            hint='Write its name, or {"name": ..., "description": ..., "settings": {...}}.',
        ) from error


def _made(fields: dict[str, Any], by: str, now: int) -> Skill:
    skill = Skill(**fields, published_at=now, published_by=by)
    try:
        json.dumps([skill.data, [tool.settings for tool in skill.tools]], allow_nan=False)
        return msgspec.structs.replace(skill, digest=digest_of(skill))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(f"skill {skill.name!r} has data that is not JSON: {error}.") from error


class PinnedSkills(msgspec.Struct, frozen=True):
    """The skills of a run by name; `changed`: those whose version has other content now."""

    found: dict[str, Skill]
    changed: frozenset[str]


async def load_pinned(store: Store, tenant: str, pins: Iterable[SkillPin], run: str) -> PinnedSkills:
    """What a run is pinned to. A yanked, changed or lost version is logged (SK-4, SK-5, SK-9); one whose
    content is lost too is left out."""
    registry = SkillRegistry(store)
    found: dict[str, Skill] = {}
    changed: set[str] = set()
    for pin in pins:
        listed = await registry.find(pin.id, pin.version, tenant=tenant)
        skill = await registry.find_pinned(pin, tenant=tenant)
        trouble = trouble_with(pin, listed, skill)
        if trouble:
            log.warning("skill %s of run %s %s", pin, run, trouble, extra={"run": run})
        if skill is not None:
            found[pin.id] = skill
        if listed is not None and is_changed(pin, listed):
            changed.add(pin.id)
    return PinnedSkills(found, frozenset(changed))


def trouble_with(pin: SkillPin, listed: Skill | None, skill: Skill | None) -> str:
    """A warning about the run's pin; empty if the version is unchanged. `skill`: what the run uses."""
    if skill is None:
        return "does not exist any more: using it raises an error"
    pinned = "" if is_changed(pin, skill) else ": the run uses what it was pinned to"
    if listed is None:
        return f"does not exist any more{pinned}"
    if is_changed(pin, listed):
        return f"has different content than when the run was pinned to it{pinned}"
    if listed.is_yanked:
        return "was yanked" + (f": {listed.yanked_reason}" if listed.yanked_reason else "")
    return ""
