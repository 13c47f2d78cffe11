"""Guardrails: check approvals, in particular automatic ones, and turn those that fail into rejections."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from holdfast.errors import SettingsError, VetoedError
from holdfast.holds.policies.builtin_checks import STANDARD
from holdfast.holds.policies.facts import UNTOUCHED, facts_of_row
from holdfast.model.user_code.boundary import call_alone
from holdfast.telemetry import log
from holdfast.types.decision_words import approves, refusing_answer
from holdfast.types.hold import HoldRow

Check = Callable[[Mapping[str, Any]], Any | Awaitable[Any]]
OVERRIDE: Final = "guardrail-override"
TIMEOUT: Final = 30.0


class Veto(msgspec.Struct, frozen=True):
    """`guardrail`: the check that failed."""

    guardrail: str
    reason: str


class Guardrails:
    """Checks by name. Each takes the hold's facts with `decision` and `response_data`; None or True passes, a
    `Violation`, False or a text rejects. A check that raises has not passed.

    `required`: an approval that no check applies to does not pass either. `people`: also check decisions of
    people, not only those of rules, judges and deadlines. `timeout`: seconds for each check; one that takes
    longer has not passed.
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
        """Whether a decision must be checked: approvals only, and automatic ones only unless `people` is
        set."""
        if row.type in UNTOUCHED or not approves(decision, row.options):
            return False
        if by.startswith(("policy:", "system:")):
            return row.terms.guarded
        return self.people

    async def veto(self, row: HoldRow, resolution: Mapping[str, Any]) -> Veto | None:
        """The first rejection, or None. Raises nothing."""
        names = row.terms.guardrails or tuple(self.checks)
        if not names and self.required:
            return Veto("", "no guardrail has checked it")
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
            return "this guardrail is not registered here"
        try:
            async with asyncio.timeout(self.timeout):
                verdict: Any = await call_alone(check, facts)
        except TimeoutError:
            log.warning("guardrail %s took longer than %g s", name, self.timeout)
            return f"it took longer than {self.timeout:g} s"
        except Exception as error:
            log.warning("guardrail %s failed: %s: %s", name, type(error).__name__, error)
            return f"it failed: {type(error).__name__}: {error}"
        if verdict is None or verdict is True:
            return None
        return str(
            getattr(verdict, "reason", None) or (verdict if isinstance(verdict, str) else "it objects")
        )


def overridden(row: HoldRow, resolution: Mapping[str, Any], veto: Veto) -> dict[str, Any]:
    """The resolution with the approval replaced by the hold's rejection; the original answer stays recorded.

    Raises VetoedError if the hold has no rejecting option: then it stays open.
    """
    no = refusing_answer(row.options)
    by = f"{veto.guardrail}: " if veto.guardrail else ""
    if no is None:
        raise VetoedError(
            f"hold {row.id} is not approved: {by}{veto.reason}.",
            hint="It has no rejecting option, so it stays open.",
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
    """The resolution as it is stored: with `decided_by`, and without an approval that does not pass.

    Raises VetoedError as `overridden` does."""
    proposal = {**resolution, "decided_by": resolution.get("decided_by") or decided_by(row, resolution, by)}
    effective = str(proposal.get("effective_decision") or proposal.get("decision") or "")
    if guardrails is None or not guardrails.applies(row, effective, by):
        return proposal
    veto = await guardrails.veto(row, proposal)
    return proposal if veto is None else overridden(row, proposal, veto)


def decided_by(row: HoldRow, resolution: Mapping[str, Any], by: str) -> str:
    """How it was decided, in one word."""
    if resolution.get("auto_expired"):
        effective = str(resolution.get("effective_decision") or resolution.get("decision"))
        return "timeout-accept" if approves(effective, row.options) else "timeout-reject"
    kind = by.partition(":")[0]
    return {"policy": "policy", "system": "system", "service": "service"}.get(kind, "human")
