"""Guardrails over approvals: a yes that no person said, or nobody should say, is turned into a no."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from holdfast.errors import SettingsError, VetoedError
from holdfast.holds.policies.builtin_checks import STANDARD
from holdfast.holds.policies.facts import UNTOUCHED, facts_of_row
from holdfast.holds.policies.judge import call_function
from holdfast.telemetry import log
from holdfast.types.hold import HoldRow
from holdfast.types.yes_no import approves, refusing_answer

Check = Callable[[Mapping[str, Any]], Any | Awaitable[Any]]
OVERRIDE: Final = "guardrail-override"
TIMEOUT: Final = 30.0


class Veto(msgspec.Struct, frozen=True):
    """`guardrail`: the check that objects."""

    guardrail: str
    reason: str


class Guardrails:
    """Checks by name. Each takes the hold's facts with `decision` and `response_data`; None or True passes, a
    `Violation`, False or a text objects. One that raises has not passed.

    `required`: an approval that no check looked at does not pass either. `people`: decisions of people are
    looked at too, and not only what a rule, a judge or a deadline decides. `timeout`: seconds that each check
    has; one that takes longer has not passed.
    """

    def __init__(
        self,
        checks: Mapping[str, Check] | None = None,
        *,
        required: bool = False,
        people: bool = False,
        timeout: float = TIMEOUT,
    ) -> None:
        self.checks: dict[str, Check] = dict(STANDARD if checks is None else checks)
        self.required = required
        self.people = people
        self.timeout = timeout
        for name, check in self.checks.items():
            if not callable(check):
                raise SettingsError(f"the guardrail {name!r} is not a function.")

    def applies(self, row: HoldRow, decision: str, by: str) -> bool:
        """Whether a decision has to pass: only approvals, only of machines unless people are meant too."""
        if row.type in UNTOUCHED or not approves(decision, row.options):
            return False
        if by.startswith(("policy:", "system:")):
            return row.terms.guarded
        return self.people

    async def veto(self, row: HoldRow, resolution: Mapping[str, Any]) -> Veto | None:
        """The first objection, or None. Raises nothing."""
        names = row.terms.guardrails or tuple(self.checks)
        if not names and self.required:
            return Veto("", "no guardrail has looked at it")
        facts = {
            **facts_of_row(row),
            "decision": resolution.get("decision"),
            "response_data": resolution.get("response_data"),
        }
        for name in names:
            reason = await self._objection(name, facts)
            if reason is not None:
                return Veto(name, reason)
        return None

    async def _objection(self, name: str, facts: Mapping[str, Any]) -> str | None:
        check = self.checks.get(name)
        if check is None:
            return "there is no such guardrail here"
        try:
            async with asyncio.timeout(self.timeout):
                said: Any = await call_function(check, facts)
        except TimeoutError:
            log.warning("guardrail %s took longer than %g s", name, self.timeout)
            return f"it took longer than {self.timeout:g} s"
        except Exception as error:
            log.warning("guardrail %s could not be asked: %s: %s", name, type(error).__name__, error)
            return f"it could not be asked: {type(error).__name__}: {error}"
        if said is None or said is True:
            return None
        return str(getattr(said, "reason", None) or (said if isinstance(said, str) else "it objects"))


def overridden(row: HoldRow, resolution: Mapping[str, Any], veto: Veto) -> dict[str, Any]:
    """The resolution with the yes turned into the hold's own no; what was said stays on record.

    Raises VetoedError where the hold offers no answer that says no: then it stays open.
    """
    no = refusing_answer(row.options)
    by = f"{veto.guardrail}: " if veto.guardrail else ""
    if no is None:
        raise VetoedError(
            f"hold {row.id} is not approved: {by}{veto.reason}.",
            hint="It offers no answer that refuses, so it stays open.",
            hold=row.id,
            guardrail=veto.guardrail,
        )
    return {
        **resolution,
        "effective_decision": no,
        "decided_by": OVERRIDE,
        "veto": {"guardrail": veto.guardrail, "reason": f"Guardrail override: {by}{veto.reason}"},
    }


async def review_resolution(
    guardrails: Guardrails | None, row: HoldRow, resolution: Mapping[str, Any], by: str
) -> dict[str, Any]:
    """The resolution as it is to be kept: with who decided, and without an approval that does not pass.

    Raises VetoedError as `overridden` does."""
    said = {**resolution, "decided_by": resolution.get("decided_by") or decided_by(row, resolution, by)}
    effective = str(said.get("effective_decision") or said.get("decision") or "")
    if guardrails is None or not guardrails.applies(row, effective, by):
        return said
    veto = await guardrails.veto(row, said)
    return said if veto is None else overridden(row, said, veto)


def decided_by(row: HoldRow, resolution: Mapping[str, Any], by: str) -> str:
    """In one word, how it was decided."""
    if resolution.get("auto_expired"):
        effective = str(resolution.get("effective_decision") or resolution.get("decision"))
        return "timeout-accept" if approves(effective, row.options) else "timeout-reject"
    kind = by.partition(":")[0]
    return {"policy": "policy", "system": "system", "service": "service"}.get(kind, "human")
