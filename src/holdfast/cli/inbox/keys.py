"""A key, and the state that it leads to. Nothing here reads or writes anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from holdfast.cli.inbox.decide import arm, begin, entered, keep, typed_so_far
from holdfast.cli.inbox.state import PAGE, VIEWS, Act, Prompt, State, Step, told
from holdfast.holds.permissions.assignees import same_person

_replace = msgspec.structs.replace
_PAGE: Final = 10
_FILLS: Final = ("field", "why", "answer")
_DEFAULT_SNOOZE: Final = "4h"
_DIGITS: Final = frozenset("123456789")


def press(state: State, key: str) -> Step:
    """A key that means nothing changes nothing, but it disarms what was armed. Whoever was cut off goes on
    typing for a moment: no letter of that snoozes or decides anything."""
    if key == "ctrl-c":
        return _replace(state, over=True), _kept(state)
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


def _armed(state: State, digit: int) -> Step:
    """What cannot be seen is opened first: people decide on what they were shown."""
    if state.open or state.split or state.selected or state.current is None:
        return arm(state, digit), None
    opened, act = _open(state)
    return told(opened, f"Read it; then {digit} again."), act


def _kept(state: State) -> Act | None:
    """Leaving in the middle of a form loses nothing."""
    filling = typed_so_far(state)
    return None if filling is None else keep(filling)


def _confirmed(state: State) -> Step:
    act = Act(do="bulk", holds=state.sure, decision=state.armed or "", sure=True)
    return _replace(state, sure=(), armed=None), act


# ---------------------------------------------------------------------- a line of text


def _typed(state: State, prompt: Prompt, key: str) -> Step:
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


def _left(state: State) -> Step:
    """What was filled in is kept; what was typed on a line of its own is not."""
    filling = typed_so_far(state)
    state = _replace(state, prompt=None, filling=None)
    if filling is None:
        return state, None
    return told(state, "Nothing is decided. What you filled in is your draft."), keep(filling)


def _entered(state: State, prompt: Prompt) -> Step:
    if prompt.kind in _FILLS:
        return entered(state, prompt)
    text = prompt.text.strip()
    done = _replace(state, prompt=None)
    if prompt.kind == "search":
        return done, Act(do="load", query=text)
    if not text:
        return done, None
    return done, Act(do=prompt.kind, holds=prompt.holds, text=text)


def _meant(state: State) -> tuple[str, ...]:
    """Those that are selected, else the one that is current."""
    row = state.current
    if state.selected and not state.open:
        return tuple(sorted(state.selected))
    return () if row is None else (row.id,)


def _asking(kind: str, label: str, text: str = "", hint: str = "") -> Callable[[State], Step]:
    def ask(state: State) -> Step:
        if state.current is None and kind != "search":
            return told(state, "There is nothing here to do that to."), None
        given = state.query if kind == "search" else text
        prompt = Prompt(kind=kind, label=label, text=given, hint=hint, holds=_meant(state))
        return _replace(state, prompt=prompt), None

    return ask


def _doing(do: str) -> Callable[[State], Step]:
    def act(state: State) -> Step:
        row = state.current
        if row is None:
            return told(state, "There is nothing here to do that to."), None
        return state, Act(do=do, holds=_meant(state))

    return act


# ---------------------------------------------------------------------- moving


def _moving(by: int, *, selecting: bool = False) -> Callable[[State], Step]:
    def move(state: State) -> Step:
        if state.open and not selecting:
            return _replace(state, scroll=max(state.scroll + by, 0)), None
        return _to(state, state.at + by, selecting=selecting)

    return move


def _to(state: State, at: int, *, selecting: bool = False) -> Step:
    last = len(state.rows) - 1
    if at > last and state.more:
        return _replace(state, limit=state.limit + PAGE, at=last), Act(do="load")
    at = min(max(at, 0), max(last, 0))
    selected = state.selected
    if selecting and state.rows:
        selected |= {state.rows[state.at].id, state.rows[at].id}
    moved = _replace(state, at=at, scroll=0, selected=selected, expanded=False)
    return moved, _look(moved)


def _look(state: State) -> Act | None:
    row = state.rows[state.at] if state.at < len(state.rows) else None
    return None if row is None else Act(do="look", holds=(row.id,))


def _beside(by: int) -> Callable[[State], Step]:
    """The next or the one before, open or not."""
    return lambda state: _to(state, state.at + by)


def _open(state: State) -> Step:
    row = state.current
    if row is None or state.open:
        return state, None
    return _replace(state, open=True, scroll=0), Act(do="look", holds=(row.id,), sure=True)


def _back(state: State) -> Step:
    if state.open:
        return _replace(state, open=False, scroll=0, expanded=False), None
    if state.selected:
        return _replace(state, selected=frozenset()), None
    if state.query:
        return state, Act(do="load", query="")
    return state, None


def _select(state: State) -> Step:
    row = state.current
    if row is None:
        return state, None
    return _replace(state, selected=state.selected ^ {row.id}), None


def _expand(state: State) -> Step:
    row = state.current
    opened = _replace(state, expanded=not state.expanded)
    return opened, None if row is None else Act(do="look", holds=(row.id,), sure=state.open)


def _viewed(state: State, key: str) -> Step:
    if key == "end" or key == "G":
        return _to(state, len(state.rows))
    view = VIEWS.get(key)
    if view is None:
        return told(state, "After g: " + ", ".join(f"{key} {name}" for key, name in VIEWS.items())), None
    return state, Act(do="load", view=view)


def _fresh(state: State) -> Step:
    return state, Act(do="load")


def _undo(state: State) -> Step:
    """What is current, where one has just decided it; else one's last decision."""
    row = state.current
    if row is not None and row.placed_by is not None and same_person(row.placed_by, state.me):
        return state, Act(do="undo", holds=(row.id,))
    if not state.placed:
        return told(state, "There is nothing to take back."), None
    return state, Act(do="undo", holds=(state.placed[-1],))


def _help(state: State) -> Step:
    return _replace(state, help=True, scroll=0), None


def _helped(state: State, key: str) -> State:
    """It scrolls; any other key goes back."""
    if key in ("j", "down", "k", "up"):
        return _replace(state, scroll=max(state.scroll + (1 if key in ("j", "down") else -1), 0))
    return _replace(state, help=False, scroll=0)


def _prefix(state: State) -> Step:
    return _replace(state, prefix="g"), None


def _quit(state: State) -> Step:
    return _back(state) if state.open else (_replace(state, over=True), None)


_KEYS: Final[dict[str, Callable[[State], Step]]] = {
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
