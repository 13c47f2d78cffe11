"""A hold in a few words: its title, assignee, deadline, state."""

from __future__ import annotations

from typing import Final

from holdfast.holds.actions.conflicts import placed_decision, resolution_of
from holdfast.types.clock import MICROS
from holdfast.types.hold import HoldRow
from holdfast.types.status import HOLD_LABELS, HoldStatus
from holdfast.types.terms import Assignee

SHORT: Final = 8
SIGNS: Final = {"critical": "▲▲", "high": "▲", "normal": "·", "low": "▽"}
PLAIN_SIGNS: Final = {"critical": "!!", "high": "!", "normal": "-", "low": "v"}
_UNITS: Final = ((86_400, "days"), (3_600, "h"), (60, "min"), (1, "s"))


def roughly(micros: int) -> str:
    """One unit, rounded: `12 s`, `60 min`, `4 h` (for 3 h 59 min), `2 days` (for 47 h)."""
    seconds = max(micros, 0) // MICROS
    # From one and a half of a unit on, so that the rounded number is 2 at least.
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= 1.5 * size), (1, "s"))
    return f"{(seconds + size // 2) // size} {unit}"


def countdown(row: HoldRow, now: int) -> str:
    """`due in 2 h`, `overdue 3 d`; the outcome if it has ended; empty without a deadline."""
    if row.status is not HoldStatus.pending:
        return HOLD_LABELS[row.status]
    if row.paused_at is not None:
        return "paused"
    if row.expires_at is None:
        return ""
    left = row.expires_at - now
    return f"due in {roughly(left)}" if left > 0 else f"overdue {roughly(-left)}"


def title_of(row: HoldRow) -> str:
    """The first line of the prompt; without one, flow and node (CP-5)."""
    first = next((line.strip() for line in row.prompt.splitlines() if line.strip()), "")
    return first or f"{row.flow} at {row.node}"


def prompt_rest(row: HoldRow) -> str:
    """What follows the first line of the prompt."""
    return row.prompt.strip().partition("\n")[2].strip()


def assignee_of(row: HoldRow) -> str:
    """As people read it: `user:dana@acme`, `unassigned`."""
    if row.assignee_type == "unrouted":
        return "unassigned"
    return str(Assignee(row.assignee_type, row.assignee_value))


def claim_of(row: HoldRow, now: int) -> str:
    """The person who claimed it; an expired claim does not count."""
    if row.claimed_by is None or (row.claim_until is not None and row.claim_until <= now):
        return ""
    left = "" if row.claim_until is None else f" for {roughly(row.claim_until - now)}"
    return f"{row.claimed_by}{left}"


def outcome_of(row: HoldRow, now: int) -> str:
    """`resolved by user:dana@acme 12 s ago: reject`; empty while it is open."""
    if row.status is HoldStatus.pending:
        return ""
    by, at = row.resolved_by or row.closed_by, row.resolved_at or row.closed_at
    resolution = resolution_of(row)
    parts = [str(row.status), *([f"by {by}"] if by else []), *([f"{roughly(now - at)} ago"] if at else [])]
    what = resolution.get("effective_decision") or resolution.get("decision") or row.closed_reason
    return " ".join(parts) + (f": {what}" if what else "")


def placed_of(row: HoldRow, now: int) -> str:
    """`user:dana@acme decided 'reject'; final in 5 s`: a decision that can still be undone."""
    if row.placed is None or row.placed_until is None:
        return ""
    decision = placed_decision(row)
    return f"{row.placed_by} decided {decision!r}; final in {roughly(row.placed_until - now)}"


def why_of(row: HoldRow) -> str:
    """Why it has this assignee: a rule, the flow, or an escalation; and what its rules could not do."""
    return "; ".join((_assigned_by(row), *(text for text in row.terms.warnings if not _is_of_a_detail(text))))


def _is_of_a_detail(warning: str) -> bool:
    """A placeholder without a value outside of the question: it may well be empty."""
    return warning.endswith("}} has no value") and not warning.startswith("prompt:")


def _assigned_by(row: HoldRow) -> str:
    whom = assignee_of(row)
    if row.assignee_type == "unrouted":
        return f"unassigned{': ' + row.assignee_reason if row.assignee_reason else ''}"
    if row.escalation_count:
        return f"escalated to {whom} ({row.escalation_count} times)"
    if row.epoch > 1:
        return f"reassigned to {whom}"
    if row.terms.routed_by:
        return f"rule {row.terms.routed_by!r} assigned it to {whom}"
    return f"flow {row.flow} asks {whom}"


def needs_of(row: HoldRow) -> str:
    """The number of approvals; empty if one is enough."""
    approval = row.terms.approval
    if approval.mode == "any":
        return ""
    whom = ", ".join(approval.of) or assignee_of(row)
    return f"{approval.need} of {whom}" if approval.mode == "quorum" else f"in order: {whom}"
