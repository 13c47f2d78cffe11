"""A placed decision whose undo window has passed: made final, unless its author may not decide any more."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.errors import DirectoryUnavailableError
from holdfast.holds.actions.audit_entries import TAKEN_BACK, entry, event
from holdfast.holds.actions.close import placed_decision_change
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.actions.lost_right import SESSION_ENDED, draft_of_answer, lost_right, session_end
from holdfast.types.hold import HoldChange, HoldRow

EMPTY: Final[dict[str, Any]] = {"placed": None, "placed_by": None, "placed_until": None}


async def due_change(ctx: HoldContext, row: HoldRow, now: int) -> HoldChange | None:
    """The decision, or its lapse; None while the directory cannot say whether the author may still decide."""
    placed: dict[str, Any] = msgspec.json.decode(row.placed or b"{}")
    author, credential = row.placed_by or "", placed.get("credential") or ""
    session = placed.get("session") or ""
    try:
        end = await session_end(ctx, session) if session else None
        # After the window the decision counts: the worker that makes it final may be late.
        if end is not None and end.at < (row.placed_until or now):
            return _lapsed(row, author, placed, SESSION_ENDED, now)
        why = await lost_right(ctx, row, author, placed, credential, now)
    except DirectoryUnavailableError:
        return None
    return placed_decision_change(row, now) if why is None else _lapsed(row, author, placed, why, now)


def _lapsed(row: HoldRow, author: str, placed: dict[str, Any], why: str, now: int) -> HoldChange:
    """The hold is open again."""
    return HoldChange(
        hold=row.id,
        version=row.version,
        at=now,
        fields=EMPTY,
        audit=(entry(row, author, "placed_lapsed", now, why=why),),
        notes=(draft_of_answer(row, author, placed, now),),
        event=event(row, TAKEN_BACK, now, by=author, why=why),
    )
