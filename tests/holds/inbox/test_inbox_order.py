"""Keys that are pressed while the inbox reads what others did."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from textual import events

from holdfast import Holdfast
from holdfast.testing.clock import FakeClock
from holdfast.types.terms import Actor, operator
from tests.holds.inbox.inboxes import DANA, FORM, OpenScreen, Screen, ask, key_event

pytestmark = [pytest.mark.anyio, pytest.mark.covers("HOLD-HAND-01")]
SAM = operator("user:sam@acme", channel="inbox")
REFUSED = {"amount": "250", "why": "twice"}


async def press_during_refresh(seen: Screen, first: str, *then: str) -> None:
    """What others did is read just after the first key; the rest is pressed at once."""
    seen.app.post_message(key_event(first))
    seen.app.call_later(seen.app.refresh_holds)
    for key in then:
        seen.app.post_message(key_event(key))
    await seen.painted()


@pytest.mark.parametrize("key", ["enter", "escape"])
async def test_keys_work_after_another_person_closed_the_line_in_which_enter_or_escape_was_pressed(
    hf: Holdfast, screen: OpenScreen, key: str
) -> None:
    hold = await ask(hf, sections=FORM)
    seen = await screen(hf)
    await seen.press("o", "1", "enter", "99")
    await seen.session.holds.resolve(SAM, hold, {"decision": "reject", "response_data": REFUSED})

    await press_during_refresh(seen, key)
    assert "Resolved by user:sam@acme" in seen.text
    await seen.press("enter", "q", "q")

    assert not seen.app.is_running
    assert (await seen.row(hold)).resolved_by == "user:sam@acme"


async def test_a_paste_just_after_enter_goes_to_the_next_line(hf: Holdfast, screen: OpenScreen) -> None:
    hold = await ask(hf)
    seen = await screen(hf)
    await seen.press("c", "first")

    for event in (key_event("enter"), key_event("c"), events.Paste("second"), key_event("enter")):
        seen.app.post_message(event)
    await seen.painted()

    notes = await seen.session.holds.comments(DANA, hold)
    assert [json.loads(note.body)["text"] for note in notes] == ["first", "second"]


async def test_letters_for_a_hold_that_was_reassigned_are_no_keys_for_the_next_one(
    clock: FakeClock, screen: OpenScreen
) -> None:
    async with Holdfast("memory:", clock=clock) as hf:
        first, second = await ask(hf, 1), await ask(hf, 2)
        seen = await screen(hf, actor=Actor(id="user:dana@acme", channel="inbox"))
        await seen.press("o", "c", "for the ")
        await seen.session.holds.reassign(SAM, first, "user:sam@acme")
        await seen.others()

        await seen.press("same")
        assert "This hold is no longer yours" in seen.text
        assert "Enter continues." in seen.text
        assert (await seen.row(second)).claimed_by is None
        await seen.press("enter", "m")

        assert (await seen.row(second)).claimed_by == "user:dana@acme"


async def test_a_key_that_was_pressed_before_a_refresh_showed_another_hold_is_not_for_that_one(
    hf: Holdfast, screen: OpenScreen
) -> None:
    first, second = await ask(hf, 1), await ask(hf, 2)
    seen = await screen(hf)
    await seen.session.holds.snooze(DANA, first, timedelta(hours=1))

    seen.app.call_later(seen.app.refresh_holds)
    seen.app.post_message(key_event("m"))
    await seen.painted()

    assert seen.state.current is not None
    assert seen.state.current.id == second
    assert "Another hold is shown now." in seen.text
    assert (await seen.row(second)).claimed_by is None
    await seen.press("m")
    assert (await seen.row(second)).claimed_by == "user:dana@acme"


async def test_keys_after_a_move_of_ones_own_mean_the_hold_that_was_moved_to(
    hf: Holdfast, screen: OpenScreen
) -> None:
    await ask(hf, 1)
    second = await ask(hf, 2)
    seen = await screen(hf)

    for key in ("j", "m"):
        seen.app.post_message(key_event(key))
    await seen.painted()

    assert (await seen.row(second)).claimed_by == "user:dana@acme"
