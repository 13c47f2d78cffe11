"""Moving, opening and selecting: the state that follows, and what is to be read for it."""

from __future__ import annotations

import msgspec

from holdfast.cli.inbox.state import PAGE, Act, InboxState, Prompt, Step, with_message
from holdfast.holds.permissions.assignees import same_person

_replace = msgspec.structs.replace
NOTHING = "There is no hold here."


def move_to(state: InboxState, at: int, *, selecting: bool = False) -> Step:
    """Behind the last row more is read, where there is more."""
    last = len(state.rows) - 1
    if at > last and state.more:
        return _replace(state, limit=state.limit + PAGE, at=last), Act(do="load")
    at = min(max(at, 0), max(last, 0))
    selected = state.selected
    if selecting and state.rows:
        selected |= {state.rows[state.at].id, state.rows[at].id}
    moved = _replace(state, at=at, selected=selected, expanded=False)
    return moved, Act(do="look", holds=(state.rows[at].id,)) if state.rows else None


def open_hold(state: InboxState) -> Step:
    row = state.current
    if row is None or state.open:
        return state, None
    return _replace(state, open=True), Act(do="look", holds=(row.id,), sure=True)


def back(state: InboxState) -> Step:
    """One thing at a time: the open hold, what is selected, the search."""
    if state.open:
        return _replace(state, open=False, expanded=False), None
    if state.selected:
        return _replace(state, selected=frozenset()), None
    return state, Act(do="load", query="") if state.query else None


def select(state: InboxState) -> InboxState:
    row = state.current
    return state if row is None else _replace(state, selected=state.selected ^ {row.id})


def expand(state: InboxState) -> Step:
    row = state.current
    expanded = _replace(state, expanded=not state.expanded)
    return expanded, None if row is None else Act(do="look", holds=(row.id,), sure=state.open)


def target_holds(state: InboxState) -> tuple[str, ...]:
    """Those that are selected, else the current one."""
    row = state.current
    if state.selected and not state.open:
        return tuple(sorted(state.selected))
    return () if row is None else (row.id,)


def do(state: InboxState, what: str) -> Step:
    if state.current is None:
        return with_message(state, NOTHING), None
    return state, Act(do=what, holds=target_holds(state))


def ask(state: InboxState, kind: str, label: str, *, text: str = "", hint: str = "") -> InboxState:
    """A line to type. A search needs no hold."""
    if state.current is None and kind != "search":
        return with_message(state, NOTHING)
    holds = target_holds(state)
    return _replace(state, prompt=Prompt(kind=kind, label=label, text=text, hint=hint, holds=holds))


def undo(state: InboxState) -> Step:
    """The current hold, where one has just decided it; else one's last decision."""
    row = state.current
    if row is not None and row.placed_by is not None and same_person(row.placed_by, state.me):
        return state, Act(do="undo", holds=(row.id,))
    if not state.placed:
        return with_message(state, "There is nothing to undo."), None
    return state, Act(do="undo", holds=(state.placed[-1],))
