"""Inbound channels as a hostile caller sees them, on every store: forged, old, repeated and misdirected
messages, and headers that are sent twice."""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import AsyncIterator, Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import pytest

from holdfast import Holdfast
from holdfast.api.app import ApiSettings
from holdfast.api.inbound.mail_message import is_proven
from holdfast.api.inbound.settings import parse_settings
from holdfast.api.routes.all import THEMES
from holdfast.errors import SettingsError
from holdfast.holds.notify.webhook import secret_of, signed
from holdfast.types.terms import RESOLVE
from tests.api.people import Hall, hall_of
from tests.flows.conftest import address_of

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SERVER-IN-01", "SERVER-IN-02", "SERVER-IN-03")]

STORES: Final = ("sqlite", "postgres", "mariadb")
WEBHOOK = "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo="
MAIL = "whsec_" + "MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDA="
TRUSTED = "whsec_" + "MTExMTExMTExMTExMTExMTExMTExMTExMTE="
AWAY = "whsec_" + "MjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjI="
SLACK = "8f742231b10e8888abcd99yyyzzz85a5"
WAYS: list[dict[str, Any]] = [
    {"name": "erp", "kind": "webhook", "secrets": [WEBHOOK], "actor": "service:erp", "rights": [RESOLVE]},
    {"name": "queue", "kind": "webhook", "secrets": [TRUSTED], "actor": "service:queue", "trusted": True},
    {
        "name": "away",
        "kind": "webhook",
        "secrets": [AWAY],
        "actor": "service:erp",
        "rights": [RESOLVE],
        "tenant": "elsewhere",
    },
    {"name": "desk", "kind": "slack", "secrets": [SLACK], "people": {"U1": "user:dana@acme"}},
    {"name": "mail", "kind": "mail", "secrets": [MAIL], "address": "r@in.acme", "authserv_id": "mx.acme"},
]


@pytest.fixture(params=STORES)
async def hall(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Hall]:
    settings = ApiSettings(inbound=parse_settings({"way": WAYS}))
    async with Holdfast(await address_of(request.param, tmp_path)) as hf, hall_of(hf, settings) as found:
        yield found


WRONG_TIMES: Final = ("", "-1", "9" * 400, "\u0661" * 10, "1e9", "0x5f", "1\t1")
Signer = Callable[[bytes, float], dict[str, str]]


def standard(secret: str, message: str = "msg_1") -> Signer:
    return lambda body, at: signed(message, int(time.time() + at), body, [secret_of(secret, "test")])


def by_slack(body: bytes, at: float) -> dict[str, str]:
    stamp = str(int(time.time() + at))
    mac = hmac.new(SLACK.encode(), f"v0:{stamp}:".encode() + body, sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={mac}"}


def completion(hold: str, **more: Any) -> bytes:
    return json.dumps({"data": {"correlation_id": hold, "decision": "approve", **more}}).encode()


def click(hold: str) -> bytes:
    value = json.dumps({"hold": hold, "decision": "approve", "epoch": 1, "request_hash": ""})
    action = {"action_id": "holdfast:approve", "value": value, "action_ts": "1.1"}
    found = {"type": "block_actions", "user": {"id": "U1"}, "actions": [action]}
    return urlencode({"payload": json.dumps(found)}).encode()


def letter(hold: str) -> bytes:
    return b"From: dana@acme\nTo: r@in.acme\n\napprove\n"


CHANNELS: dict[str, tuple[str, Signer, Callable[[str], bytes]]] = {
    "/v1/inbound/webhooks/{way}": ("erp", standard(WEBHOOK), completion),
    "/v1/inbound/slack/{way}": ("desk", by_slack, click),
    "/v1/inbound/mail/{way}": ("mail", standard(MAIL), letter),
}


def test_every_inbound_channel_is_attacked_here() -> None:
    found = [route for theme in THEMES for route in theme.found if route.path.startswith("/v1/inbound/")]
    assert {route.path for route in found if route.method == "POST"} == set(CHANNELS)


async def sent(hall: Hall, path: str, body: bytes, headers: Any, way: str = "") -> int:
    address = path.format(way=way or CHANNELS[path][0])
    return (await hall.client.post(address, content=body, headers=headers)).status_code


@pytest.mark.parametrize("path", CHANNELS)
async def test_nothing_is_taken_that_is_not_signed_now_for_this_channel(hall: Hall, path: str) -> None:
    hold = await hall.asks()
    _, sign, content = CHANNELS[path]
    body = content(hold)
    good = sign(body, 0)
    forged = [(name, value[:-3] + ("AAA" if value[-3:] != "AAA" else "BBB")) for name, value in good.items()]
    attempts: list[Any] = [
        {}, sign(body, -301), sign(body, 302), sign(body + b" ", 0), forged,
        *([*good.items(), (name, value)] for name, value in good.items()),
        *([(name, "1"), *good.items()] for name in good),
        {name: value for name, value in good.items() if "signature" not in name.lower()},
        *({**good, name: wrong} for name in good if "timestamp" in name.lower() for wrong in WRONG_TIMES),
    ]  # fmt: skip
    for each in attempts:
        items = each.items() if isinstance(each, dict) else each
        raw = [(name.encode(), value.encode()) for name, value in items]
        # 400: a header that is sent twice.
        assert await sent(hall, path, body, raw) in (400, 401), raw
    for other in CHANNELS:
        if other != path:
            assert await sent(hall, path, body, CHANNELS[other][1](body, 0)) == 401
    assert (await hall.ask("ada", "GET", f"/v1/holds/{hold}"))["status"] == "pending"


async def test_a_signed_message_is_not_taken_by_another_channel_or_tenant(hall: Hall) -> None:
    hold = await hall.asks()
    path, body = "/v1/inbound/webhooks/{way}", completion(hold, completed_by="user:dana@acme")
    headers = standard(WEBHOOK)(body, 0)
    for way in ("queue", "away"):
        assert await sent(hall, path, body, headers, way) == 401
    # The channel of another tenant, by its own sender, finds nothing, whatever tenant the event names.
    for tenant in ("default", "elsewhere", None):
        event = json.dumps(
            {"tenant": tenant, "data": {"correlation_id": hold, "decision": "approve"}}
        ).encode()
        answer = await hall.client.post(
            path.format(way="away"), content=event, headers=standard(AWAY, f"m{tenant}")(event, 0)
        )
        assert answer.json()["outcome"] == "ignored"
        assert answer.json()["checkpoint_id"] is None
    assert (await hall.ask("ada", "GET", f"/v1/holds/{hold}"))["status"] == "pending"


async def test_a_mail_that_arrives_twice_is_taken_once(hall: Hall) -> None:
    body = letter("")
    headers = standard(MAIL)(body, 0)
    said = [
        (await hall.client.post("/v1/inbound/mail/mail", content=body, headers=headers)).json()["outcome"]
        for _ in range(2)
    ]
    assert said == ["ignored", "duplicate"]
    other = b"From: sam@acme\n\nreject\n"
    answer = await hall.client.post("/v1/inbound/mail/mail", content=other, headers=standard(MAIL)(other, 0))
    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")


@pytest.mark.parametrize("other", ["webhook", "mail", "slack"])
def test_two_channels_with_one_secret_are_refused(other: str) -> None:
    ways = [dict(each) for each in WAYS]
    twin = next(each for each in ways if each["kind"] == other)
    with pytest.raises(SettingsError, match="same secret"):
        parse_settings({"way": [*ways, {**twin, "name": "twin", "tenant": "elsewhere"}]})


PASSED = "mx.acme; spf=pass smtp.mailfrom={said}"
SAID = (
    '"x; dmarc=pass header.from=acme; y"@evil.example',
    '"x\\"; dmarc=pass header.from=acme; y"@evil.example',
    "(a (b); dmarc=pass header.from=acme ) evil.example",
    "(a \\) ; dmarc=pass header.from=acme ) evil.example",
    "evil.example; dmarc=pass x.header.from=acme header.from=evil.example",
    'evil.example; dmarc=pass policy.x="a header.from=acme" header.from=evil.example',
)


@pytest.mark.parametrize("said", SAID)
def test_what_a_sender_wrote_is_no_result_of_the_mail_server(said: str) -> None:
    assert not is_proven([PASSED.format(said=said)], "dana@acme", "mx.acme")
    good = 'mx.acme; spf=pass (ok (really)) smtp.mailfrom="evil"; dmarc=pass (p="x;y") header.from="acme"'
    assert is_proven([good], "dana@acme", "mx.acme")
