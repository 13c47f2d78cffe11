"""Slack, by an incoming webhook: it is told, and cannot answer here."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.holds.notify.channel import Delivery
from holdfast.holds.notify.escaping import for_slack, one_line, shown
from holdfast.holds.notify.hooking import Hook
from holdfast.holds.notify.notice import Notice

# Slack's own limits.
MAX_HEADER = 150
MAX_SECTION = 2900


class Slack(Hook):
    async def send(self, notice: Notice) -> Delivery:
        return await self._post(msgspec.json.encode(card(notice)))


def card(notice: Notice) -> dict[str, Any]:
    """What flows say stands in `plain_text`, which has neither mentions nor formatting. Slack is told not to
    look the link up: a preview must not be the first to open it."""
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": _plain(one_line(notice.subject, MAX_HEADER))},
        {"type": "section", "text": _plain(shown(notice.prompt, MAX_SECTION - 100) or notice.title)},
    ]
    facts = [_plain(f"{name}: {one_line(value, 300)}") for name, value in notice.facts()]
    if facts:
        blocks.append({"type": "context", "elements": facts[:10]})
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
