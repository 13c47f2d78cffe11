"""The desk's step that finds whom a hold goes to, and notes what its run's starter belongs to as it opens."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.errors import DirectoryUnavailableError
from holdfast.holds.assigning import DELEGATED, UNROUTED, parse_assignee, route
from holdfast.holds.directory.base import Delegations, Directory
from holdfast.holds.standing import starter_memberships
from holdfast.telemetry import log
from holdfast.types.hold import HoldFacts, NewHold
from holdfast.types.terms import Assignee


class Router:
    """Without a directory it only settles what the text cannot: delegated users, and who is first to sign."""

    def __init__(self, directory: Directory | None = None, delegations: Delegations | None = None) -> None:
        self._directory = directory
        self._delegations = delegations

    def concerns(self, hold: NewHold, facts: HoldFacts) -> bool:
        if hold.type == "debug_breakpoint":
            return False
        return (
            self._directory is not None or _waits_for(hold).type == DELEGATED or bool(hold.terms.approval.of)
        )

    async def prepare(self, hold: NewHold, facts: HoldFacts) -> NewHold:
        """With its assignee looked up; raw text stays as written."""
        raw = _first_seat(hold) or hold.assignee
        delegation = await self._delegation(raw, facts)
        found = await route(raw, facts.tenant, self._directory, delegation=delegation)
        known: dict[str, Any] = {
            "assignee_type": found.type,
            "assignee_value": found.value,
            "assignee_reason": found.reason,
        }
        starter_in = await self._starter_in(facts)
        if starter_in is not None:
            known["terms"] = msgspec.structs.replace(hold.terms, starter_in=starter_in)
        return msgspec.structs.replace(hold, **known)

    async def _delegation(self, raw: str | None, facts: HoldFacts) -> str | None:
        """The deployment, where it is delegated to somebody, be it revoked for now (AS-9)."""
        if self._delegations is None or facts.deployment is None or parse_assignee(raw).type != DELEGATED:
            return None
        found = await self._delegations.delegation(facts.tenant, facts.deployment)
        return None if found is None else facts.deployment

    async def _starter_in(self, facts: HoldFacts) -> tuple[str, ...] | None:
        try:
            return await starter_memberships(self._directory, facts.tenant, facts.started_by)
        except DirectoryUnavailableError as error:
            log.warning("what %s belongs to is not known: %s", facts.started_by, error)
            return None


def _first_seat(hold: NewHold) -> str | None:
    """A hold that is signed in order waits for the first to sign; one that names nobody, for the first of
    those who may vote."""
    approval = hold.terms.approval
    if approval.of and (approval.mode == "sequential" or parse_assignee(hold.assignee).type == UNROUTED):
        return approval.of[0]
    return None


def _waits_for(hold: NewHold) -> Assignee:
    return parse_assignee(hold.assignee)
