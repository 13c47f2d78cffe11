"""A key, and the state that it leads to. Nothing here reads or writes anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from holdfast.cli.inbox.decide import arm, begin, save_draft, submit_line, typed_so_far
from holdfast.cli.inbox.state import PAGE, VIEWS, Act, InboxState, Prompt, Step, with_message
from holdfast.holds.permissions.assignees import same_person

_replace = msgspec.structs.replace
_PAGE: Final = 10
_FILLS: Final = ("field", "why", "answer")
_DEFAULT_SNOOZE: Final = "4h"
_DIGITS: Final = frozenset("123456789")


def press(state: InboxState, key: str) -> Step:
    """A key that means nothing changes nothing, but it disarms what was armed. Whoever was cut off goes on
    typing for a moment: no letter of that snoozes or decides anything."""
    if key == "ctrl-c":
        return _replace(state, over=True), _draft_act(state)
    if state.cut_off:
        return _replace(state, cut_off=key not in ("enter", "esc")), None
    if state.prompt is not None:
        return _typed(state, state.prompt, key)
    if state.help:
        return _helped(state, key), None
    if state.prefix:
        return _viewed(_replace(state, prefix=""), key)
    if key == "enter" and state.sure:
        return _confirmed(state)
    if key == "enter" and state.armed is not None:
        return begin(state)
    calm = _replace(state, armed=None, sure=(), said="", alert=False)
    if key in _DIGITS:
        return _armed(calm, int(key))
    act = _KEYS.get(key)
    return (calm, None) if act is None else act(calm)


def _armed(state: InboxState, digit: int) -> Step:
    """What cannot be seen is opened first: people decide on what they were shown."""
    if state.open or state.split or state.selected or state.current is None:
        return arm(state, digit), None
    opened, act = _open(state)
    return with_message(opened, f"Read it; then {digit} again."), act


def _draft_act(state: InboxState) -> Act | None:
    """Leaving in the middle of a form loses nothing."""
    filling = typed_so_far(state)
    return None if filling is None else save_draft(filling)


def _confirmed(state: InboxState) -> Step:
    act = Act(do="bulk", holds=state.sure, decision=state.armed or "", sure=True)
    return _replace(state, sure=(), armed=None), act


# ---------------------------------------------------------------------- a line of text


def _typed(state: InboxState, prompt: Prompt, key: str) -> Step:
    if key == "esc":
        return _left(state)
    if key == "enter":
        return _entered(state, prompt)
    text = _edited(prompt.text, key)
    return _replace(state, prompt=_replace(prompt, text=text, error="")), None


def _edited(text: str, key: str) -> str:
    if key == "backspace":
        return text[:-1]
    if key == "ctrl-u":
        return ""
    if key == "ctrl-w":
        return text.rstrip().rpartition(" ")[0]
    if key.startswith("paste:"):
        return text + key.removeprefix("paste:")
    return text + (" " if key == "space" else key) if len(key) == 1 or key == "space" else text


def _left(state: InboxState) -> Step:
    """What was filled in is kept; what was typed on a line of its own is not."""
    filling = typed_so_far(state)
    state = _replace(state, prompt=None, filling=None)
    if filling is None:
        return state, None
    return with_message(state, "Nothing is decided. What you filled in is your draft."), save_draft(filling)


def _entered(state: InboxState, prompt: Prompt) -> Step:
    if prompt.kind in _FILLS:
        return submit_line(state, prompt)
    text = prompt.text.strip()
    done = _replace(state, prompt=None)
    if prompt.kind == "search":
        return done, Act(do="load", query=text)
    if not text:
        return done, None
    return done, Act(do=prompt.kind, holds=prompt.holds, text=text)


def _target_holds(state: InboxState) -> tuple[str, ...]:
    """Those that are selected, else the one that is current."""
    row = state.current
    if state.selected and not state.open:
        return tuple(sorted(state.selected))
    return () if row is None else (row.id,)


def _asking(kind: str, label: str, text: str = "", hint: str = "") -> Callable[[InboxState], Step]:
    def ask(state: InboxState) -> Step:
        if state.current is None and kind != "search":
            return with_message(state, "There is nothing here to do that to."), None
        given = state.query if kind == "search" else text
        prompt = Prompt(kind=kind, label=label, text=given, hint=hint, holds=_target_holds(state))
        return _replace(state, prompt=prompt), None

    return ask


def _doing(do: str) -> Callable[[InboxState], Step]:
    def act(state: InboxState) -> Step:
        row = state.current
        if row is None:
            return with_message(state, "There is nothing here to do that to."), None
        return state, Act(do=do, holds=_target_holds(state))

    return act


# ---------------------------------------------------------------------- moving


def _moving(by: int, *, selecting: bool = False) -> Callable[[InboxState], Step]:
    def move(state: InboxState) -> Step:
        if state.open and not selecting:
            return _replace(state, scroll=max(state.scroll + by, 0)), None
        return _to(state, state.at + by, selecting=selecting)

    return move


def _to(state: InboxState, at: int, *, selecting: bool = False) -> Step:
    last = len(state.rows) - 1
    if at > last and state.more:
        return _replace(state, limit=state.limit + PAGE, at=last), Act(do="load")
    at = min(max(at, 0), max(last, 0))
    selected = state.selected
    if selecting and state.rows:
        selected |= {state.rows[state.at].id, state.rows[at].id}
    moved = _replace(state, at=at, scroll=0, selected=selected, expanded=False)
    return moved, _look_act(moved)


def _look_act(state: InboxState) -> Act | None:
    row = state.rows[state.at] if state.at < len(state.rows) else None
    return None if row is None else Act(do="look", holds=(row.id,))


def _beside(by: int) -> Callable[[InboxState], Step]:
    """The next or the one before, open or not."""
    return lambda state: _to(state, state.at + by)


def _open(state: InboxState) -> Step:
    row = state.current
    if row is None or state.open:
        return state, None
    return _replace(state, open=True, scroll=0), Act(do="look", holds=(row.id,), sure=True)


def _back(state: InboxState) -> Step:
    if state.open:
        return _replace(state, open=False, scroll=0, expanded=False), None
    if state.selected:
        return _replace(state, selected=frozenset()), None
    if state.query:
        return state, Act(do="load", query="")
    return state, None


def _select(state: InboxState) -> Step:
    row = state.current
    if row is None:
        return state, None
    return _replace(state, selected=state.selected ^ {row.id}), None


def _expand(state: InboxState) -> Step:
    row = state.current
    opened = _replace(state, expanded=not state.expanded)
    return opened, None if row is None else Act(do="look", holds=(row.id,), sure=state.open)


def _viewed(state: InboxState, key: str) -> Step:
    if key == "end" or key == "G":
        return _to(state, len(state.rows))
    view = VIEWS.get(key)
    if view is None:
        return with_message(
            state, "After g: " + ", ".join(f"{key} {name}" for key, name in VIEWS.items())
        ), None
    return state, Act(do="load", view=view)


def _fresh(state: InboxState) -> Step:
    return state, Act(do="load")


def _undo(state: InboxState) -> Step:
    """What is current, where one has just decided it; else one's last decision."""
    row = state.current
    if row is not None and row.placed_by is not None and same_person(row.placed_by, state.me):
        return state, Act(do="undo", holds=(row.id,))
    if not state.placed:
        return with_message(state, "There is nothing to take back."), None
    return state, Act(do="undo", holds=(state.placed[-1],))


def _help(state: InboxState) -> Step:
    return _replace(state, help=True, scroll=0), None


def _helped(state: InboxState, key: str) -> InboxState:
    """It scrolls; any other key goes back."""
    if key in ("j", "down", "k", "up"):
        return _replace(state, scroll=max(state.scroll + (1 if key in ("j", "down") else -1), 0))
    return _replace(state, help=False, scroll=0)


def _prefix(state: InboxState) -> Step:
    return _replace(state, prefix="g"), None


def _quit(state: InboxState) -> Step:
    return _back(state) if state.open else (_replace(state, over=True), None)


_KEYS: Final[dict[str, Callable[[InboxState], Step]]] = {
    "j": _moving(1), "down": _moving(1), "k": _moving(-1), "up": _moving(-1),
    "J": _moving(1, selecting=True), "K": _moving(-1, selecting=True),
    "pagedown": _moving(_PAGE), "pageup": _moving(-_PAGE),
    "home": _moving(-1_000_000), "end": _moving(1_000_000), "G": _moving(1_000_000),
    "enter": _open, "o": _open, "right": _open,
    "u": _back, "esc": _back, "left": _back,
    "]": _beside(1), "[": _beside(-1),
    "x": _select,
    "e": _expand,
    "/": _asking("search", "Search", hint="words, flow: priority>=high due<2d assignee:me tag: has:comment"),
    "c": _asking("comment", "Comment", hint="all who see this hold see it"),
    "r": _asking("reassign", "Hand on to", hint="user:NAME, group:KEY or role:KEY"),
    "s": _asking("snooze", "Snooze for", _DEFAULT_SNOOZE, "4h, 2d, or 2030-01-31T09:00"),
    "b": _asking("ask_back", "Ask back", hint="whoever started the run; the deadline stands still meanwhile"),
    "y": _asking("reply", "Reply", hint="to what was asked back"),
    "m": _doing("claim"),
    "w": _doing("watch"),
    "z": _undo,
    "n": _fresh,
    "R": _fresh,
    "g": _prefix,
    "?": _help,
    "q": _quit,
}  # fmt: skip
