"""The desk: what is worked out about a hold before its row is written, in the order in which it matters.

The engine decides that a run asks, and what; the desk finds whom it goes to and until when. Whatever cannot
be worked out leaves the question open for those who look after unrouted ones: a run never fails because a
directory was away.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from holdfast.errors import InputError, StoreError
from holdfast.holds.permissions.assignees import parse_assignee
from holdfast.holds.timing.reminders import next_reminder
from holdfast.telemetry import log
from holdfast.types.hold import HoldFacts, NewHold
from holdfast.types.text import clean_text


class PreparationStep(Protocol):
    """One thing that is worked out: what a deployment sets, what rules say, whom a name means, deadlines."""

    def concerns(self, hold: NewHold, facts: HoldFacts) -> bool:
        """Whether there may be anything to do; cheap, and asked of every hold."""
        ...

    async def prepare(self, hold: NewHold, facts: HoldFacts) -> NewHold:
        """The hold with what was found. Raises HoldfastError where it could not be worked out."""
        ...


class HoldPreparation:
    """Policies may change whom it goes to and until when, so they come first; skills add to what is shown."""

    def __init__(
        self,
        *,
        defaults: PreparationStep | None = None,
        policies: PreparationStep | None = None,
        delegated: PreparationStep | None = None,
        directory: PreparationStep | None = None,
        deadlines: PreparationStep | None = None,
    ) -> None:
        steps = {
            "defaults": defaults,
            "policies": policies,
            "delegated": delegated,
            "directory": directory,
            "deadlines": deadlines,
        }
        self._steps = {name: step for name, step in steps.items() if step is not None}

    def prepare_now(self, hold: NewHold, facts: HoldFacts) -> NewHold | None:
        """The hold as it is stored; None where something has to be looked up."""
        if any(step.concerns(hold, facts) for step in self._steps.values()):
            return None
        return reminded(assigned(hold))

    async def prepare(self, hold: NewHold, facts: HoldFacts) -> NewHold:
        """The same, and with everything looked up."""
        hold = assigned(hold)
        failed: dict[str, str] = {}
        for name, step in self._steps.items():
            if step.concerns(hold, facts):
                hold = await self._step(name, step, hold, facts, failed)
        return reminded(_failing(hold, failed))

    async def _step(
        self, name: str, step: PreparationStep, hold: NewHold, facts: HoldFacts, failed: dict[str, str]
    ) -> NewHold:
        raw = hold.assignee
        try:
            found = await step.prepare(hold, facts)
        except Exception as error:
            # A store that is away is waited for; whatever else goes wrong, the question is asked.
            if isinstance(error, StoreError) and error.retryable:
                raise
            about = {"hold": hold.id, "run": facts.run, "flow": facts.flow}
            log.warning("hold %s of run %s: its %s: %s", hold.id, facts.run, name, error, extra=about)
            failed[name] = str(error)
            return hold
        return found if found.assignee == raw else assigned(found)


def _failing(hold: NewHold, failed: dict[str, str]) -> NewHold:
    """What failed is in the hold's history. Whom the rules or the directory would have asked nobody knows
    then, and whoever is asked instead might be one who must not decide alone."""
    if not failed:
        return hold
    said = [f"its {name} could not be worked out: {clean_text(why, 500)}" for name, why in failed.items()]
    terms = msgspec.structs.replace(hold.terms, warnings=(*hold.terms.warnings, *said))
    hold = msgspec.structs.replace(hold, terms=terms)
    lost = failed.get("directory") or failed.get("policies")
    return hold if lost is None else unrouted(hold, lost)


def assigned(hold: NewHold) -> NewHold:
    """With its assignee read; one that cannot be is nobody's, with the reason."""
    try:
        found = parse_assignee(hold.assignee)
    except InputError as error:
        return unrouted(hold, error.message)
    return msgspec.structs.replace(
        hold, assignee_type=found.type, assignee_value=found.value, assignee_reason=found.reason
    )


def unrouted(hold: NewHold, why: str) -> NewHold:
    return msgspec.structs.replace(hold, assignee_type="unrouted", assignee_value="", assignee_reason=why)


def reminded(hold: NewHold) -> NewHold:
    """With the first time at which somebody is reminded of it."""
    if hold.reminder_interval is None or hold.remind_at is not None:
        return hold
    return msgspec.structs.replace(hold, remind_at=next_reminder(hold, hold.created_at))
