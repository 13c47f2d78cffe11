"""Skills: named, versioned bundles of instructions and tools that a deployment binds and nodes use."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec

from holdfast.types.audit import canonical

RESOLVED_SKILLS = "resolved_skills"
"""The key of a hold's context that lists the pins; reserved for Holdfast."""


class SkillTool(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool that a skill provides, by its registered name. A skill never contains code.

    `description` replaces the tool's description for the model; `settings` are for the node that uses it."""

    name: str
    description: str = ""
    settings: dict[str, Any] = {}


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """One version. Once published its content never changes; it can only be yanked, and put back."""

    name: str
    version: str
    instructions: str = ""
    tools: tuple[SkillTool, ...] = ()
    description: str = ""
    data: dict[str, Any] = {}  # further data for the nodes that use it
    digest: str = ""
    published_at: int = 0
    published_by: str = ""
    yanked_at: int | None = None
    yanked_by: str = ""
    yanked_reason: str = ""

    @property
    def is_yanked(self) -> bool:
        return self.yanked_at is not None


class SkillPin(msgspec.Struct, frozen=True):
    """The exact version that a run uses; `digest` is that of its content."""

    id: str
    version: str
    digest: str

    def __str__(self) -> str:
        return f"{self.id}@{self.version}"


def digest_of(skill: Skill) -> str:
    return "sha256:" + sha256(hashed_content(skill)).hexdigest()


def hashed_content(skill: Skill) -> bytes:
    """The bytes that are hashed: what a skill does, without its publisher and date."""
    return canonical(
        (skill.name, skill.version, skill.instructions, skill.tools, skill.description, skill.data)
    )


def pin_of(skill: Skill) -> SkillPin:
    return SkillPin(skill.name, skill.version, skill.digest)


def is_changed(pin: SkillPin, skill: Skill) -> bool:
    """Compares the content itself, because a stored digest proves nothing about the content beside it."""
    return digest_of(skill) != pin.digest
