"""Whatever keys are pressed: nothing is decided but by two of them in a row, and every screen fits."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from holdfast.cli.inbox.keys import press
from holdfast.cli.inbox.screen import SPLIT, frame
from holdfast.cli.inbox.state import Act, HoldDetails, InboxState
from holdfast.cli.inbox.text_spans import plain
from holdfast.types.hold import Option
from tests.holds.timing.rows import a_row

pytestmark = pytest.mark.covers("HOLD-HAND-01")
KEYS = [
    *"jkJKouxemswzngRbyrcq?/[]G123aZ",
    "enter",
    "esc",
    "up",
    "space",
    "backspace",
    "tab",
    "paste:1",
    "ctrl-u",
]
LIKELY = [*KEYS, *(["1", "enter", "o", "x"] * 8)]
OPTIONS = (Option("yes", "Yes"), Option("no", "No", "danger"))
ROWS = tuple(
    msgspec.structs.replace(a_row(), id=f"{i}fa9c1d2-0000-4000-8000-000000000000", options=OPTIONS)
    for i in range(4)
)


def follow(state: InboxState, act: Act | None) -> InboxState:
    """What the program would do, as far as the next key depends on it."""
    if act is None:
        return state
    row = next((row for row in state.rows if row.id in act.holds), None)
    if act.do == "look" and row is not None:
        return msgspec.structs.replace(state, sheet=HoldDetails(row=row))
    if act.do == "bulk" and not act.sure:
        return msgspec.structs.replace(state, sure=act.holds, armed=act.decision)
    return state


@given(st.lists(st.sampled_from(LIKELY), max_size=40), st.sampled_from([20, 40, 80, 120]))
def test_nothing_is_decided_but_by_two_keys_in_a_row(keys: list[str], width: int) -> None:
    state = InboxState(rows=ROWS, view="all", split=width >= SPLIT, sheet=HoldDetails(row=ROWS[0]))
    pressed: list[str] = []
    for key in keys:
        pressed.append(key)
        state, act = press(state, key)
        if act is not None and act.do == "decide":
            assert pressed[-2] in "123"
            assert pressed[-1] == "enter"
        if act is not None and act.do == "bulk" and act.sure:
            assert pressed[-3] in "123"
            assert pressed[-2:] == ["enter", "enter"]
        state = follow(state, act)
        lines = frame(state, width, 24).lines
        assert len(lines) == 24
        assert max(cell_len(plain(line)) for line in lines) <= width
        if state.over:
            return
