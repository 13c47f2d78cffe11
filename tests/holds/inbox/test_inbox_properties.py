"""Whatever keys are pressed: nothing is decided but by two of them in a row, and every screen fits."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual import events

from holdfast.cli.hold_session import HoldSession
from holdfast.cli.inbox.app import InboxApp
from holdfast.cli.inbox.state import Act, HoldDetails, InboxState
from holdfast.types.hold import Option
from tests.holds.inbox.inboxes import DANA, Screen, key_event
from tests.holds.timing.rows import a_row

pytestmark = pytest.mark.covers("HOLD-HAND-01")
KEYS = [
    *"jkJKouxemswzngRbyrcq?/[]G123aZ",
    "enter",
    "escape",
    "up",
    "space",
    "backspace",
    "tab",
    "paste",
    "ctrl+u",
]
LIKELY = [*KEYS, *(["1", "enter", "o", "x"] * 8)]
OPTIONS = (Option("yes", "Yes"), Option("no", "No", "danger"))
ROWS = tuple(
    msgspec.structs.replace(a_row(), id=f"{i}fa9c1d2-0000-4000-8000-000000000000", options=OPTIONS)
    for i in range(4)
)


class Service:
    """Does nothing but what the next key depends on, and notes what it was asked to do."""

    def __init__(self) -> None:
        self.acts: list[Act] = []

    async def perform(self, state: InboxState, act: Act) -> InboxState:
        self.acts.append(act)
        row = next((row for row in state.rows if row.id in act.holds), None)
        if act.do == "look" and row is not None:
            return msgspec.structs.replace(state, sheet=HoldDetails(row=row))
        if act.do == "bulk" and not act.sure:
            return msgspec.structs.replace(state, sure=act.holds, armed=act.decision)
        return state


async def play(keys: list[str], width: int) -> None:
    session = cast("HoldSession", SimpleNamespace(now=0, actor=DANA, holds=None))
    app = InboxApp(session, InboxState(rows=ROWS, view="all", sheet=HoldDetails(row=ROWS[0])), live=False)
    service: Any = Service()
    app._actions = service
    async with app.run_test(size=(width, 24)) as pilot:
        seen = Screen(session, pilot)
        pressed: list[str] = []
        for key in keys:
            pressed.append(key)
            before = len(service.acts)
            app.post_message(events.Paste("1") if key == "paste" else key_event(key))
            lines = await seen.painted()
            for act in service.acts[before:]:
                if act.do == "decide":
                    assert pressed[-2] in "123"
                    assert pressed[-1] == "enter"
                if act.do == "bulk" and act.sure:
                    assert pressed[-3] in "123"
                    assert pressed[-2:] == ["enter", "enter"]
            if not app.is_running:
                return
            assert len(lines) == 24
            assert max(cell_len(line) for line in lines) <= width


# An app for each example: fewer than elsewhere.
@settings(max_examples=settings().max_examples // 5)
@given(st.lists(st.sampled_from(LIKELY), max_size=20), st.sampled_from([20, 40, 80, 120]))
def test_nothing_is_decided_but_by_two_keys_in_a_row(keys: list[str], width: int) -> None:
    asyncio.run(play(keys, width))


def test_keys_that_come_all_at_once_are_taken_in_their_order() -> None:
    """A key without a meaning goes by way of the widgets, and cancels all the same."""

    async def burst() -> list[str]:
        session = cast("HoldSession", SimpleNamespace(now=0, actor=DANA, holds=None))
        state = InboxState(rows=ROWS, view="all", sheet=HoldDetails(row=ROWS[0]))
        app = InboxApp(session, state, live=False)
        service: Any = Service()
        app._actions = service
        async with app.run_test(size=(120, 24)) as pilot:
            seen = Screen(session, pilot)
            await seen.painted()
            for key in ("1", "Z", "enter", "u", "c", *"1jq", "enter", "1", "enter"):
                app.post_message(key_event(key))
            await seen.painted()
            await seen.painted()
        return [f"{act.do} {act.text}".strip() for act in service.acts]

    assert asyncio.run(burst()) == ["look", "comment 1jq", "decide"]
