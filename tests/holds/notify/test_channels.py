"""Each channel against a real server: what arrives, and what its answers mean."""

from __future__ import annotations

import json
from base64 import b64encode

import msgspec
import pytest

from holdfast.errors import SettingsError
from holdfast.holds.directory.absence import Away
from holdfast.holds.directory.base import Circle, Person
from holdfast.holds.egress import Egress
from holdfast.holds.notify.apprise_bridge import AppriseChannel
from holdfast.holds.notify.mail import MailServer, Smtp
from holdfast.holds.notify.slack import Slack
from holdfast.holds.notify.teams import Teams
from holdfast.holds.notify.webhook import Webhook, is_signed, secret_of
from holdfast.testing.clock import FakeClock
from holdfast.types.clock import MICROS
from holdfast.types.terms import Assignee
from tests.holds.notify.build import NASTY, a_notice
from tests.holds.notify.servers import Certificate, http_server, smtp_server

pytestmark = pytest.mark.anyio

# The library's own affair.
THEIRS = pytest.mark.filterwarnings("ignore::DeprecationWarning")

OLD = f"whsec_{b64encode(b'o' * 32).decode()}"
NEW = f"whsec_{b64encode(b'n' * 32).decode()}"


def smtp(server, **options) -> Smtp:
    plain = MailServer(host="127.0.0.1", port=server.port, security="none")
    return Smtp("mail", plain, "Holdfast <holdfast@acme.example>", **options)


# ---------------------------------------------------------------------- mail


@pytest.mark.covers("HOLD-NOTE-02")
async def test_smtp_hands_over_one_mail_in_two_forms():
    async with smtp_server() as server:
        delivery = await smtp(server).send(a_notice())
    assert delivery.accepted
    (mail,) = server.mails
    message = mail.message
    assert (mail.sender, mail.to) == ("holdfast@acme.example", ["dana@acme.example"])
    assert message["Subject"] == "Decision needed: Refund 250 to c-9?"
    assert message["Auto-Submitted"] == "auto-generated"
    text = message.get_body(("plain",)).get_content()
    html = message.get_body(("html",)).get_content()
    assert "Open it to decide: https://holdfast.example/l/v1.abc.def" in text
    assert "Answers: Approve, Reject" in text
    assert 'href="https://holdfast.example/l/v1.abc.def"' in html


@pytest.mark.covers("HOLD-NOTE-02", "NO-8")
async def test_smtp_gives_a_mail_the_same_name_when_it_is_sent_again():
    async with smtp_server() as server:
        channel = smtp(server)
        await channel.send(a_notice())
        await channel.send(a_notice())
        await channel.send(a_notice(id="h1:hold.reminded:1", topic="hold.reminded"))
    first, again, other = (mail.message for mail in server.mails)
    assert first["Message-ID"] == again["Message-ID"] != other["Message-ID"]
    assert first["References"] == other["References"]


@pytest.mark.covers("HOLD-SEC-07", "HOLD-SEC-08")
async def test_smtp_shows_what_a_flow_says_as_text_when_it_means_to_be_obeyed():
    async with smtp_server() as server:
        await smtp(server).send(a_notice(prompt=NASTY))
    message = server.mails[0].message
    assert message["Bcc"] is None
    assert "\n" not in message["Subject"]
    html = message.get_body(("html",)).get_content()
    text = message.get_body(("plain",)).get_content()
    assert "<script>" not in html
    assert "<b>Eve" not in html
    assert "&lt;script&gt;" in html
    for shown in (html, text):
        assert "\u202e" not in shown
        assert "\u200b" not in shown
        assert "\x1b" not in shown
        assert "exe\\u202egpj" in shown
        assert "https://xn--pple-43d.com/pay" in shown


@pytest.mark.parametrize(
    ("refusal", "retry"), [("450 mailbox busy", True), ("550 no such user", False)], ids=["later", "never"]
)
async def test_smtp_says_whether_a_refusal_is_final(refusal, retry):
    async with smtp_server() as server:
        server.refuses["dana@acme.example"] = refusal
        delivery = await smtp(server).send(a_notice())
    assert (delivery.accepted, delivery.retry) == (False, retry)
    assert refusal[4:] in delivery.detail


@pytest.mark.covers("NO-2")
async def test_smtp_is_to_be_tried_again_when_the_server_is_down():
    async with smtp_server() as server:
        server.down = True
        down = await smtp(server).send(a_notice())
    gone = await smtp(server).send(a_notice())
    assert [(each.accepted, each.retry) for each in (down, gone)] == [(False, True), (False, True)]


@pytest.mark.covers("NO-4")
@pytest.mark.parametrize(
    "address", ["a@b\r\nBcc: all@acme", "a b@c", "@c", "a@", "a@b@c", "nobody", "a@b\x00"]
)
async def test_smtp_writes_to_nothing_when_it_is_no_address(address):
    async with smtp_server() as server:
        channel = smtp(server)
        assert await channel.addresses(Assignee("user", address), "default") == ()
        delivery = await channel.send(a_notice(to=address))
    assert (delivery.accepted, delivery.retry, server.mails) == (False, False, [])


@pytest.mark.covers("NO-4")
async def test_smtp_passes_an_address_on_as_it_is_when_it_looks_like_one():
    async with smtp_server() as server:
        channel = smtp(server)
        (found,) = await channel.addresses(Assignee("user", "Alice@acme"), "default")
        await channel.send(a_notice(to=found))
    assert server.mails[0].to == ["Alice@acme"]


class Staff:
    people = (
        Person(id="1", email="dana@acme"),
        Person(id="2", email="sam@acme", away=Away(substitute="1")),
        Person(id="3", email="kim@acme"),
        Person(id="4"),
    )

    async def person(self, tenant, ref):
        return next((p for p in self.people if ref in (p.id, p.email)), None)

    async def group(self, tenant, key):
        return Circle(key=key, members=("1", "2", "kim@acme", "4")) if key == "finance" else None

    role = group


@pytest.mark.covers("NO-5")
async def test_smtp_finds_the_members_of_a_group_itself_when_it_has_a_directory():
    async with smtp_server() as server:
        finance = Assignee("group", "finance")
        assert await smtp(server).addresses(finance, "default") == ()
        channel = smtp(server, directory=Staff())
        # Sam is away, and Dana stands in: she is told once.
        assert await channel.addresses(finance, "default") == ("dana@acme", "kim@acme")
        assert await channel.addresses(Assignee("role", "finance"), "default") == ("dana@acme", "kim@acme")
        assert await channel.addresses(Assignee("user", "3"), "default") == ("kim@acme",)
        assert await channel.addresses(Assignee("group", "nobody"), "default") == ()


@pytest.mark.covers("HOLD-NOTE-02")
@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_smtp_logs_in_by_tls_with_a_server_that_it_trusts(security, tmp_path):
    certificate = Certificate.of("127.0.0.1")
    (tmp_path / "ca.pem").write_bytes(certificate.file)
    async with smtp_server(certificate, later=security == "starttls") as server:
        known = MailServer(
            host="127.0.0.1", port=server.port, security=security, user="u", password="s3cr3tword",
            ca=str(tmp_path / "ca.pem"),
        )  # fmt: skip
        trusting = await Smtp("mail", known, "h@acme.example").send(a_notice())
        unknown = msgspec.structs.replace(known, ca="")
        wary = await Smtp("mail", unknown, "h@acme.example").send(a_notice())
    assert trusting.accepted
    assert [by_tls for by_tls, _ in server.logins] == [True]
    assert (wary.accepted, len(server.mails)) == (False, 1)
    assert "certificate" in wary.detail


async def test_smtp_sends_nothing_when_the_server_has_no_starttls():
    async with smtp_server() as server:
        wary = MailServer(host="127.0.0.1", port=server.port, user="u", password="s3cr3tword")
        delivery = await Smtp("mail", wary, "h@acme.example").send(a_notice())
    assert (delivery.accepted, server.logins, server.mails) == (False, [], [])


def test_smtp_sends_no_password_in_the_clear():
    with pytest.raises(SettingsError, match="unencrypted"):
        Smtp("mail", MailServer(host="h", security="none", user="u", password="p"), "a@b")


# ---------------------------------------------------------------------- webhooks


@pytest.mark.covers("HOLD-NOTE-04", "HOLD-SEC-05")
async def test_webhook_is_signed_by_each_secret_when_they_rotate():
    clock = FakeClock()
    async with http_server() as server:
        channel = Webhook("crm", server.url, secrets=[NEW, OLD], egress=server.egress, clock=clock)
        assert (await channel.send(a_notice(to="crm"))).accepted
        assert (await channel.send(a_notice(to="crm"))).accepted
    seen, again = server.seen
    now = clock.now() // MICROS
    assert seen.headers["webhook-id"] == again.headers["webhook-id"]
    assert seen.headers["webhook-signature"].count("v1,") == 2
    for text in (OLD, NEW):
        assert is_signed(seen.headers, seen.body, [secret_of(text, "x")], now)
    assert not is_signed(seen.headers, seen.body + b" ", [secret_of(NEW, "x")], now)
    assert not is_signed(seen.headers, seen.body, [b"z" * 32], now)
    assert not is_signed(seen.headers, seen.body, [secret_of(NEW, "x")], now + 301)
    assert seen.json["type"] == "hold.created"
    assert seen.json["data"]["checkpoint_id"] == a_notice().hold
    assert seen.json["data"]["assignee"] == {"type": "user", "value": "dana@acme.example"}


def test_webhook_signature_is_that_of_the_published_example():
    """The example of the Standard Webhooks libraries."""
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    secret = secret_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "x")
    assert is_signed(headers, b'{"test": 2432232314}', [secret], 1614265330)


@pytest.mark.covers("HOLD-SEC-05")
@pytest.mark.parametrize(
    ("status", "headers", "accepted", "retry", "after"),
    [
        (200, {}, True, False, None),
        (204, {}, True, False, None),
        (302, {"location": "https://elsewhere.example"}, False, False, None),
        (400, {}, False, False, None),
        (410, {}, False, False, None),
        (429, {"Retry-After": "120"}, False, True, 120.0),
        (503, {"Retry-After": "Tue, 01 Jan 2030 00:05:00 GMT"}, False, True, 300.0),
        (500, {"Retry-After": "soon"}, False, True, None),
    ],
)
async def test_webhook_says_what_an_answer_means(status, headers, accepted, retry, after):
    async with http_server() as server:
        server.says(status, headers=headers, body="" if status == 204 else "so")
        channel = Webhook("crm", server.url, secrets=[NEW], egress=server.egress, clock=FakeClock())
        delivery = await channel.send(a_notice())
    assert (delivery.accepted, delivery.retry, delivery.after) == (accepted, retry, after)


@pytest.mark.covers("HOLD-NOTE-08", "HOLD-SEC-06")
async def test_webhook_reaches_nothing_inside():
    async with http_server() as server:
        delivery = await Webhook("crm", server.url, secrets=[NEW], egress=Egress()).send(a_notice())
    assert (delivery.accepted, delivery.retry, server.seen) == (False, False, [])
    assert "/hook" not in delivery.detail


def test_webhook_shows_no_secret_when_one_is_wrong():
    with pytest.raises(SettingsError) as wrong:
        Webhook("crm", "https://h.example/s3cr3t", secrets=["tooshort"])
    assert "tooshort" not in str(wrong.value)
    assert "s3cr3t" not in repr(Webhook("crm", "https://h.example/s3cr3t", secrets=[NEW]))


# ---------------------------------------------------------------------- chat


@pytest.mark.covers("HOLD-NOTE-03", "HOLD-SEC-07")
async def test_slack_is_reported_in_plain_text_that_calls_nobody():
    async with http_server() as server:
        assert (await Slack("ops", server.url, egress=server.egress).send(a_notice(prompt=NASTY))).accepted
    sent = server.seen[0].json
    assert "<!channel>" not in sent["text"]
    assert sent["unfurl_links"] is False
    marked = [b["text"]["text"] for b in sent["blocks"] if b.get("text", {}).get("type") == "mrkdwn"]
    assert marked == ["<https://holdfast.example/l/v1.abc.def|Open it to decide>"]
    assert all(len(b["text"]["text"]) <= 3000 for b in sent["blocks"] if "text" in b)


@pytest.mark.covers("HOLD-NOTE-03", "HOLD-SEC-07")
async def test_teams_is_reported_by_a_card_of_text_runs():
    async with http_server() as server:
        server.says(202, body="")
        assert (await Teams("ops", server.url, egress=server.egress).send(a_notice(prompt=NASTY))).accepted
    card = server.seen[0].json["attachments"][0]["content"]
    assert {block["type"] for block in card["body"]} == {"RichTextBlock"}
    assert card["actions"][0]["url"] == "https://holdfast.example/l/v1.abc.def"
    assert "\u202e" not in json.dumps(card, ensure_ascii=False)


@pytest.mark.parametrize("kind", [Slack, Teams])
async def test_chat_cards_stay_small_when_a_prompt_is_long(kind):
    async with http_server() as server:
        await kind("ops", server.url, egress=server.egress).send(a_notice(prompt="x" * 200_000))
    assert len(server.seen[0].body) < 28_000


# ---------------------------------------------------------------------- the bridge


@THEIRS
@pytest.mark.covers("HOLD-NOTE-05")
async def test_bridge_sends_by_the_library_when_it_is_there():
    pytest.importorskip("apprise")
    async with http_server() as server:
        channel = AppriseChannel("all", [f"json://127.0.0.1:{server.port}/hook"])
        delivery = await channel.send(a_notice())
        server.says(500)
        failed = await channel.send(a_notice())
    assert delivery.accepted
    assert (failed.accepted, failed.retry) == (False, True)
    sent = server.seen[0].json
    assert sent["title"] == "Decision needed: Refund 250 to c-9?"
    assert "Open it to decide" in sent["message"]


@THEIRS
def test_bridge_says_which_address_is_none():
    pytest.importorskip("apprise")
    with pytest.raises(SettingsError, match=r"all\.urls\[1\]"):
        AppriseChannel("all", ["json://localhost", "nonsense"])


def test_bridge_says_what_is_missing_when_the_library_is(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "apprise", None)
    with pytest.raises(SettingsError, match="not installed"):
        AppriseChannel("all", [])
