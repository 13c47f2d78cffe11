"""`client.skills`."""

# Written by tools/client.py from src/holdfast/client/aio/groups/skills.py. Do not change it here.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.client import models
from holdfast.client.requests import request_of
from holdfast.client.sync.group import Group, Listing


class Skills(Group):
    def list(self, *, name: str | None = None) -> Listing[models.Skill]:
        """Every version of every skill, or of one."""
        request = request_of("GET", "/v1/skills", query={"name": name})
        return self._list(request, models.Skill)

    def publish(
        self,
        name: str,
        version: str,
        *,
        instructions: str | None = None,
        tools: Sequence[models.SkillTool | Mapping[str, Any]] | None = None,
        description: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> models.Skill:
        """A version, for good: the same content again is no change, other content is refused."""
        request = request_of(
            "PUT",
            "/v1/skills/{name}/{version}",
            {"name": name, "version": version},
            maybe={"instructions": instructions, "tools": tools, "description": description, "data": data},
        )
        return self._json(request, models.Skill)

    def restore(self, name: str, version: str) -> models.Skill:
        """Undo a yank."""
        request = request_of(
            "POST", "/v1/skills/{name}/{version}/restore", {"name": name, "version": version}
        )
        return self._json(request, models.Skill)

    def yank(self, name: str, version: str, *, reason: str | None = None) -> models.Skill:
        """No new run gets it; runs that are pinned to it keep it."""
        request = request_of(
            "POST",
            "/v1/skills/{name}/{version}/yank",
            {"name": name, "version": version},
            maybe={"reason": reason},
        )
        return self._json(request, models.Skill)
