"""The skills that a run is pinned to: chosen when it starts, in its first record, shown with each hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.types.skill import RESOLVED_SKILLS, SkillPin
from holdfast.types.value import FrozenDict, FrozenList


def kept_pins(pins: Sequence[SkillPin]) -> list[dict[str, str]]:
    """As stored in the run's first record."""
    return [{"id": pin.id, "version": pin.version, "digest": pin.digest} for pin in pins]


def pins_of(kept: Sequence[Mapping[str, str]]) -> list[SkillPin]:
    return [SkillPin(pin["id"], pin["version"], pin["digest"]) for pin in kept]


def with_pins(context: dict[str, Any], kept: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """The context that a hold shows: with the run's pins under their reserved key, which a program cannot
    set (SK-2)."""
    if not kept and RESOLVED_SKILLS not in context:
        return context
    found = {name: value for name, value in context.items() if name != RESOLVED_SKILLS}
    if kept:
        found[RESOLVED_SKILLS] = FrozenList([FrozenDict(pin) for pin in kept])
    return found
