"""A step of the hold preparation: looks up the assignee, and the memberships of the run's starter."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.errors import DirectoryUnavailableError
from holdfast.holds.directory.base import Directory
from holdfast.holds.permissions.actor import starter_memberships
from holdfast.holds.permissions.assignees import DELEGATED, parse_assignee, route
from holdfast.model.hold_declaration import EXCLUDABLE
from holdfast.telemetry import log
from holdfast.types.hold import HoldFacts, NewHold
from holdfast.types.schedule import person_behind
from holdfast.types.terms import ApprovalTerms, Assignee

NO_STARTER: Final = "no initiator is excluded, because the starter of the run is not known (started_by)"


class AssigneeStep:
    """Delegated users are handled by the step for deployments. Without a directory it only finds the first
    approver of a sequential hold."""

    def __init__(self, directory: Directory | None = None) -> None:
        self._directory = directory

    def rules(self) -> list[str]:
        return [] if self._directory is None else ["a directory"]

    def concerns(self, hold: NewHold, facts: HoldFacts) -> bool:
        if hold.type == "debug_breakpoint":
            return False
        approval = hold.terms.approval
        known = self._directory is None and not _lacks_starter(hold, facts)
        return not known or bool(approval.of or approval.veto)

    async def prepare(self, hold: NewHold, facts: HoldFacts) -> NewHold:
        """The raw text stays as written."""
        known: dict[str, Any] = {}
        seat = _first_seat(hold)
        raw = seat or hold.assignee
        parsed = parse_assignee(raw)
        if parsed.type != DELEGATED:
            parsed = await route(raw, facts.tenant, self._directory)
        if parsed.type != DELEGATED or (seat is not None and parsed.value):
            known = {"assignee_type": parsed.type, "assignee_value": parsed.value}
            known["assignee_reason"] = parsed.reason
        starter_in = await self._starter_in(facts)
        if starter_in is not None:
            starter_in = (*(hold.terms.starter_in or ()), *starter_in)
        warnings = [*hold.terms.warnings, *([NO_STARTER] if _lacks_starter(hold, facts) else [])]
        terms = msgspec.structs.replace(
            hold.terms,
            also_for=_also_for(hold.terms.approval),
            starter_in=hold.terms.starter_in if starter_in is None else starter_in,
            warnings=(*warnings, *await self._unknown_exclusions(hold, facts.tenant)),
        )
        return msgspec.structs.replace(hold, terms=terms, **known)

    async def _unknown_exclusions(self, hold: NewHold, tenant: str) -> list[str]:
        """Groups and roles that exclude nobody: a misspelt key, perhaps."""
        named = dict.fromkeys((*hold.terms.approval.exclude, *hold.terms.excluded))
        seats = [parse_assignee(text) for text in named if text not in EXCLUDABLE]
        return [
            f"{each} has no effect as an exclusion: the directory does not have it"
            for each in seats
            if await self._is_unknown(each, tenant)
        ]

    async def _is_unknown(self, who: Assignee, tenant: str) -> bool:
        if self._directory is None or who.type not in ("group", "role"):
            return False  # a person is excluded by name
        ask = self._directory.group if who.type == "group" else self._directory.role
        try:
            return await ask(tenant, who.value) is None
        except DirectoryUnavailableError:
            return False

    async def _starter_in(self, facts: HoldFacts) -> tuple[str, ...] | None:
        try:
            return await starter_memberships(self._directory, facts.tenant, facts.started_by)
        except DirectoryUnavailableError as error:
            log.warning("the memberships of %s are not known: %s", facts.started_by, error)
            return None


def _lacks_starter(hold: NewHold, facts: HoldFacts) -> bool:
    """A run without a known starter cannot exclude its initiator: the hold gets a warning."""
    return person_behind(facts.started_by) is None and "initiator" in (
        *hold.terms.approval.exclude,
        *hold.terms.excluded,
    )


def _also_for(approval: ApprovalTerms) -> tuple[str, ...]:
    """A sequential hold is not listed here: its row is reassigned to each approver in turn."""
    seats = approval.of if approval.mode == "quorum" and len(approval.of) > 1 else ()
    found = (str(parse_assignee(text)) for text in (*seats, *approval.veto))
    return tuple(dict.fromkeys(found))


def _first_seat(hold: NewHold) -> str | None:
    """A sequential hold is assigned to its first approver; a hold without an assignee, or whose assignee has
    no vote, to the first voter."""
    approval = hold.terms.approval
    voters = [parse_assignee(text) for text in approval.of]
    if voters and (approval.mode == "sequential" or parse_assignee(hold.assignee) not in voters):
        return approval.of[0]
    return None
