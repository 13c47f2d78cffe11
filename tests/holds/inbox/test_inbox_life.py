"""The inbox as it is lived in: others at work, searching, handing on, and screens that fit."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from holdfast import Holdfast
from holdfast.errors import StoreUnavailableError
from holdfast.holds.directory.base import Circle, Memberships, Person
from holdfast.testing.clock import FakeClock
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor, operator
from tests.holds.inbox.inboxes import DANA, FORM, OpenScreen, ask

pytestmark = [pytest.mark.anyio, pytest.mark.covers("HOLD-HAND-01")]
SAM = operator("user:sam@acme", channel="inbox")


async def test_new_holds_wait_under_a_pill_and_do_not_move_the_list(
    hf: Holdfast, clock: FakeClock, screen: OpenScreen
) -> None:
    await ask(hf, 1)
    seen = await screen(hf)
    clock.advance(seconds=1)
    await ask(hf, 2, priority="critical")

    lines = await seen.others()
    assert lines[2:4] == [" 1 new: n shows them", ">  ·  normal   Refund 1?"]
    lines = await seen.press("n")
    assert (lines[2], lines[4]) == ("   ▲▲ critical Refund 2?", ">  ·  normal   Refund 1?")


async def test_more_is_read_when_somebody_goes_to_the_end(
    hf: Holdfast, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, screen: OpenScreen
) -> None:
    for amount in range(5):
        await ask(hf, amount)
        clock.advance(seconds=1)
    seen = await screen(hf, limit=2)
    monkeypatch.setattr("holdfast.cli.inbox.navigate.PAGE", 2)
    assert seen.lines()[0].startswith(" Inbox [mine 2+]")

    await seen.press("x", "G")
    assert seen.lines()[0].startswith(" Inbox [mine 4+]")
    assert seen.state.rows[seen.state.at].prompt == "Refund 1?"
    await seen.session.holds.resolve(SAM, seen.state.rows[3].id, {"decision": "approve"})
    await seen.others()

    assert seen.state.fresh == ()
    assert [row.prompt for row in seen.state.rows] == [f"Refund {i}?" for i in range(5)]


async def test_what_others_decide_stays_to_be_seen_until_the_list_is_read_anew(
    hf: Holdfast, screen: OpenScreen
) -> None:
    first = await ask(hf, 1)
    await ask(hf, 2)
    seen = await screen(hf)
    await seen.session.holds.resolve(SAM, first, {"decision": "approve"})

    assert "resolved by user:sam@acme 0 s ago: approve" in "\n".join(await seen.others())
    assert "sam@acme" not in "\n".join(await seen.press("R"))


@pytest.mark.covers("HOLD-LIFE-09")
async def test_selected_holds_are_decided_together_after_a_preview(hf: Holdfast, screen: OpenScreen) -> None:
    ids = [await ask(hf, amount) for amount in (1, 2)]
    form = await ask(hf, 3, sections=FORM[1:3] + FORM[4:], bulk=False)
    seen = await screen(hf)

    await seen.press("J", "J", "1")
    assert "all 3 selected?" in seen.text
    await seen.press("enter")
    assert "2 would be decided 'approve'." in seen.text
    assert f"{form[:8]} left out: " in seen.text
    assert (await seen.row(ids[0])).status is HoldStatus.pending
    await seen.press("enter")

    assert [(await seen.row(each)).status for each in (*ids, form)] == ["resolved", "resolved", "pending"]
    assert "2 decided 'approve'." in seen.text


async def test_a_preview_is_only_a_preview_when_another_key_follows(hf: Holdfast, screen: OpenScreen) -> None:
    hold = await ask(hf)
    seen = await screen(hf)

    await seen.press("x", "1", "enter", "k", "enter")

    row = await seen.row(hold)
    assert (row.status, row.placed) == (HoldStatus.pending, None)


async def test_search_narrows_the_list_and_esc_widens_it_again(hf: Holdfast, screen: OpenScreen) -> None:
    await ask(hf, 1, priority="high")
    await ask(hf, 2)
    seen = await screen(hf)

    lines = await seen.press("/", "priority>=high", "enter")
    assert lines[1] == " search: priority>=high  (Esc: all)"
    assert len(seen.state.rows) == 1
    await seen.press("escape")
    assert len(seen.state.rows) == 2
    assert "unknown priority 'huge'" in "\n".join(await seen.press("/", "priority:huge", "enter"))


async def test_letters_are_text_while_something_is_typed(hf: Holdfast, screen: OpenScreen) -> None:
    hold = await ask(hf)
    seen = await screen(hf)

    await seen.press("o", "c", "1 2 q z?", "enter")

    assert seen.app.is_running
    notes = await seen.session.holds.comments(DANA, hold)
    assert [note.body for note in notes] == [b'{"text":"1 2 q z?"}']
    assert "user:dana@acme says, 0 s ago: 1 2 q z?" in seen.text


async def test_a_hold_is_handed_on_claimed_snoozed_and_watched(hf: Holdfast, screen: OpenScreen) -> None:
    hold = await ask(hf)
    seen = await screen(hf)

    await seen.press("m")
    assert (await seen.row(hold)).claimed_by == "user:dana@acme"
    await seen.press("m")
    assert (await seen.row(hold)).claimed_by is None
    await seen.press("w", "s", "enter")
    assert "No open holds for you." in seen.text
    assert "Refund 250?" in "\n".join(await seen.press("g", "s"))
    assert "Refund 250?" in "\n".join(await seen.press("g", "w"))
    await seen.press("g", "a", "r", "group:finance", "enter")
    assert "Reassigned to group:finance." in seen.text
    assert (await seen.row(hold)).assignee_value == "finance"


async def test_b_asks_back_and_y_replies(hf: Holdfast, screen: OpenScreen) -> None:
    hold = await ask(hf, timeout="2h")
    seen = await screen(hf)

    await seen.press("o", "b", "Which invoice?", "enter")
    assert (await seen.row(hold)).paused_at is not None
    assert "user:dana@acme asks user:ian@acme, 0 s ago: Which invoice?" in seen.text
    ian = await screen(hf, actor=operator("user:ian@acme", channel="inbox"), view="all")
    await ian.press("o", "y", "Number 42.", "enter")

    assert (await seen.row(hold)).paused_at is None
    assert "user:ian@acme replies, 0 s ago: Number 42." in "\n".join(await seen.others())


async def test_a_refusal_is_something_to_read(hf: Holdfast, screen: OpenScreen) -> None:
    await ask(hf)
    seen = await screen(hf)

    assert "is not a time" in "\n".join(await seen.press("s", "ctrl+u", "soon", "enter"))
    assert "After g: m mine" in "\n".join(await seen.press("g", "y"))
    assert "There are 2 decisions here." in "\n".join(await seen.press("o", "9"))


async def test_e_shows_all_of_the_context_and_the_history(hf: Holdfast, screen: OpenScreen) -> None:
    hold = await ask(hf, context={"lines": [f"line {i} of a long context" for i in range(20)]})
    seen = await screen(hf, size=(80, 80))

    assert "more lines: e" in "\n".join(await seen.press("o"))
    await seen.press("e")

    assert "line 19" in seen.text
    assert hold in seen.text
    assert "dana looked at it" in seen.text


async def test_a_store_that_does_not_answer_is_reported_and_tried_again(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch, screen: OpenScreen
) -> None:
    hold = await ask(hf)
    seen = await screen(hf)

    async def silent(*_: object, **__: object) -> None:
        raise StoreUnavailableError("the disk is gone.")

    with monkeypatch.context() as broken:
        broken.setattr(type(await hf.open()), "list_holds", silent)
        assert " Not up to date: the disk is gone." in await seen.others()
        assert "Refund 250?" in seen.text
        await seen.press("o", "1", "enter")
        assert "the disk is gone." in seen.text

    assert "Not up to date" not in "\n".join(await seen.others())
    assert (await seen.row(hold)).placed_by == "user:dana@acme"


async def test_votes_are_shown_and_counted(hf: Holdfast, screen: OpenScreen) -> None:
    people = ["user:dana@acme", "user:sam@acme", "user:kim@acme"]
    hold = await ask(hf, assignee=None, approval={"mode": "quorum", "need": 2, "of": people})
    await (await hf.holds()).vote(SAM, hold, "approve")
    seen = await screen(hf)

    lines = await seen.press("o")
    assert " needs       2 of user:dana@acme, user:sam@acme, user:kim@acme" in lines
    assert " voted       user:sam@acme: approve" in lines
    await seen.press("1", "enter")

    assert (await seen.row(hold)).status is HoldStatus.resolved


async def test_free_text_is_asked_for_where_there_are_no_options(hf: Holdfast, screen: OpenScreen) -> None:
    hold = await ask(hf, options=None, type="freeform", undo=0)
    seen = await screen(hf)

    await seen.press("o", "1", "enter", "It is fine.", "enter")

    assert b'"decision":"It is fine."' in ((await seen.row(hold)).resolution or b"")


@pytest.mark.parametrize(
    ("keys", "visible"),
    [
        ((), [">  ·  normal", "? help"]),
        (("o",), ["1 Approve", "u back"]),
        (("?",), ["Keys", "this page"]),
        (("o", "2", "enter", "why" * 14), ["Why reject?", "ywhy", "Enter continue"]),
        (("x", "1"), [">x ·  normal", "all 1"]),
    ],
)
async def test_every_screen_fits_its_terminal(
    hf: Holdfast, keys: tuple[str, ...], visible: list[str], screen: OpenScreen
) -> None:
    await ask(hf, prompt="请求退款 " * 12 + "x" * 90, context={"text": "word " * 200}, timeout="2h")
    seen = await screen(hf)
    await seen.press(*keys)

    for width in (20, 40, 60, 80, 110, 200):
        lines = await seen.resize(width, 24)
        assert len(lines) == 24
        assert [line for line in lines if cell_len(line) > width] == []
        assert [word for word in visible if width > 20 and word not in "\n".join(lines)] == [], width


async def test_what_a_flow_says_cannot_move_the_terminal(hf: Holdfast, screen: OpenScreen) -> None:
    await ask(hf, prompt="\x1b[2J\x07Pay?‮", context={"x": "\x1b]0;owned\x07"})
    seen = await screen(hf)

    assert not set(seen.text) & set("\x1b\x07‮")
    assert not set("\n".join(await seen.press("o"))) & set("\x1b\x07‮")


class Firm:
    """Who belongs to what, as it is now."""

    def __init__(self) -> None:
        self.finance = ("dana",)

    async def person(self, tenant: str, ref: str) -> Person | None:
        return Person(id=ref.partition("@")[0], email=f"{ref.partition('@')[0]}@acme")

    async def group(self, tenant: str, key: str) -> Circle | None:
        return Circle(key=key, members=self.finance)

    async def role(self, tenant: str, key: str) -> Circle | None:
        return None

    async def memberships(self, tenant: str, ref: str) -> Memberships:
        name = ref.partition("@")[0]
        return Memberships(groups=frozenset({"finance"} if name in self.finance else ()))

    async def stands_in_for(self, tenant: str, ref: str, now: int) -> list[Person]:
        return []


@pytest.mark.covers("RA-1")
async def test_what_went_to_somebody_else_is_closed_and_the_draft_is_kept(
    clock: FakeClock, screen: OpenScreen
) -> None:
    firm = Firm()
    async with Holdfast("memory:", clock=clock, directory=firm) as hf:
        hold = await ask(hf, assignee="group:finance", sections=FORM)
        seen = await screen(hf, actor=Actor(id="user:dana@acme", channel="inbox"), view="groups")
        assert "unassigned are for admins" not in seen.text
        assert "only admins can list unassigned holds" in "\n".join(await seen.press("g", "u"))
        await seen.press("o", "1", "enter", "99", "enter")
        await seen.session.holds.reassign(SAM, hold, "user:sam@acme")

        await seen.others()
        assert "This hold is no longer yours" in seen.text
        assert seen.state.rows == ()
        before = len(await (await hf.open()).audit("default", hold=hold))
        await seen.others()

        assert len(await (await hf.open()).audit("default", hold=hold)) == before
        draft = await seen.session.holds.draft(seen.session.actor, hold)
        assert draft is not None
        assert draft.response_data == {"amount": "99"}


async def test_a_click_opens_a_hold_and_decides_nothing(hf: Holdfast, screen: OpenScreen) -> None:
    await ask(hf, 1)
    second = await ask(hf, 2)
    seen = await screen(hf)

    await seen.pilot.click("HoldList", offset=(10, 2))
    await seen.painted()

    assert seen.state.open
    assert seen.state.current is not None
    assert seen.state.current.id == second
    assert (await seen.row(second)).placed is None


async def test_ctrl_c_in_a_form_quits_and_keeps_the_draft(hf: Holdfast, screen: OpenScreen) -> None:
    hold = await ask(hf, sections=FORM)
    seen = await screen(hf)

    await seen.press("o", "1", "enter", "99", "ctrl+c")

    assert not seen.app.is_running
    draft = await seen.session.holds.draft(DANA, hold)
    assert draft is not None
    assert draft.response_data == {"amount": "99"}


async def test_help_names_every_key_of_the_inbox(hf: Holdfast, screen: OpenScreen) -> None:
    seen = await screen(hf, size=(120, 60))

    text = "\n".join(await seen.press("?"))
    for line in (
        "1-9",
        "undo the last decision",
        "claim or release",
        "views: m mine",
        "ask a question first",
    ):
        assert line in text
    assert "Keys" not in "\n".join(await seen.press("j", "x"))
