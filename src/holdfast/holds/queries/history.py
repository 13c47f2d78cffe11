"""The history of a hold from the audit, oldest first, each entry with its number there (HI-1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from holdfast.holds.actions.change import load_visible
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.queries.audit import records_of
from holdfast.holds.queries.history_text import DECIDING, history_sentence
from holdfast.types.audit import AuditRow
from holdfast.types.clock import iso
from holdfast.types.hold import HoldRow, Option
from holdfast.types.terms import Actor

# The fields of an entry that may be shown; others stay in the audit.
SHOWN: Final = frozenset(
    {
        "action", "assignee", "attempt", "auto_expired", "authority", "calendar", "channel", "claimed_by",
        "code", "comment", "confidence", "decided_by", "decision", "effective_decision", "epoch", "error",
        "expires_at", "field", "from", "guardrail", "late", "missing", "node", "on_behalf_of",
        "override_reason", "question", "reason", "reminder", "rule", "rung", "status", "to", "topic",
        "type", "until", "why",
    }
)  # fmt: skip


RETURNED: Final = "returned"
"""The action of an entry for an answer that did not fit the form: it may be corrected and sent again."""
INVALID: Final = 422


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """`id` never changes; `seq` is its number in the tenant's audit; `text`: the entry as one sentence."""

    id: str
    seq: int
    at: str
    actor: str
    action: str
    data: dict[str, Any]
    text: str


async def history(ctx: HoldContext, actor: Actor, hold: str) -> list[Entry]:
    """The history of an open or ended hold. Raises HoldNotFoundError, ForbiddenError."""
    row = await load_visible(ctx, actor, hold)
    return [entry_of(each, row) for each in await records_of(ctx.store, row.tenant, hold=row.id)]


def entry_of(row: AuditRow, hold: HoldRow | None = None, *, options: Sequence[Option] | None = None) -> Entry:
    """`hold`: as it is now; with it, sentences name values and people. `options`: for the labels alone."""
    data: dict[str, Any] = msgspec.json.decode(row.data) if row.data else {}
    action = RETURNED if _is_invalid_form(row.action, data) else row.action
    shown = {name: _shown(name, value) for name, value in data.items() if name in SHOWN}
    return Entry(
        id=f"{row.hold or row.tenant}:{row.seq}",
        seq=row.seq,
        at=iso(row.at),
        actor=row.actor,
        action=action,
        data=shown,
        text=history_sentence(row.actor, action, shown, hold, options=options),
    )


def _is_invalid_form(action: str, data: dict[str, Any]) -> bool:
    """The audit has it among the refusals; for the person it is a form to be corrected."""
    return action == "refused" and data.get("status") == INVALID and data.get("action") in DECIDING


def _shown(name: str, value: Any) -> Any:
    return iso(value) if name == "expires_at" and isinstance(value, int) else value
