"""Webhooks as CloudEvents, read by the official libraries."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import msgspec
import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_http_event

from holdfast.errors import SettingsError
from holdfast.holds.notify.channels import make
from holdfast.holds.notify.settings import tenant_spec
from holdfast.holds.notify.webhook import Webhook, is_signed, secret_of
from holdfast.testing.clock import FakeClock
from holdfast.types.clock import MICROS
from holdfast.types.ids import derived_id
from tests.holds.notify.build import a_notice
from tests.holds.notify.servers import http_server
from tests.services import cloudevents as javascript

pytestmark = pytest.mark.anyio
SECRET = f"whsec_{b64encode(b's' * 32).decode()}"
FORMATS = ("cloudevents", "cloudevents-binary")
LARGE = "Ersatz für Größe 42, 💶? " * 2_600  # over 64 KB


async def _sent(form: Any, **fields: Any) -> list[Any]:
    """The same notice twice, as after a crash: the second one later."""
    clock = FakeClock()
    async with http_server() as server:
        channel = Webhook("crm", server.url, secrets=[SECRET], egress=server.egress, clock=clock, format=form)
        for _ in range(2):
            assert (await channel.send(a_notice(to="crm", **fields))).accepted
            clock.advance(minutes=1)
    for seen in server.seen:
        now = int(seen.headers["webhook-timestamp"])
        assert abs(now * MICROS - clock.now()) < 200 * MICROS
        assert is_signed(seen.headers, seen.body, [secret_of(SECRET, "x")], now)
    return server.seen


@pytest.mark.covers("IN-90")
@pytest.mark.parametrize("form", FORMATS)
async def test_the_python_library_reads_each_form_and_its_id_stays_over_retries(form: str) -> None:
    assert len(LARGE.encode()) > 64 << 10
    events = [
        from_http_event(HTTPMessage(dict(seen.headers), seen.body))
        for seen in await _sent(form, prompt=LARGE, tenant="Köln 7", hold="h-\u00fc")
    ]
    first, again = events
    assert first.get_id() == again.get_id()
    assert first.get_specversion() == "1.0"
    assert first.get_source() == f"/tenants/K%C3%B6ln%207/runs/{derived_id('r1')}"
    assert first.get_type() == "dev.holdfast.hold.created"
    assert first.get_subject() == "h-\u00fc"
    assert first.get_extension("tenant") == "Köln 7"
    assert first.get_time() is not None
    data: Any = first.get_data()
    if isinstance(data, (str, bytes)):
        data = msgspec.json.decode(data)
    assert data["prompt"] == LARGE
    assert data["assignee"] == {"type": "user", "value": "dana@acme.example"}


@pytest.mark.covers("IN-90")
async def test_the_javascript_library_reads_both_forms() -> None:
    messages = [(seen.headers, seen.body) for form in FORMATS for seen in await _sent(form, prompt=LARGE)]
    found = javascript.read(messages)
    assert len({event["id"] for event in found}) == 1
    assert {event["type"] for event in found} == {"dev.holdfast.hold.created"}
    assert {event["data"]["prompt"] for event in found} == {LARGE}


@pytest.mark.covers("IN-90")
async def test_without_a_format_a_webhook_is_as_before() -> None:
    seen, _ = await _sent("json")
    assert seen.headers["content-type"] == "application/json"
    assert set(seen.json) == {"type", "timestamp", "tenant", "data"}


async def test_the_format_of_the_settings_is_the_one_that_is_sent() -> None:
    async with http_server() as server:
        spec = {"kind": "webhook", "name": "crm", "url": server.url, "secrets": [SECRET]}
        body = msgspec.json.encode({**spec, "format": "cloudevents"})
        channel = make(tenant_spec(body, "crm"), server.egress, FakeClock(), None)
        assert (await channel.send(a_notice())).accepted
    assert server.seen[0].headers["content-type"] == "application/cloudevents+json"


def test_a_format_that_is_not_known_is_refused_with_its_place() -> None:
    body = msgspec.json.encode(
        {"kind": "webhook", "name": "crm", "url": "https://h.example", "secrets": [SECRET], "format": "avro"}
    )
    with pytest.raises(SettingsError, match="format"):
        tenant_spec(body, "crm")
