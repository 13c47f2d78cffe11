"""Texts that are meant to deceive or to fill the screen: in drafts, pastes, labels, values and forms."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Holdfast
from tests.holds.inbox.inboxes import OpenScreen, ask

pytestmark = [pytest.mark.anyio, pytest.mark.covers("HOLD-HAND-01", "SAFE-EDGE-07")]
HOSTILE = "\x1b[2J\x1b]0;title\x07\u202egnp\u200b\x9b31m\x08"
HIDDEN = frozenset("\x1b\x07\x08\x9b\u202e\u200b")


def fields(*names: str, **more: Any) -> list[dict[str, Any]]:
    asked = [
        {"type": "input", "field": name, "kind": "text", "label": name.upper(), **more} for name in names
    ]
    return [*asked, {"type": "decision", "field": "decision", "options": ["approve", "reject"]}]


async def test_a_draft_or_a_paste_cannot_move_the_terminal_in_the_line_to_type_in(
    hf: Holdfast, screen: OpenScreen
) -> None:
    hold = await ask(hf, sections=fields("memo", "other"))
    page = await screen(hf)
    draft = {"decision": "approve", "response_data": {"memo": HOSTILE}, "comment": None}
    await page.session.holds.save_draft(page.session.actor, hold, draft)
    await page.press("R", "o", "1", "enter")
    assert "MEMO" in page.text
    assert not set(page.text) & HIDDEN
    assert "\u241b[2J" in page.text
    await page.press("enter")
    assert "OTHER" in page.text
    await page.paste(f"fine{HOSTILE}")
    assert "fine\u241b[2J" in page.text
    assert not set(page.text) & HIDDEN
    await page.press("escape")
    # What was written is kept as it is: only its look is changed.
    kept = await page.session.holds.draft(page.session.actor, hold)
    assert kept is not None
    assert kept.response_data["memo"] == HOSTILE


@pytest.mark.parametrize("size", [(80, 24), (120, 30), (46, 20)])
async def test_a_long_label_hides_neither_the_question_nor_another_option(
    hf: Holdfast, screen: OpenScreen, size: tuple[int, int]
) -> None:
    words = "and so on " * 300
    await ask(hf, options=[{"id": "yes", "label": f"Pay {words}all"}, {"id": "no", "label": "Refuse it"}])
    page = await screen(hf, size=size)
    await page.press("o")
    assert "Refund 250?" in page.text
    assert "2 Refuse it" in page.text
    assert "Options" in page.text


@pytest.mark.parametrize("height", [24, 16])
async def test_the_line_to_type_in_stays_in_sight_however_long_the_texts_around_it_are(
    hf: Holdfast, screen: OpenScreen, height: int
) -> None:
    await ask(hf, sections=fields(*(f"field{i}" for i in range(100)), help="more help " * 200))
    page = await screen(hf, size=(80, height))
    await page.press("o", "1", "enter")
    for _ in range(6):
        await page.press("value " * 100, "enter")
    await page.press("typed-now")
    assert "typed-now" in page.text
    assert "FIELD6" in page.text
