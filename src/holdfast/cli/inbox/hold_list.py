"""The list: one line for each hold where there is room, two where there is not."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from holdfast.cli.inbox.state import InboxState
from holdfast.cli.output.screen import one_line
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
    "mine": "No open holds for you.",
    "groups": "No open holds for your groups and roles.",
    "asked": "No questions to you.",
    "unassigned": "No unassigned holds.",
    "watching": "You watch no holds.",
    "snoozed": "No snoozed holds.",
    "done": "You have decided no holds yet.",
    "breakpoints": "No run is stopped at a breakpoint.",
}
_SIGN_STYLES = {"critical": "bold $text-error", "high": "$text-warning", "low": "dim"}


class HoldList(OptionList, can_focus=False):
    """The app moves its cursor: keys have one meaning, whichever widget is in use."""

    def show(self, state: InboxState, *, plain: bool) -> None:
        width = self.scrollable_content_region.width
        cards = [_card(state, i, width, plain=plain) for i in range(len(state.rows))]
        if [option.id for option in self.options] != [row.id for row in state.rows]:
            self.set_options(Option(card, id=row.id) for card, row in zip(cards, state.rows, strict=True))
        for i, (option, card) in enumerate(zip(self.options, cards, strict=True)):
            if option.prompt is not card and not _is_same(option.prompt, card):
                self.replace_option_prompt_at_index(i, card)
        self.highlighted = state.at if state.rows else None


def _is_same(shown: object, card: Content) -> bool:
    return isinstance(shown, Content) and shown.is_same(card)


def empty_text(state: InboxState) -> str:
    text = "No matching holds." if state.query else _EMPTY.get(state.view, "No open holds.")
    return f"{text}\ng a shows all views' holds, ? shows the keys."


def _card(state: InboxState, index: int, width: int, *, plain: bool) -> Content:
    row = state.rows[index]
    marks = f"{'>' if index == state.at else ' '}{'x' if row.id in state.selected else ' '} "
    sign = (PLAIN_SIGNS if plain else SIGNS).get(row.priority, "")
    body = "" if row.status is HoldStatus.pending else "dim strike"
    priority = f"{sign:2} {row.priority:8} ", _SIGN_STYLES.get(row.priority, "")
    head = Content.assemble(marks, priority, (one_line(title_of(row)), body or "bold"))
    if width < WIDE:
        second = Content.styled(f"      {' · '.join(_facts(state, row))}", body or "dim")
        return Content("\n").join([head, second])
    due = _due(state, row) if row.status is HoldStatus.pending else str(row.status)
    # In one's own list the assignee goes without saying.
    whom = [] if state.view == "mine" else [(assignee_of(row), 20)]
    cells = [(row.flow, 14), *whom, (roughly(state.now - row.created_at), 7), (due, 16)]
    right = Content(" ").join(
        Content(one_line(text)).truncate(size, ellipsis=True, pad=True) for text, size in cells
    )
    room = max(width - right.cell_length - 1, 1)
    return Content(" ").join([head.truncate(room, ellipsis=True, pad=True), right.stylize(body)])


def _facts(state: InboxState, row: HoldRow) -> list[str]:
    """What is most pressing first: the rest may be cut off."""
    claimed = claim_of(row, state.now)
    found = [_due(state, row), f"claimed: {claimed}" if claimed else "", row.flow, assignee_of(row)]
    return [one_line(each) for each in [*found, f"{roughly(state.now - row.created_at)} old"] if each]


def _due(state: InboxState, row: HoldRow) -> str:
    if row.status is not HoldStatus.pending:
        return outcome_of(row, state.now)
    if placed_of(row, state.now) and row.placed_by == state.me:
        return "decided, z: undo"
    return countdown(row, state.now)
