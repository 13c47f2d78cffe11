"""The hold preparation: steps that complete a hold before its row is written, in a fixed order.

The engine decides what a run asks; the preparation finds the assignee and the deadline. If a step fails, the
hold is opened unrouted, for the administrators: a run never fails because a directory was unavailable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from holdfast.errors import InputError, StoreError
from holdfast.holds.permissions.assignees import parse_assignee
from holdfast.holds.timing.reminders import next_reminder
from holdfast.store.protocols import Store
from holdfast.telemetry import log
from holdfast.types.hold import HoldFacts, NewHold
from holdfast.types.text import clean_text


class PreparationStep(Protocol):
    """One step: a deployment's defaults, policy rules, the directory, deadlines."""

    def concerns(self, hold: NewHold, facts: HoldFacts) -> bool:
        """Whether there may be anything to do; must be cheap, because it is called for every hold."""
        ...

    async def prepare(self, hold: NewHold, facts: HoldFacts) -> NewHold:
        """The completed hold. Raises HoldfastError if the step fails."""
        ...


class ShadowStep:
    """Asks the judge of a hold that has one."""

    def __init__(self, store: Store, judges: Mapping[str, Any] | None) -> None:
        self._store = store
        self._judges = judges or {}

    def concerns(self, hold: NewHold, facts: HoldFacts) -> bool:
        return hold.terms.shadow is not None and hold.terms.sealed is None

    def has_judge(self, name: str) -> bool:
        return name in self._judges

    async def prepare(self, hold: NewHold, facts: HoldFacts) -> NewHold:
        # Loaded by the first hold that has a judge.
        from holdfast.holds.policies.shadow import seal

        return await seal(self._store, self._judges, hold, facts)


class HoldPreparation:
    """Policies run before the directory and the deadlines, because they may change the assignee and
    timeout."""

    def __init__(
        self,
        *,
        defaults: PreparationStep | None = None,
        policies: PreparationStep | None = None,
        delegated: PreparationStep | None = None,
        directory: PreparationStep | None = None,
        starters: PreparationStep | None = None,
        deadlines: PreparationStep | None = None,
        shadow: PreparationStep | None = None,
    ) -> None:
        steps = {
            "defaults": defaults,
            "policies": policies,
            "delegated": delegated,
            "directory": directory,
            "starters": starters,
            "deadlines": deadlines,
            "shadow": shadow,
        }
        self._steps = {name: step for name, step in steps.items() if step is not None}

    @property
    def has_policies(self) -> bool:
        return "policies" in self._steps

    @property
    def rules(self) -> list[str]:
        """What this instance knows of rules and people, for a comparison with others."""
        found = (getattr(step, "rules", None) for step in self._steps.values())
        return sorted(text for listed in found if listed is not None for text in listed())

    def has_judge(self, name: str) -> bool:
        """Whether the instance has a judge of that name."""
        step = self._steps.get("shadow")
        return isinstance(step, ShadowStep) and step.has_judge(name)

    def prepare_now(self, hold: NewHold, facts: HoldFacts) -> NewHold | None:
        """The hold as it is stored; None if a lookup is needed."""
        if any(step.concerns(hold, facts) for step in self._steps.values()):
            return None
        return reminded(assigned(hold))

    async def prepare(self, hold: NewHold, facts: HoldFacts) -> NewHold:
        """The same, with all lookups."""
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
            # An unavailable store is waited for; after any other error the question is still asked.
            if isinstance(error, StoreError) and error.retryable:
                raise
            about = {"hold": hold.id, "run": facts.run, "flow": facts.flow}
            log.warning("hold %s of run %s: its %s: %s", hold.id, facts.run, name, error, extra=about)
            failed[name] = str(error)
            return hold
        # Parsed again only if a rule changed it: a step may have resolved the parsed form further.
        return found if found.assignee == raw else assigned(found)


def _failing(hold: NewHold, failed: dict[str, str]) -> NewHold:
    """Failures are recorded as warnings of the hold. If the rules or the directory failed, the right
    assignee is not known, and the declared one might not be allowed to decide alone."""
    if not failed:
        return hold
    reasons = [f"its {name} could not be determined: {clean_text(why, 500)}" for name, why in failed.items()]
    terms = msgspec.structs.replace(hold.terms, warnings=(*hold.terms.warnings, *reasons))
    hold = msgspec.structs.replace(hold, terms=terms)
    # A failed deadline or default does not make the assignee wrong, so only these unroute the hold.
    lost = failed.get("directory") or failed.get("policies") or failed.get("starters")
    return hold if lost is None else unrouted(hold, lost)


def assigned(hold: NewHold) -> NewHold:
    """With its parsed assignee; if that fails it is unrouted, with the reason."""
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
    """With the time of its first reminder."""
    if hold.reminder_interval is None or hold.remind_at is not None:
        return hold
    return msgspec.structs.replace(hold, remind_at=next_reminder(hold, hold.created_at))
