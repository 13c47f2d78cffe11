"""Clicks in Slack: signed, by somebody who is known and may, once; the outcome takes the card's place."""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from holdfast import Holdfast
from holdfast.api.app import ApiSettings
from holdfast.api.inbound.settings import parse_settings
from holdfast.errors import SettingsError
from holdfast.holds.notify.settings import parse_settings as notify_settings
from tests.api.people import Hall, hall_of
from tests.deadlines import HANG
from tests.holds.notify.servers import HttpServer, http_server

pytestmark = pytest.mark.anyio

SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
URL = "/v1/inbound/slack/desk"
WAY = {"name": "desk", "kind": "slack", "secrets": [SECRET], "people": {"U1": "user:dana@acme"}}


class Harness:
    """A workspace of Slack: what the server posts there, and what people click."""

    def __init__(self, hall: Hall, slack: HttpServer) -> None:
        self.hall = hall
        self.slack = slack
        self.clicks = 0

    async def card(self) -> dict[str, Any]:
        """The newest that the channel was told."""
        deliverer = (await self.hall.hf.service()).runtime.deliverer
        assert deliverer is not None
        await deliverer.deliver()
        return self.slack.seen[-1].json

    async def click(self, card: dict[str, Any], label: str, *, user: str = "U1", **odd: Any) -> int:
        (actions,) = [block for block in card["blocks"] if block["type"] == "actions"]
        (button,) = [each for each in actions["elements"] if each["text"]["text"] == label]
        self.clicks += 1
        payload = {
            "type": "block_actions",
            "user": {"id": user},
            "team": {"id": "T1"},
            "response_url": self.slack.url,
            "actions": [{**button, "action_ts": odd.pop("ts", f"{self.clicks}.0")}],
        }
        return await self.post(urlencode({"payload": json.dumps(payload)}).encode(), **odd)

    async def post(
        self, body: bytes, *, at: float = 0, secret: str = SECRET, sent: bytes | None = None
    ) -> int:
        stamp = str(int(time.time() + at))
        mac = hmac.new(secret.encode(), f"v0:{stamp}:".encode() + body, sha256).hexdigest()
        headers = {
            "X-Slack-Request-Timestamp": stamp,
            "X-Slack-Signature": f"v0={mac}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        answer = await self.hall.client.post(URL, content=sent or body, headers=headers)
        return answer.status_code

    async def told(self, count: int) -> dict[str, Any]:
        """What Slack was told after so many posts: it is told after the click is answered."""
        async with asyncio.timeout(HANG):
            while len(self.slack.seen) < count:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert len(self.slack.seen) == count
        return self.slack.seen[-1].json

    async def status(self, hold: str) -> tuple[str, str | None]:
        row = await self.hall.ask("ada", "GET", f"/v1/holds/{hold}")
        return row["status"], row["resolved_by"]


@pytest.fixture
async def harness(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Harness]:
    async with http_server() as slack:
        allow = [f"127.0.0.1:{slack.port}"]
        channel = {"name": "desk", "kind": "slack", "url": slack.url, "buttons": True, "outcomes": False}
        notify = notify_settings({"channel": [channel], "allow": allow})
        inbound = parse_settings({"way": [WAY], "allow": allow})
        async with (
            Holdfast(f"sqlite:{tmp_path / 'h.db'}", notify=notify) as hf,
            hall_of(hf, ApiSettings(inbound=inbound)) as hall,
        ):
            yield Harness(hall, slack)


@pytest.mark.covers("SERVER-IN-01")
async def test_click_decides_once_and_the_outcome_takes_the_place_of_the_card(harness: Harness) -> None:
    hold = await harness.hall.asks()
    card = await harness.card()
    assert await harness.click(card, "Approve", ts="7.1") == 200
    assert await harness.status(hold) == ("resolved", "user:dana@acme")
    result = await harness.told(2)
    assert result["replace_original"] is True
    assert "approve" in result["text"]
    row = await harness.hall.ask("ada", "GET", f"/v1/holds/{hold}")
    assert (row["resolution"]["channel"], row["resolution"]["auth_method"]) == ("slack", "slack")
    assert await harness.click(card, "Approve", ts="7.1") == 200
    assert await harness.click(card, "Reject", ts="7.2") == 200
    assert "approve" in (await harness.told(4))["text"]
    history = (await harness.hall.ask("ada", "GET", f"/v1/holds/{hold}/history"))["items"]
    assert [each["action"] for each in history].count("resolved") == 1


@pytest.mark.covers("SERVER-IN-01")
async def test_click_that_is_not_signed_by_slack_now_is_refused(harness: Harness) -> None:
    hold = await harness.hall.asks()
    card = await harness.card()
    for odd in ({"secret": "0" * 32}, {"at": -301}, {"at": 301}, {"sent": b"payload=%7B%7D"}):
        assert await harness.click(card, "Approve", **odd) == 401, odd
    unsigned = await harness.hall.client.post(URL, content=b"payload={}")
    elsewhere = await harness.hall.client.post("/v1/inbound/slack/other", content=b"")
    assert (unsigned.status_code, elsewhere.status_code) == (401, 404)
    assert await harness.post(b"payload=%7Bnot") == 422
    assert await harness.post(b"ssl_check=1") == 200
    assert await harness.status(hold) == ("pending", None)


@pytest.mark.covers("SERVER-IN-01")
async def test_a_caller_who_clicks_must_be_known_and_may_still_decide(harness: Harness) -> None:
    hold = await harness.hall.asks()
    card = await harness.card()
    assert await harness.click(card, "Approve", user="U2") == 200
    assert (await harness.told(2))["response_type"] == "ephemeral"
    people = f"{URL}/people/U2"
    assert (
        await harness.hall.send("dana", "PUT", people, json={"person": "user:sam@acme"})
    ).status_code == 403
    assert (
        await harness.hall.send("eve", "PUT", people, json={"person": "user:sam@acme"})
    ).status_code == 404
    await harness.hall.ask("ada", "PUT", people, status=204, json={"person": "user:sam@acme"})
    assert await harness.click(card, "Approve", user="U2") == 200
    assert "not to user:sam@acme" in (await harness.told(3))["text"]
    assert await harness.status(hold) == ("pending", None)
    # It goes to Sam: the card of before is not Dana's any more, and not the one that Sam was shown.
    await harness.hall.ask("ada", "POST", f"/v1/holds/{hold}/reassign", json={"assignee": "user:sam@acme"})
    for user in ("U1", "U2"):
        await harness.click(card, "Approve", user=user)
    assert await harness.status(hold) == ("pending", None)
    await harness.told(5)
    assert await harness.click(await harness.card(), "Reject", user="U2") == 200
    assert await harness.status(hold) == ("resolved", "user:sam@acme")


@pytest.mark.parametrize(
    ("way", "named"),
    [
        ({**WAY, "secrets": []}, "secret"),
        ({**WAY, "secrets": ["short"]}, "signing secret"),
        ({**WAY, "secrets": ["${NOT_THERE}"]}, "NOT_THERE"),
        ({**WAY, "people": {"U1": "group:all"}}, "people.U1"),
        ({**WAY, "name": "a/b"}, "name"),
        ({**WAY, "colour": 1}, "colour"),
        ({"name": "w", "kind": "webhook", "secrets": ["whsec_AAAA"], "actor": "service:x"}, "secrets"),
    ],
)
def test_settings_name_what_is_wrong_and_show_no_secret(way: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings({"way": [way]}, environment={})
    assert named in str(caught.value)
    assert not [secret for secret in way["secrets"] if secret in str(caught.value) and "$" not in secret]
