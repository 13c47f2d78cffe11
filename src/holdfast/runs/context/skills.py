"""What `ctx.skills` is: the skills that a run is pinned to, as they were when it started (2.8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.errors import SkillChangedError, SkillNotFoundError
from holdfast.types.skill import Skill, SkillPin


class RunSkills:
    """By name: `ctx.skills["refunds"].instructions`. `in` says whether a skill is bound; reading one whose
    content is lost, or that has changed if that matters, raises an error."""

    def __init__(
        self,
        pins: Sequence[SkillPin] = (),
        found: dict[str, Skill] | None = None,
        *,
        refused: frozenset[str] = frozenset(),
    ) -> None:
        self.pins = {pin.id: pin for pin in pins}
        self._found = found or {}
        self._refused = refused

    def __getitem__(self, name: str) -> Skill:
        pin = self.pins.get(name)
        if pin is None:
            bound = ", ".join(self.pins) or "none"
            raise SkillNotFoundError(
                f"no skill {name!r} is bound to this run; bound are: {bound}.",
                hint="Bind it to the deployment that the run is started with.",
                skill=name,
            )
        skill = self._found.get(name)
        if skill is None:
            raise SkillNotFoundError(
                f"skill {pin}, which this run is pinned to, does not exist any more.",
                hint="Publish that version again with the same content, and resume the run.",
                skill=name,
                version=pin.version,
            )
        if name in self._refused:
            raise SkillChangedError(
                f"skill {pin} has changed since this run was pinned to it.",
                hint="Put the content back; or let the deployment only warn (on_changed_skill='warn').",
                skill=name,
                version=pin.version,
            )
        return skill

    def __contains__(self, name: object) -> bool:
        return name in self.pins

    def __iter__(self) -> Iterator[str]:
        return iter(self.pins)

    def __len__(self) -> int:
        return len(self.pins)

    def is_gone(self, name: str) -> bool:
        """Whether it is bound, and its version does not exist any more."""
        return name in self.pins and name not in self._found
