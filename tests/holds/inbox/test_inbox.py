"""A terminal inbox that one can live in: keys in, screens out."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.testing.clock import FakeClock
from holdfast.types.status import HoldStatus
from holdfast.types.terms import operator
from tests.holds.inbox.inboxes import DANA, FORM, OpenScreen, ask, key_event

pytestmark = [pytest.mark.anyio, pytest.mark.covers("HOLD-HAND-01")]
SAM = operator("user:sam@acme", channel="inbox")


async def test_list_shows_the_most_pressing_first_and_says_it_in_words(
    hf: Holdfast, clock: FakeClock, screen: OpenScreen
) -> None:
    await ask(hf, 1, priority="low")
    await ask(hf, 2, priority="critical", timeout="2h")
    clock.advance(hours=3)
    seen = await screen(hf)

    assert seen.lines()[0].startswith(" Inbox [mine 2] groups 0  unassigned 0  all 2")
    assert seen.lines()[0].endswith("user:dana@acme")
    assert seen.lines()[2:6] == [
        ">  ▲▲ critical Refund 2?",
        "      overdue 60 min · refund · user:dana@acme · 3 h old",
        "   ▽  low      Refund 1?",
        "      refund · user:dana@acme · 3 h old",
    ]


async def test_a_decision_takes_two_keys_and_any_other_key_disarms_it(
    hf: Holdfast, clock: FakeClock, screen: OpenScreen
) -> None:
    hold = await ask(hf)
    seen = await screen(hf)

    assert "Read it; then 1 again." in "\n".join(await seen.press("1"))
    assert "1 [Approve: Enter]" in "\n".join(await seen.press("1"))
    await seen.press("j", "enter")
    assert (await seen.row(hold)).placed is None

    await seen.press("1", "enter")
    placed = await seen.row(hold)
    assert (placed.status, placed.placed_by) == (HoldStatus.pending, "user:dana@acme")
    assert "'approve' for Refund 250? in 8 s: z undoes it." in seen.text

    clock.advance(seconds=9)
    await seen.others()
    assert (await seen.row(hold)).status is HoldStatus.resolved
    assert "No open holds for you." in seen.text


async def test_z_takes_it_back_and_the_hold_is_open_again(
    hf: Holdfast, clock: FakeClock, screen: OpenScreen
) -> None:
    hold = await ask(hf)
    seen = await screen(hf)
    await seen.press("o", "1", "enter", "z")

    row = await seen.row(hold)
    assert (row.status, row.placed) == (HoldStatus.pending, None)
    assert "Undone: Refund 250?" in seen.text
    clock.advance(seconds=60)
    await seen.others()
    assert (await seen.row(hold)).status is HoldStatus.pending
    assert "There is nothing to undo." in "\n".join(await seen.press("z"))


async def test_after_a_decision_the_next_one_is_open(hf: Holdfast, screen: OpenScreen) -> None:
    await ask(hf, 1)
    second = await ask(hf, 2)
    seen = await screen(hf)

    await seen.press("o", "1", "enter")

    assert seen.state.open
    assert seen.state.current is not None
    assert seen.state.current.id == second


async def test_a_comment_that_is_needed_is_asked_for(hf: Holdfast, screen: OpenScreen) -> None:
    hold = await ask(hf, undo=0)
    seen = await screen(hf)

    assert "Why reject? (required)" in "\n".join(await seen.press("o", "2", "enter"))
    assert "It must not be empty." in "\n".join(await seen.press("enter"))
    await seen.press("too much", "enter")

    row = await seen.row(hold)
    assert row.status is HoldStatus.resolved
    assert b'"comment":"too much"' in (row.resolution or b"")


async def test_fields_are_asked_one_by_one_with_the_validator_of_the_form(
    hf: Holdfast, screen: OpenScreen
) -> None:
    hold = await ask(hf, sections=FORM, undo=0)
    seen = await screen(hf)

    assert "empty: 250" in "\n".join(await seen.press("o", "1", "enter"))
    assert "amount: is not an amount of money" in "\n".join(await seen.press("much", "enter"))
    assert "1=vat 2=travel 3=misc" in "\n".join(await seen.press("ctrl+u", "199.50", "enter"))
    assert "approve: amount 199.50" in seen.text
    await seen.press("1, misc", "enter")

    row = await seen.row(hold)
    assert row.status is HoldStatus.resolved
    kept = await seen.session.holds.get(seen.session.actor, hold)
    assert b'"response_data":{"amount":"199.50","tags":["vat","misc"],"decision":"approve"}' in (
        kept.resolution or b""
    )


@pytest.mark.covers("HOLD-FORM-03")
async def test_a_file_is_named_by_its_path(hf: Holdfast, tmp_path: Path, screen: OpenScreen) -> None:
    paper = {
        "type": "input",
        "field": "paper",
        "kind": "file",
        "accept": ["application/pdf"],
        "required": True,
    }
    hold = await ask(hf, sections=[paper, FORM[-1]], undo=0)
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7")
    (tmp_path / "a.txt").write_text("text")
    seen = await screen(hf)

    assert "the path of a file" in "\n".join(await seen.press("o", "1", "enter"))
    assert "cannot be read" in "\n".join(await seen.press("nowhere.pdf", "enter"))
    assert "not accepted" in " ".join(await seen.press("ctrl+u", str(tmp_path / "a.txt"), "enter"))
    await seen.press("ctrl+u", str(tmp_path / "a.pdf"), "enter")

    row = await seen.row(hold)
    assert row.status is HoldStatus.resolved
    assert b'"name":"a.pdf"' in (row.resolution or b"")


async def test_fields_that_another_decision_shows_are_asked_for_then(
    hf: Holdfast, screen: OpenScreen
) -> None:
    await ask(hf, sections=FORM)
    seen = await screen(hf)

    lines = await seen.press("o", "2", "enter", "enter")

    assert "why (required)" in "\n".join(lines)
    assert "why: is missing" in "\n".join(await seen.press("enter"))


async def test_what_was_filled_in_is_kept_and_offered_again(hf: Holdfast, screen: OpenScreen) -> None:
    hold = await ask(hf, sections=FORM)
    seen = await screen(hf)

    await seen.press("o", "1", "enter", "99", "escape")

    assert "Your input is kept as a draft." in seen.text
    draft = await seen.session.holds.draft(DANA, hold)
    assert draft is not None
    assert (draft.decision, draft.response_data) == ("approve", {"amount": "99"})
    again = await seen.press("1", "enter")
    assert " 99" in again


@pytest.mark.covers("RS-5")
async def test_somebody_else_is_first_and_the_banner_names_them_and_the_draft_is_kept(
    hf: Holdfast, clock: FakeClock, screen: OpenScreen
) -> None:
    hold = await ask(hf)
    seen = await screen(hf)
    await seen.press("o", "2", "enter", "I think")
    await seen.session.holds.resolve(SAM, hold, {"decision": "approve"})
    clock.advance(seconds=12)

    lines = await seen.others()

    assert lines[2].strip() == "Resolved by user:sam@acme 12 s ago: approve"
    assert "Your input is kept as a draft." in " ".join(lines[-3:])
    assert seen.state.prompt is None
    draft = await seen.session.holds.draft(DANA, hold)
    assert draft is not None
    assert (draft.decision, draft.comment) == ("reject", "I think")
    assert "This is decided already." in "\n".join(await seen.press("enter", "1"))


async def test_somebody_else_is_first_between_two_keys(hf: Holdfast, screen: OpenScreen) -> None:
    hold = await ask(hf)
    seen = await screen(hf)
    await seen.press("o", "1")
    await seen.session.holds.resolve(SAM, hold, {"decision": "reject", "comment": "no"})

    await seen.press("enter")

    assert "Resolved by user:sam@acme 0 s ago: reject" in seen.text
    row = await seen.row(hold)
    assert row.resolved_by == "user:sam@acme"


async def test_what_was_chosen_for_one_hold_is_never_decided_on_another(
    hf: Holdfast, screen: OpenScreen
) -> None:
    first, second = await ask(hf, 1), await ask(hf, 2)
    seen = await screen(hf, size=(120, 30))
    await seen.press("1")
    await seen.session.holds.snooze(DANA, first, timedelta(hours=1))
    await seen.others()
    assert seen.state.current is not None
    assert seen.state.current.id == second

    await seen.press("enter")

    assert "Another hold is shown now." in seen.text
    assert (await seen.row(second)).placed is None


async def test_keys_that_were_pressed_on_another_hold_decide_nothing(
    hf: Holdfast, screen: OpenScreen
) -> None:
    first, second = await ask(hf, 1), await ask(hf, 2)
    seen = await screen(hf, size=(120, 30))

    # All at once, as from a person who types faster than the screen follows.
    for key in ("j", "1", "enter"):
        seen.app.post_message(key_event(key))
    await seen.painted()

    assert "Another hold is shown now." in seen.text
    assert [(await seen.row(each)).placed for each in (first, second)] == [None, None]


async def test_a_comment_goes_to_the_hold_that_it_was_begun_on(hf: Holdfast, screen: OpenScreen) -> None:
    first, second = await ask(hf, 1), await ask(hf, 2)
    seen = await screen(hf)
    await seen.press("c", "for the first")
    await seen.session.holds.resolve(SAM, first, {"decision": "approve"})
    await seen.others()
    await seen.press("enter")

    assert len(await seen.session.holds.comments(DANA, first)) == 1
    assert await seen.session.holds.comments(DANA, second) == []
