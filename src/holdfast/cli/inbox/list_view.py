"""The list: one line for each hold where there is room, two where there is not."""

from __future__ import annotations

from holdfast.cli.inbox.state import InboxState
from holdfast.cli.inbox.text_spans import Line, cut, fitted, flat, padded
from holdfast.holds.queries.summary import (
    PLAIN_SIGNS,
    SIGNS,
    assignee_of,
    claim_of,
    countdown,
    outcome_of,
    placed_of,
    roughly,
    title_of,
)
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus

WIDE = 90
_EMPTY = {
    "mine": "Nothing waits for you.",
    "groups": "Nothing waits for your groups and roles.",
    "asked": "Nobody waits for a reply of yours.",
    "unassigned": "Every hold is assigned.",
    "watching": "You watch nothing.",
    "snoozed": "Nothing is snoozed.",
    "done": "You have decided nothing yet.",
    "breakpoints": "No run stopped at a breakpoint.",
}


def list_lines(state: InboxState, width: int, height: int, *, ascii_only: bool = False) -> list[Line]:
    """As many as fit, with the current one among them."""
    if not state.rows:
        return _nothing(state, width)
    tall = 1 if width >= WIDE else 2
    room = max((height - (1 if state.fresh else 0)) // tall, 1)
    first = min(max(state.at - room // 2, 0), max(len(state.rows) - room, 0))
    lines = _pill(state, width)
    for i, row in enumerate(state.rows[first : first + room], first):
        lines += _card(state, row, i == state.at, width, tall, ascii_only)
    return lines


def _nothing(state: InboxState, width: int) -> list[Line]:
    text = "No matching holds." if state.query else _EMPTY.get(state.view, "Nothing waits for a decision.")
    return [
        *_pill(state, width),
        [],
        [(cut(f"  {text}", width), "dim")],
        [(cut("  g a shows all, ? helps.", width), "dim")],
    ]


def _pill(state: InboxState, width: int) -> list[Line]:
    if not state.fresh:
        return []
    return [[(cut(f"  {len(state.fresh)} new: n shows them", width), "bold")]]


def _card(
    state: InboxState, row: HoldRow, current: bool, width: int, tall: int, ascii_only: bool
) -> list[Line]:
    mark = ">" if current else " "
    chosen = "x" if row.id in state.selected else " "
    sign = (PLAIN_SIGNS if ascii_only else SIGNS).get(row.priority, "")
    head = f"{mark}{chosen} {padded(sign, 2)} {padded(row.priority, 8)} "
    style = "current" if current else "faded" if row.status is not HoldStatus.pending else ""
    if tall == 1:
        return [_one_line(state, row, head, width, style)]
    title = flat(title_of(row))
    second = f"      {' · '.join(_facts(state, row))}"
    return [fitted([(head + title, style)], width), fitted([(second, style or "dim")], width)]


def _one_line(state: InboxState, row: HoldRow, head: str, width: int, style: str) -> Line:
    due = _due(state, row) if row.status is HoldStatus.pending else str(row.status)
    age = roughly(state.now - row.created_at)
    # In one's own list whom it waits for goes without saying.
    whom = "" if state.view == "mine" else f" {padded(assignee_of(row), 20)}"
    right = f" {padded(row.flow, 14)}{whom} {padded(age, 7)} {padded(due, 16)}"
    left = padded(head + flat(title_of(row)), width - len(right))
    return fitted([(left + right, style)], width)


def _facts(state: InboxState, row: HoldRow) -> list[str]:
    """What is most pressing first: the rest may be cut off."""
    claimed = claim_of(row, state.now)
    found = [_due(state, row), f"claimed: {claimed}" if claimed else "", row.flow, assignee_of(row)]
    return [flat(each) for each in [*found, f"{roughly(state.now - row.created_at)} old"] if each]


def _due(state: InboxState, row: HoldRow) -> str:
    if row.status is not HoldStatus.pending:
        return flat(outcome_of(row, state.now))
    return (
        "decided, z: undo"
        if placed_of(row, state.now) and row.placed_by == state.me
        else countdown(row, state.now)
    )
