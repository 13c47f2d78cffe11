"""A step of the desk: whom a hold is for, as the directory has it, and what its run's starter belongs to."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.errors import DirectoryUnavailableError
from holdfast.holds.assigning import DELEGATED, UNROUTED, parse_assignee, route
from holdfast.holds.directory.base import Directory
from holdfast.holds.standing import starter_memberships
from holdfast.telemetry import log
from holdfast.types.hold import HoldFacts, NewHold


class Addressee:
    """Delegated users are left to the step that knows deployments. Without a directory there is only to find
    who is first to sign."""

    def __init__(self, directory: Directory | None = None) -> None:
        self._directory = directory

    def concerns(self, hold: NewHold, facts: HoldFacts) -> bool:
        if hold.type == "debug_breakpoint":
            return False
        return self._directory is not None or _first_seat(hold) is not None

    async def prepare(self, hold: NewHold, facts: HoldFacts) -> NewHold:
        """The raw text stays as written."""
        known: dict[str, Any] = {}
        raw = _first_seat(hold) or hold.assignee
        if parse_assignee(raw).type != DELEGATED:
            found = await route(raw, facts.tenant, self._directory)
            known = {"assignee_type": found.type, "assignee_value": found.value}
            known["assignee_reason"] = found.reason
        starter_in = await self._starter_in(facts)
        if starter_in is not None:
            known["terms"] = msgspec.structs.replace(hold.terms, starter_in=starter_in)
        return msgspec.structs.replace(hold, **known)

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
