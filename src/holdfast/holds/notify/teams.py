"""Microsoft Teams, by the webhook of a workflow that posts cards. Holds cannot be decided in Teams."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.holds.notify.channel import Delivery
from holdfast.holds.notify.escape import clean_text, one_line
from holdfast.holds.notify.http_post import HttpChannel
from holdfast.holds.notify.notice import Notice

MAX_PROMPT = 10_000  # a card has at most 28 kB


class Teams(HttpChannel):
    async def send(self, notice: Notice) -> Delivery:
        return await self._post(msgspec.json.encode(message(notice)))


def message(notice: Notice) -> dict[str, Any]:
    attachment = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": card(notice),
    }
    return {"type": "message", "attachments": [attachment]}


def card(notice: Notice) -> dict[str, Any]:
    """Texts of flows are text runs: text blocks would interpret them as Markdown."""
    body = [
        _text(notice.subject, weight="Bolder", size="Medium"),
        _text(clean_text(notice.prompt, MAX_PROMPT)),
    ]
    body += [_text(f"{name}: {one_line(value, 300)}", size="Small") for name, value in notice.facts()]
    found: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.2",
        "body": body,
    }
    if notice.link:
        found["actions"] = [{"type": "Action.OpenUrl", "title": "Open it to decide", "url": notice.link}]
    return found


def _text(text: str, **style: str) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text or " ", **style}]}
