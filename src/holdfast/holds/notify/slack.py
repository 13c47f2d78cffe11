"""Slack, by an incoming webhook. If its app sends clicks back to this server, holds can be decided in
Slack."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.holds.notify.channel import Delivery
from holdfast.holds.notify.escape import clean_text, for_slack, one_line
from holdfast.holds.notify.http_post import HttpChannel
from holdfast.holds.notify.notice import Notice
from holdfast.types.hold import Option

# Slack's own limits.
MAX_HEADER = 150
MAX_SECTION = 2900


ACTION = "holdfast_decide"
MAX_BUTTONS = 10
_STYLES = {"primary": "primary", "danger": "danger"}


class Click(msgspec.Struct, frozen=True):
    """The value of a button: a decision, bound to the content shown and to the assignment."""

    hold: str
    decision: str
    epoch: int
    request_hash: str


class Slack(HttpChannel):
    """`buttons`: show the options as buttons; its app then sends clicks to this server
    (`/v1/inbound/slack/...`), which checks the permission of the person who clicked."""

    def __init__(self, name: str, url: str, *, buttons: bool = False, **common: Any) -> None:
        super().__init__(name, url, **common)
        self._buttons = buttons

    async def send(self, notice: Notice) -> Delivery:
        return await self._post(msgspec.json.encode(card(notice, buttons=self._buttons)))


def card(notice: Notice, *, buttons: bool = False) -> dict[str, Any]:
    """Texts of flows are `plain_text`, which has neither mentions nor formatting. Link previews are off: a
    preview must not be the first to open the link."""
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": _plain(one_line(notice.subject, MAX_HEADER))},
        {"type": "section", "text": _plain(clean_text(notice.prompt, MAX_SECTION - 100) or notice.title)},
    ]
    facts = [_plain(f"{name}: {one_line(value, 300)}") for name, value in notice.facts()]
    if facts:
        blocks.append({"type": "context", "elements": facts[:10]})
    clickable = [option for option in notice.options if option.requires_comment is not True]
    if buttons and clickable and not notice.is_about_the_end:
        elements = [_button(notice, option) for option in clickable[:MAX_BUTTONS]]
        blocks.append({"type": "actions", "elements": elements})
    if notice.link:
        link = {"type": "mrkdwn", "text": f"<{notice.link}|Open it to decide>"}
        blocks.append({"type": "section", "text": link})
    return {
        "text": for_slack(notice.subject),
        "mrkdwn": False,
        "unfurl_links": False,
        "unfurl_media": False,
        "blocks": blocks,
    }


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text, "emoji": False}


def _button(notice: Notice, option: Option) -> dict[str, Any]:
    click = Click(notice.hold, option.id, notice.epoch, notice.request_hash)
    found: dict[str, Any] = {
        "type": "button",
        "action_id": f"{ACTION}:{option.id}"[:255],
        "text": _plain(one_line(option.text, 75)),
        "value": msgspec.json.encode(click).decode(),
    }
    return {**found, "style": _STYLES[option.variant]} if option.variant in _STYLES else found
