"""Replies to mails: from the one who was asked, vouched for, with one keyword above the quote."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import AsyncIterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from anyio import run_process

from holdfast import Holdfast
from holdfast.api.app import ApiSettings
from holdfast.api.inbound.mail_message import decision_in, is_proven, own_lines
from holdfast.api.inbound.settings import parse_settings
from holdfast.holds.notify.settings import parse_settings as notify_settings
from holdfast.holds.notify.webhook import secret_of, signed
from holdfast.types.hold import Option
from tests.api.people import Hall, hall_of
from tests.holds.notify.servers import SmtpServer, smtp_server

pytestmark = pytest.mark.anyio

SECRET = "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo="
WAY = {
    "name": "mail", "kind": "mail", "secrets": [SECRET], "address": "reply@in.acme.example",
    "authserv_id": "mx.acme.example",
}  # fmt: skip
DANA = "dana@acme.example"
GOOD = (
    "mx.acme.example; dmarc=pass (p=REJECT) header.from=acme.example; "
    "spf=pass smtp.mailfrom=acme.example; dkim=pass header.d=acme.example"
)
QUOTE = "\n\nOn Monday Holdfast <holdfast@acme.example> wrote:\n> Pay 250?\n> approve\n"


class Harness:
    def __init__(self, hall: Hall, smtp: SmtpServer) -> None:
        self.hall = hall
        self.smtp = smtp

    async def mail(self) -> EmailMessage:
        """The newest that was sent."""
        deliverer = (await self.hall.hf.service()).runtime.deliverer
        assert deliverer is not None
        await deliverer.deliver()
        return self.smtp.mails[-1].message

    async def reply(self, to: str, text: str, *, results: str | None = GOOD, **odd: Any) -> dict[str, Any]:
        message = EmailMessage()
        if results is not None:
            message["Authentication-Results"] = results
        message["From"] = odd.pop("sender", f"Dana <{DANA}>")
        message["To"] = to
        message["Subject"] = "Re: Decision wanted"
        for name, value in odd.items():
            message[name.replace("_", "-")] = value
        message.set_content(text)
        return await self.post(message.as_bytes())

    async def post(self, raw: bytes, *, status: int = 200, secret: str = SECRET) -> dict[str, Any]:
        headers = signed(f"msg_{time.monotonic_ns()}", int(time.time()), raw, [secret_of(secret, "test")])
        answer = await self.hall.client.post("/v1/inbound/mail/mail", content=raw, headers=headers)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def status(self, hold: str) -> str:
        return (await self.hall.ask("ada", "GET", f"/v1/holds/{hold}"))["status"]


@pytest.fixture
async def harness(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Harness]:
    async with smtp_server() as smtp:
        channel = {
            "name": "mail", "kind": "smtp", "host": "127.0.0.1", "port": smtp.port, "security": "none",
            "sender": "Holdfast <holdfast@acme.example>", "reply": "reply@in.acme.example",
        }  # fmt: skip
        settings = ApiSettings(inbound=parse_settings({"way": [WAY]}))
        notify = notify_settings({"channel": [channel]})
        async with (
            Holdfast(f"sqlite:{tmp_path / 'h.db'}", notify=notify) as hf,
            hall_of(hf, settings) as hall,
        ):
            yield Harness(hall, smtp)


@pytest.mark.covers("SERVER-IN-03")
async def test_keyword_above_the_quote_decides_as_the_one_who_was_asked(harness: Harness) -> None:
    hold = await harness.hall.asks(f"user:{DANA}")
    asked = await harness.mail()
    assert "reply with one of these words" in asked.get_body(("plain",)).get_content()  # type: ignore[union-attr]
    local = asked["Reply-To"].partition("@")[0]
    assert len(local) <= 64
    done = await harness.reply(asked["Reply-To"], f"Approve\nComment: within limits{QUOTE}")
    assert done["outcome"] == "resolved"
    row = await harness.hall.ask("ada", "GET", f"/v1/holds/{hold}")
    assert (row["resolved_by"], row["resolution"]["decision"]) == (f"user:{DANA}", "approve")
    said = row["resolution"]
    assert (said["channel"], said["auth_method"], said["comment"]) == ("mail", "mail_reply", "within limits")
    # The mail server brings it once more, then somebody changes their mind: it stays decided.
    assert (await harness.reply(asked["Reply-To"], f"Approve\nComment: within limits{QUOTE}"))["outcome"] in (
        "resolved"
    )
    late = await harness.reply(asked["Reply-To"], "reject")
    assert (late["outcome"], await harness.status(hold)) == ("unclear", "resolved")
    assert "already decided" in harness.smtp.mails[-1].message.get_body(("plain",)).get_content()  # type: ignore[union-attr]


NOT_CLEAR = [
    "", "Looks fine, approve", "approve\nbut only half of it", "approve or reject", QUOTE, "yes",
    "-- \napprove", "On Monday Holdfast wrote:\n> approve",
]  # fmt: skip


@pytest.mark.covers("SERVER-IN-03")
async def test_reply_that_is_not_clear_decides_nothing_and_is_answered(harness: Harness) -> None:
    hold = await harness.hall.asks(f"user:{DANA}")
    asked = await harness.mail()
    for place, text in enumerate(NOT_CLEAR, start=2):
        assert (await harness.reply(asked["Reply-To"], text))["outcome"] == "unclear", text
        assert (await harness.status(hold), len(harness.smtp.mails)) == ("pending", place)
        answer = harness.smtp.mails[-1].message
        assert (answer["To"], answer["Auto-Submitted"]) == (DANA, "auto-generated")
        assert "approve, reject" in answer.get_body(("plain",)).get_content()  # type: ignore[union-attr]


@pytest.mark.covers("SERVER-IN-03")
async def test_mail_of_somebody_else_or_of_a_machine_decides_nothing_unanswered(
    harness: Harness,
) -> None:
    hold = await harness.hall.asks(f"user:{DANA}")
    to = (await harness.mail())["Reply-To"]
    count = len(harness.smtp.mails)
    forged = GOOD.replace("mx.acme.example", "mx.evil.example")
    for results in (None, forged, GOOD.replace("dmarc=pass", "dmarc=fail"), f"{forged}, {GOOD}",
                    GOOD.replace("header.from=acme.example", "header.from=evil.example"),
                    "mx.acme.example; dmarc=pass header.from=acme.example"):  # fmt: skip
        result = await harness.reply(to, "approve", results=results)
        assert result["outcome"] == "refused", results
    for odd in ({"Auto_Submitted": "auto-replied"}, {"Precedence": "bulk"}, {"X_Autoreply": "yes"},
                {"Return_Path": "<>"}, {"List_Id": "<all.acme.example>"}):  # fmt: skip
        assert (await harness.reply(to, "approve", **odd))["outcome"] == "ignored", odd
    assert (await harness.reply(to, "approve", sender="sam@acme.example"))["outcome"] == "refused"
    assert (await harness.reply(to, "approve", sender=f"{DANA}, sam@acme.example"))["outcome"] == "ignored"
    assert (await harness.reply(to.replace("reply+", "other+"), "approve"))["outcome"] == "ignored"
    mark = to.partition("+")[2][0]
    other = to.replace(f"+{mark}", "+b" if mark == "a" else "+a", 1)
    assert (await harness.reply(other, "approve"))["outcome"] == "refused"
    assert (await harness.post(b"\xff\x00 no mail at all"))["outcome"] == "ignored"
    await harness.post(b"From: dana@acme.example\n\napprove", status=401, secret="whsec_" + "b" * 44)
    assert (await harness.status(hold), len(harness.smtp.mails)) == ("pending", count)
    asked = {"checkpoint": hold, "action": "refused"}
    refused = await harness.hall.ask("ada", "GET", "/v1/audit", params=asked)
    assert len(refused["items"]) >= 6


@pytest.mark.covers("SERVER-IN-03")
async def test_address_is_void_once_the_hold_goes_on_or_is_too_important(
    harness: Harness,
) -> None:
    hold = await harness.hall.asks(f"user:{DANA}")
    to = (await harness.mail())["Reply-To"]
    moved = {"assignee": "user:sam@acme.example"}
    await harness.hall.ask("ada", "POST", f"/v1/holds/{hold}/reassign", json=moved)
    assert (await harness.reply(to, "approve"))["outcome"] == "refused"
    assert await harness.status(hold) == "pending"
    await harness.hall.asks(f"user:{DANA}", priority="critical")
    await harness.mail()
    (urgent,) = [each.message for each in harness.smtp.mails if "critical" in each.message["Subject"]]
    assert urgent["Reply-To"] is None
    assert "reply with" not in urgent.get_body(("plain",)).get_content()  # type: ignore[union-attr]


@pytest.mark.covers("SERVER-IN-03")
@pytest.mark.skipif(not all(map(shutil.which, ("curl", "openssl", "bash"))), reason="no curl or openssl")
async def test_script_of_the_how_to_hands_a_mail_over(harness: Harness) -> None:
    hold = await harness.hall.asks(f"user:{DANA}")
    to = (await harness.mail())["Reply-To"]
    raw = f"Authentication-Results: {GOOD}\nFrom: {DANA}\nTo: {to}\n\nreject\n".encode()
    page = (Path(__file__).parents[2] / "docs/how-to/decide-over-http.md").read_text()
    (script,) = [part.partition("```")[0] for part in page.split("```text\n") if "openssl dgst" in part]
    own = script.replace("https://holdfast.example.com", str(harness.hall.client.base_url).rstrip("/"))
    given = {**os.environ, "MAIL_SECRET": SECRET}
    done = await run_process(["bash", "-eu", "-c", own], input=raw, env=given, check=False)
    assert b'"outcome":"resolved"' in done.stdout, (done.stdout, done.stderr)
    assert await harness.status(hold) == "resolved"


OPTIONS = (Option("approve", "Yes, pay"), Option("reject", "No"))


@pytest.mark.parametrize(
    ("text", "decision", "comment"),
    [
        ("approve", "approve", None),
        ("\n\n  REJECT.  \n\n", "reject", None),
        ("yes, pay\n-- \nDana\nreject", "approve", None),
        ("no\n\nComment: not this\nquarter", "reject", "not this\nquarter"),
        (
            "approve\n\nAm Mo., 5. Jan. 2026 schrieb Holdfast\n<holdfast@acme.example>:\n\n> reject",
            "approve",
            None,
        ),
        ("approve\n\n-----Original Message-----\nreject", "approve", None),
        ("approve\n________________________________\nVon: Holdfast\nreject", "approve", None),
        ("approve\nFrom: Holdfast <h@acme.example>\nreject", "approve", None),
        ("approve\nreject", None, None),
        ("I approve", None, None),
        ("> approve", None, None),
        ("approve\n\nSent from my phone", None, None),
    ],
)
def test_only_one_keyword_alone_is_an_answer(text: str, decision: str | None, comment: str | None) -> None:
    found = decision_in(text, OPTIONS)
    assert (found and found.decision, found and found.comment) == (decision, comment)


def test_lines_of_the_sender_end_where_the_quote_begins() -> None:
    assert own_lines("one\r\ntwo\r\n\r\nOn Monday\r\nsomebody wrote:\r\n> three") == ["one", "two"]


def test_only_the_first_result_of_our_own_server_counts() -> None:
    assert is_proven([GOOD], DANA, "mx.acme.example")
    assert is_proven([GOOD.replace("mx.acme.example;", "MX.acme.example 1;")], DANA, "mx.acme.example")
    bad = GOOD.replace("dmarc=pass", "dmarc=fail")
    assert not is_proven([bad, GOOD], DANA, "mx.acme.example")
    assert not is_proven([f"mx.evil.example; x=y ({GOOD})"], DANA, "mx.acme.example")
    assert not is_proven([f"{bad}; dmarc=pass header.from=acme.example"], DANA, "mx.acme.example")
