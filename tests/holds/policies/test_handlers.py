"""Whoever is told of a hold, or asked about one, besides people."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import pytest

from holdfast import Holdfast, Interactions, Judgement, RunStatus
from holdfast.errors import SettingsError
from holdfast.holds.interactions import approval
from holdfast.holds.notify.channel import ChannelScope, Delivery
from holdfast.holds.notify.notice import Notice
from holdfast.holds.notify.slack import Slack
from holdfast.holds.policies.policy import Policy
from holdfast.holds.policies.rules import Rule
from holdfast.holds.policies.webhook_judge import WebhookJudge
from holdfast.testing.clock import FakeClock
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Assignee
from tests.holds.notify.servers import http_server
from tests.holds.policies.flows import actions, given, hold_of, refund, said

pytestmark = pytest.mark.anyio

SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()


def policy(judge: WebhookJudge) -> Policy:
    return Policy("p", Rule(name="r", judge="hook"), judges={"hook": judge})


@pytest.mark.covers("G-47", "HOLD-POL-02")
@pytest.mark.parametrize(
    ("answer", "paid"),
    [
        ({"approved": True}, True),
        ({"approved": False, "confidence": 0.9, "reasoning": "no"}, False),
        ({"decision": "approve", "confidence": 0.8}, True),
    ],
)
async def test_a_webhook_judges(answer: dict[str, Any], paid: bool) -> None:
    async with http_server() as server:
        server.says(200, body=json.dumps(answer))
        judge = WebhookJudge(server.url, secrets=[SECRET], egress=server.egress)
        async with Holdfast("memory:", policies=policy(judge)) as hf:
            result = await refund().run(given(7), on=hf)
            assert result.state["paid"] is paid
            assert (await said(hf, result))["decided_by"] == "webhook"
        (seen,) = server.seen
        assert seen.json["data"]["context"] == {"amount": 7, "note": ""}
        assert seen.headers["webhook-signature"].startswith("v1,")


@pytest.mark.covers("G-47", "HOLD-POL-02")
@pytest.mark.parametrize("status", [500, 404, 302])
@pytest.mark.parametrize("on_refusal", ["people", "reject"])
async def test_a_webhook_that_refuses_never_approves(status: int, on_refusal: str) -> None:
    async with http_server() as server:
        server.says(status, body='{"approved": true}')
        judge = WebhookJudge(server.url, secrets=[SECRET], egress=server.egress, on_refusal=on_refusal)
        async with Holdfast("memory:", policies=policy(judge)) as hf:
            result = await refund().run(given(7), on=hf)
            if on_refusal == "people":
                assert result.status is RunStatus.pending_input
            else:
                assert result.state["paid"] is False
                assert (await said(hf, result))["comment"] == f"the webhook answered {status}"


@pytest.mark.covers("G-47", "HOLD-POL-02")
async def test_a_webhook_inside_is_not_asked() -> None:
    async with http_server() as server:
        judge = WebhookJudge(server.url, secrets=[SECRET])
        async with Holdfast("memory:", policies=policy(judge)) as hf:
            result = await refund().run(given(7), on=hf)
            assert result.status is RunStatus.pending_input
            assert "left_to_people" in await actions(hf, result.holds[0].id)
        assert server.seen == []
    with pytest.raises(SettingsError):
        WebhookJudge("https://x.example", secrets=["short"])


class Eager:
    """A channel whose other side says yes to everything."""

    name = "eager"
    scope = ChannelScope()
    personal = False

    def __init__(self) -> None:
        self.sent: list[Notice] = []

    async def addresses(self, to: Assignee, tenant: str) -> Sequence[str]:
        return ["everybody"]

    async def admins(self) -> Sequence[str]:
        return []

    async def send(self, notice: Notice) -> Delivery:
        self.sent.append(notice)
        return Delivery(accepted=True, detail="approve, approved, yes")


@pytest.mark.covers("G-47")
@pytest.mark.parametrize("kind", ["slack", "eager"])
async def test_being_reported_is_no_approval(kind: str) -> None:
    async with http_server() as server:
        server.says(200, body='{"ok": true, "approved": true, "decision": "approve"}')
        channel: Any = Slack("slack", server.url, egress=server.egress) if kind == "slack" else Eager()
        async with Holdfast("memory:", channels=[channel]) as hf:
            result = await refund().run(given(7), on=hf)
            deliverer = (await hf.service()).runtime.deliverer
            assert deliverer is not None
            await deliverer.deliver()
            row = await hold_of(hf, result.run_id)
            assert (row.notification_sent, row.status) == (True, HoldStatus.pending)
            assert (await refund().resume(result.run_id, on=hf)).status is RunStatus.pending_input


@pytest.mark.covers("HOLD-POL-02")
@pytest.mark.parametrize("sure", [True, False])
async def test_people_hear_only_of_what_a_policy_leaves_to_them(sure: bool) -> None:
    clock, channel = FakeClock(auto=True), Eager()
    policy = Policy("p", Rule(name="r", judge="j"), judges={"j": lambda _: Judgement("approve", float(sure))})
    async with Holdfast("memory:", clock=clock, channels=[channel], policies=policy) as hf:
        runtime = (await hf.service()).runtime
        # A worker delivers while the judge still thinks.
        arbiter, runtime.arbiter = runtime.arbiter, None
        result = await refund().run(given(7), on=hf)
        assert arbiter is not None
        assert runtime.deliverer is not None
        await runtime.deliverer.deliver()
        assert channel.sent == []
        await arbiter.work()
        clock.advance(minutes=1)
        await runtime.deliverer.deliver()
        assert [notice.topic for notice in channel.sent] == ([] if sure else ["hold.created"])
        assert (await refund().resume(result.run_id, on=hf)).completed is sure


@pytest.mark.covers("G-46")
@pytest.mark.parametrize("severity", ["critical", "low"])
async def test_a_notice_says_what_is_asked_how_urgent_it_is_and_until_when(severity: str) -> None:
    channel = Eager()
    async with Holdfast("memory:", channels=[channel]) as hf:
        asked = await Interactions(hf).request(approval("Pay 250?", severity=severity, assignee="user:dana"))
        runtime = (await hf.service()).runtime
        assert runtime.deliverer is not None
        await runtime.deliverer.deliver()
        row = await hold_of(hf, asked.run)
        (notice,) = channel.sent
        assert (notice.type, notice.hold, notice.title) == ("approval", asked.hold, "Pay 250?")
        assert notice.priority == {"low": "normal"}.get(severity, severity)
        assert notice.expires_at == row.expires_at
