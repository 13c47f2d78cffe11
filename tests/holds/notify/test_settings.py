"""Which channels there are: the operator's file, tenants' documents, and what is wrong with them."""

from __future__ import annotations

from base64 import b64encode

import msgspec
import pytest

from holdfast import Flow, Holdfast, Worker
from holdfast.errors import EgressError, SettingsError
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.actions.submission import Submission
from holdfast.holds.links.open import Links
from holdfast.holds.notify.channel import ChannelScope
from holdfast.holds.notify.channels import Channels
from holdfast.holds.notify.digest import Digest
from holdfast.holds.notify.settings import (
    NotifySettings,
    SlackSpec,
    WebhookSpec,
    parse_settings,
    read_settings,
    tenant_spec,
)
from holdfast.testing.clock import FakeClock
from holdfast.types.document import Document
from holdfast.types.hold import HoldRow
from holdfast.types.redaction import redactor
from tests.holds.notify.build import a_notice
from tests.holds.notify.scene import Diary, scene
from tests.holds.notify.servers import http_server, smtp_server

pytestmark = pytest.mark.anyio

SECRET = f"whsec_{b64encode(b's' * 32).decode()}"
MAIL = {"name": "mail", "kind": "smtp", "host": "h", "sender": "a@b"}


@pytest.mark.parametrize(
    ("channel", "named"),
    [
        ({"name": "x", "kind": "pigeon"}, "kind"),
        ({"name": "x", "kind": "smtp", "sender": "a@b"}, "host"),
        ({**MAIL, "prot": 25}, "prot"),
        ({**MAIL, "port": "many"}, "port"),
        ({**MAIL, "topics": ["hold.made"]}, "topics"),
        ({**MAIL, "priorities": ["urgent"]}, "priorities"),
        ({**MAIL, "name": ""}, "name"),
        ({**MAIL, "password": "${NOT_SET}"}, "NOT_SET"),
        ({"name": "x", "kind": "webhook", "url": "https://h"}, "secrets"),
    ],
)
def test_settings_name_the_field_when_a_channel_is_wrong(channel, named):
    with pytest.raises(SettingsError, match=named):
        parse_settings({"channel": [channel]}, "notify.toml", {})


def test_settings_refuse_two_channels_of_one_name():
    with pytest.raises(SettingsError, match="two channels named 'mail'"):
        parse_settings({"channel": [MAIL, MAIL]}, "notify.toml", {})


@pytest.mark.parametrize(("text", "said"), [(None, "cannot be read"), ("name = [", "is not TOML")])
def test_settings_say_what_is_wrong_with_their_file(tmp_path, text, said):
    file = tmp_path / "notify.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(SettingsError, match=said):
        read_settings(file)


async def test_secrets_come_from_the_environment_and_are_never_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("SLACK_URL", "https://hooks.slack.example/services/T0/B0/verysecret")
    file = tmp_path / "notify.toml"
    file.write_text('[[channel]]\nname = "ops"\nkind = "slack"\nurl = "${SLACK_URL}"\n')
    async with scene(settings=read_settings(file)) as it:
        (channel,) = await it.deliverer.channels.of("default")
    assert "verysecret" not in repr(channel)
    assert redactor.redact("see https://hooks.slack.example/services/T0/B0/verysecret") == "see ***"


@pytest.mark.covers("HOLD-SEC-06")
async def test_tenant_sets_up_only_what_the_rules_of_egress_watch_over():
    async with scene() as it:
        channels = it.deliverer.channels
        await channels.put(
            "default", WebhookSpec(name="crm", url="https://crm.example/hook", secrets=(SECRET,))
        )
        assert [channel.name for channel in await channels.of("default")] == ["crm"]
        assert await channels.of("other") == []
        for url in ("http://crm.example/", "https://10.0.0.1:22/", "https://metadata.google.internal/"):
            with pytest.raises(EgressError):
                await channels.put("default", SlackSpec(name="bad", url=url))
        for body in ({**MAIL}, {"name": "x", "kind": "apprise", "urls": ["json://x"]}):
            with pytest.raises(SettingsError):
                tenant_spec(msgspec.json.encode(body), "x")


async def test_tenant_reads_no_variable_of_the_process(monkeypatch):
    monkeypatch.setenv("AWS_SECRET", "from-the-process")
    spec = tenant_spec(
        msgspec.json.encode({"name": "x", "kind": "slack", "url": "https://h/${AWS_SECRET}"}), "x"
    )
    assert spec.url == "https://h/${AWS_SECRET}"


async def test_channel_of_a_tenant_is_passed_over_when_it_cannot_be_used(caplog):
    diary = Diary()
    async with scene(diary) as it:
        await it.store.put_document(Document(tenant="default", kind="channel", name="bad", body=b"{}"))
        await it.ask()
        assert (await it.deliverer.deliver()).done == 1
    assert len(diary.notices) == 1


async def test_what_the_operator_allows_is_not_allowed_to_tenants():
    async with http_server() as server, scene() as it:
        settings = NotifySettings(allow=server.egress.allow)
        channels = Channels(it.store, it.clock, settings=settings)
        body = msgspec.json.encode({"name": "x", "kind": "slack", "url": server.url})
        await it.store.put_document(Document(tenant="default", kind="channel", name="x", body=body))
        (channel,) = await channels.of("default")
        assert not (await channel.send(a_notice())).accepted
    assert server.seen == []


async def test_channel_is_reported_only_what_it_is_for():
    finance = Diary(
        "finance", scope=ChannelScope(assignees=("group:finance",)), people={"group:finance": ("f@x",)}
    )
    urgent = Diary("urgent", scope=ChannelScope(priorities=("critical",)), people={"group:finance": ("u@x",)})
    reminders = Diary(
        "late", scope=ChannelScope(topics=("hold.reminded",)), people={"group:finance": ("l@x",)}
    )
    async with scene(finance, urgent, reminders, assignee="group:finance") as it:
        await it.ask()
        await it.deliverer.deliver()
    assert [len(each.notices) for each in (finance, urgent, reminders)] == [1, 0, 0]


@pytest.mark.covers("NO-6")
async def test_digest_goes_to_admins_once_a_day_when_holds_are_unrouted():
    diary = Diary(admin=("ops@acme",))
    async with scene(diary, assignee="") as it:
        digest = Digest(it.store, it.deliverer.channels)
        assert await digest.send_all() == 0
        for _ in range(2):
            row = await it.ask()
        assert await digest.send_all() == 1
        assert await digest.send_all() == 0
        it.clock.advance(days=1)
        assert await digest.send_all() == 1
    assert diary.told() == [("holds.unrouted", "ops@acme")] * 2
    assert diary.notices[0].subject == "Unassigned: 2 questions are unassigned"
    assert row.id in diary.notices[0].prompt


@pytest.mark.covers("SAFE-EDGE-11")
async def test_notices_and_digests_mask_the_secrets_of_their_own_tenant():
    redactor.learn_for("default", "ours-1234")
    redactor.learn_for("other", "theirs-1234")
    diary = Diary(admin=("ops@acme",))
    try:
        for assignee in ("", "user:dana@acme.example"):
            async with scene(diary, assignee=assignee) as it:
                await it.ask(n="ours-1234 theirs-1234")
                await it.deliverer.deliver()
                await Digest(it.store, it.deliverer.channels).send_all()
    finally:
        redactor.forget()
    assert len(diary.notices) == 2
    assert all("*** theirs-1234" in notice.prompt for notice in diary.notices)


@pytest.mark.covers("HOLD-NOTE-02", "HOLD-NOTE-06", "NO-1")
async def test_mail_of_a_worker_leads_to_a_decision_by_its_link(tmp_path):
    """From a flow that asks to a mail in a mailbox, and by the link in it back to the run."""
    flow = Flow("refund", effect="read")
    flow.hold(
        "approve", prompt="Refund {{n}}?", options=["approve", "reject"], assignee="user:dana@acme.example"
    )
    async with smtp_server() as server:
        file = tmp_path / "notify.toml"
        file.write_text(
            f'base_url = "https://holdfast.example"\n[[channel]]\nname = "mail"\nkind = "smtp"\n'
            f'host = "127.0.0.1"\nport = {server.port}\nsecurity = "none"\nsender = "h@acme.example"\n'
        )
        async with Holdfast(f"sqlite:{tmp_path}/h.db", clock=FakeClock(), notify=file) as hf:
            waiting = await flow.run({"n": 3}, on=hf)
            worker = Worker(flow, on=hf)
            await worker.run_until_idle()
            text = server.mails[0].message.get_body(("plain",)).get_content()
            token = text.partition("https://holdfast.example/l/")[2].split()[0]
            store = await hf.open()
            looked = await Links(HoldContext(store)).look(token)
            assert isinstance(looked.row, HoldRow)
            await Links(HoldContext(store)).decide(token, Submission(decision="approve"))
            await worker.run_until_idle()
            done = await flow.resume(waiting.run_id, on=hf)
            await worker.close()
    assert done.completed
    assert done.state["decision"] == "approve"
