"""The last check of a decision before it is written: adds `decided_by`, and applies the guardrails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.holds.actions.audit_entries import VETOED, entry, event
from holdfast.holds.actions.close import resolved
from holdfast.types.hold import HoldChange, HoldRow

if TYPE_CHECKING:
    from holdfast.holds.policies.guardrails import Guardrails


async def apply_guardrails(
    guardrails: Guardrails | None, row: HoldRow, made: HoldChange, by: str
) -> HoldChange:
    """The change with a decision that passes, or replaced by the hold's rejection; other changes unmodified.

    Raises VetoedError if an approval does not pass and the hold has no rejecting option.
    """
    kept = made.fields.get("resolution")
    if kept is None or not _concerns(guardrails, by):
        return made
    # Imported here because most decisions are made by people, without guardrails.
    from holdfast.holds.policies.guardrails import OVERRIDE, review_resolution

    before: dict[str, Any] = msgspec.json.decode(kept)
    checked = await review_resolution(guardrails, row, before, by)
    if checked == before:
        return made
    fresh = resolved(row, checked, by=by, at=made.at)
    others = tuple(each for each in made.audit if each.action != "resolved")
    change = msgspec.structs.replace(
        fresh,
        fields={**made.fields, "resolution": fresh.fields["resolution"]},
        audit=(*others, *fresh.audit),
        notes=made.notes,
        drop_notes=made.drop_notes,
        link=made.link,
        key=made.key,
    )
    return _with_veto_audit(row, change, checked, by) if checked["decided_by"] == OVERRIDE else change


def _concerns(guardrails: Guardrails | None, by: str) -> bool:
    return by.startswith(("policy:", "system:")) or (guardrails is not None and guardrails.people)


def _with_veto_audit(row: HoldRow, change: HoldChange, resolution: dict[str, Any], by: str) -> HoldChange:
    facts = {
        **resolution["veto"],
        "decision": resolution["decision"],
        "effective_decision": resolution["effective_decision"],
    }
    return msgspec.structs.replace(
        change,
        audit=(*change.audit, entry(row, by, "vetoed", change.at, **facts)),
        more_events=(event(row, VETOED, change.at, by=by, **facts),),
    )
