"""Pages: what they show, that POST decides, and what is said when it does not. Over real sockets."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from html import unescape
from typing import Any

import httpx2
import msgspec
import pytest

from holdfast import Context, Flow, Holdfast
from holdfast.api.auth.grants import CredentialGrant as Subject
from holdfast.api.auth.rights import Right
from holdfast.api.auth.tokens import ApiTokens
from holdfast.holds.links.open import Links
from holdfast.holds.links.tokens import LinkGrant
from holdfast.types.status import HoldStatus
from holdfast.types.terms import operator
from tests.api.conftest import Server, serving
from tests.api.documents import deploy
from tests.api.sign_in import bearer, token
from tests.services import postgres

pytestmark = pytest.mark.anyio
HTML = {"Accept": "text/html,application/xhtml+xml"}


@pytest.fixture
def asking() -> Flow:
    """Every kind of field, and two decisions of which one needs a comment."""
    flow = Flow("asking", effect="pure")
    options = [{"id": "a", "label": "Alpha"}, {"id": "b", "label": "Beta"}]
    kinds = [
        "text", "textarea", "markdown", "code", "diff", "phone", "user", "secret-reference", "number",
        "integer", "percent", "date", "time", "datetime", "duration", "boolean", "email", "url", "json",
    ]  # fmt: skip
    sections: list[dict[str, Any]] = [
        {"type": "context", "title": "Read this", "content": "It is <b>not</b> bold & {{order}}"},
        *({"type": "input", "field": kind.replace("-", "_"), "kind": kind} for kind in kinds),
        {"type": "input", "field": "one", "kind": "select", "options": options, "required": True},
        {"type": "input", "field": "way", "kind": "radio", "options": options},
        {"type": "input", "field": "many", "kind": "multiselect", "options": options},
        {"type": "input", "field": "money", "kind": "currency"},
        {"type": "input", "field": "fee", "kind": "currency", "currency": "EUR", "default": "12.50"},
        {"type": "input", "field": "paper", "kind": "file"},
        {"type": "input", "field": "fixed", "kind": "text", "default": "as it is", "readonly": True},
        {"type": "input", "field": "why", "kind": "text", "visible_if": "decision == 'no'",
         "required_if": "decision == 'no'"},
        {"type": "input", "field": "items", "kind": "table", "default": [{"what": "pen", "count": 2}],
         "columns": [{"field": "what", "kind": "text"}, {"field": "count", "kind": "integer"},
                     {"field": "new", "kind": "boolean"}, {"field": "kinds", "kind": "multiselect",
                      "options": options}, {"field": "price", "kind": "currency"}, {"field": "slip",
                      "kind": "file"}]},
        {"type": "decision", "options": [
            {"id": "yes", "label": "Yes, do", "variant": "primary"}, {"id": "no", "label": "No"}]},
    ]  # fmt: skip
    flow.hold("ask", prompt="Take <script>alert(1)</script> {{order}}?", sections=sections, into="said")
    return flow


@pytest.fixture
def simple() -> Flow:
    flow = Flow("simple", effect="pure")
    flow.hold(
        "ask",
        prompt="Ship {{order}}?",
        context={"order": "{{order}}"},
        options=[{"id": "yes", "label": "Yes"}, {"id": "no", "label": "No", "requires_comment": True}],
        assignee="user:dana",
    )
    return flow


async def waiting(server: Server, flow: Flow, **given: Any) -> str:
    """A run of it that has come to its hold; answers the hold's id."""
    result = await flow.run({"order": "A-1", **given}, on=server.hf)
    return (await (await server.hf.service()).holds(result.run_id))[0].id


async def get(server: Server, path: str, status: int = 200, **more: Any) -> str:
    answer = await server.client.get(path, headers=HTML, **more)
    assert answer.status_code == status, (answer.status_code, answer.text)
    assert answer.headers["content-type"].startswith("text/html")
    return answer.text


async def post(server: Server, path: str, fields: dict[str, Any], **more: Any) -> httpx2.Response:
    return await server.client.post(path, data=fields, headers=HTML, **more)


def hidden(page: str, name: str) -> str:
    found = re.search(rf'name="{re.escape(name)}" value="([^"]*)"', page)
    assert found, name
    return unescape(found[1])


# ---------------------------------------------------------------------- looking


@pytest.mark.covers("SERVER-PAGE-01")
async def test_home_lists_what_waits_for_me_and_recent_runs(server: Server, simple: Flow) -> None:
    hold = await waiting(server, simple, order="A-17")
    page = await get(server, "/")
    assert f'href="/holds/{hold}"' not in page  # it is dana's
    assert "1 more open question" in page
    mine = Flow("mine", effect="pure")
    mine.hold("ask", prompt="Yours?", assignee="user:local", options=["ok"], priority="low")
    urgent = Flow("urgent", effect="pure")
    urgent.hold("ask", prompt="Urgent?", assignee="user:local", options=["ok"], priority="critical")
    for flow in (mine, urgent):
        await flow.run({}, on=server.hf)
    page = await get(server, "/")
    assert page.index("Urgent?") < page.index("Yours?")
    assert page.count('href="/runs/') >= 3
    assert "waiting for input" in page
    assert "Ship A-17?" in await get(server, "/holds?view=all")


async def test_browsers_get_a_page_where_programs_get_json(server: Server, simple: Flow) -> None:
    await waiting(server, simple)
    assert "<table" in await get(server, "/runs")
    reply = await server.json("GET", "/runs")
    assert reply["items"][0]["flow"] == "simple"


@pytest.mark.covers("SERVER-PAGE-02", "SERVER-PAGE-05")
async def test_a_holds_page_shows_the_question_and_every_kind_of_field(server: Server, asking: Flow) -> None:
    hold = await waiting(server, asking)
    answer = await server.client.get(f"/holds/{hold}", headers=HTML)
    page = answer.text
    assert "Take &lt;script&gt;alert(1)&lt;/script&gt; A-1?" in page
    assert "<script>alert" not in page
    assert "It is &lt;b&gt;not&lt;/b&gt; bold &amp; A-1" in page
    ids = re.findall(r'<(?:input|select|textarea)[^>]* id="([^"]+)"', page)
    labelled = re.findall(r'<label for="([^"]+)"', page)
    named = [each for each in ids if not re.search(rf'id="{re.escape(each)}"[^>]*aria-label=', page)]
    assert sorted(named) == sorted(set(labelled)), "each field has its label, each label its field"
    assert 'enctype="multipart/form-data"' in page
    assert "Required for “No”." in page
    assert "as it is" in page
    assert 'lang="en"' in page
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert " style=" not in page
    assert not re.search(r"\son\w+=", page)


# ---------------------------------------------------------------------- deciding


FILLED = {
    "f.text": "hello", "f.textarea": "two\r\nlines", "f.number": "1.5", "f.integer": "3", "f.percent": "12.5",
    "f.date": "2026-05-01", "f.time": "14:30", "f.datetime": "2026-05-01T14:30:00", "f.duration": "2h",
    "f.boolean": "no", "f.email": "a@b.example", "f.url": "https://b.example/x", "f.json": '{"k": [1]}',
    "f.one": "b", "f.many": ["a", "b"], "f.money": "10", "f.money.currency": "usd", "f.fee": "12.50",
    "f.phone": "+49 30 1234", "f.items.rows": "4", "f.items.0.what": "pen", "f.items.0.count": "5",
    "f.items.2.what": "ink", "f.items.2.count": "", "f.why": "",
    "f.markdown": "**bold**", "f.code": "print()", "f.diff": "-a\r\n+b", "f.user": "dana", "f.way": "b",
    "f.secret_reference": "vault/pay", "f.items.0.new": "yes", "f.items.0.kinds": ["b", "a"],
    "f.items.0.price": "2.50", "f.items.0.price.currency": "eur",
}  # fmt: skip


@pytest.mark.covers("SERVER-PAGE-02")
async def test_a_form_decides_with_every_kind_of_field_and_a_file(server: Server, asking: Flow) -> None:
    hold = await waiting(server, asking)
    page = await get(server, f"/holds/{hold}")
    fields = {**FILLED, "decision": "yes", "request_hash": hidden(page, "request_hash"), "comment": "fine"}
    paper = {
        "f.paper": ("note.txt", b"words", "text/plain"),
        "f.items.2.slip": ("slip.txt", b"ink", "text/plain"),
    }
    answer = await post(server, f"/holds/{hold}", fields, files=paper)
    assert answer.status_code == 303, answer.text
    row = await (await server.hf.holds()).get(operator(), hold)
    assert row.status is HoldStatus.resolved
    page = await get(server, answer.headers["location"])
    assert "<strong>Done.</strong>" in page
    said = msgspec.json.decode(row.resolution or b"")
    data = said["response_data"]
    assert said["comment"] == "fine"
    assert data["textarea"] == "two\nlines"
    assert (data["number"], data["integer"], data["boolean"]) == (1.5, 3, False)
    assert data["datetime"] == "2026-05-01T14:30:00+00:00"
    assert data["money"] == {"amount": "10", "currency": "USD"}
    assert data["many"] == ["a", "b"]
    assert data["items"][1].pop("slip")["name"] == "slip.txt"
    price = {"amount": "2.50", "currency": "EUR"}
    pen = {"what": "pen", "count": 5, "new": True, "kinds": ["b", "a"], "price": price}
    assert data["items"] == [pen, {"what": "ink"}]
    texts = {"markdown": "**bold**", "code": "print()", "diff": "-a\n+b", "user": "dana", "way": "b",
             "secret_reference": "vault/pay", "textarea": "two\nlines", "duration": "2h"}  # fmt: skip
    assert {name: data[name] for name in texts} == texts
    assert data["paper"]["name"] == "note.txt"
    assert data["fixed"] == "as it is"
    assert "why" not in data


@pytest.mark.covers("SERVER-PAGE-02")
async def test_what_does_not_fit_is_shown_beside_its_field_with_what_was_typed(
    server: Server, asking: Flow
) -> None:
    hold = await waiting(server, asking)
    wrong = {**FILLED, "f.integer": "many", "f.one": "", "f.text": 'say "this"', "decision": "no"}
    answer = await post(server, f"/holds/{hold}", wrong)
    assert answer.status_code == 422
    page = answer.text
    assert "Your answer was not accepted." in page
    assert re.search(r'id="f-integer-wrong"[^>]*>.*Error: </span>integer is not a number', page)
    assert re.search(r'id="f-one-wrong"[^>]*>.*is missing', page)
    assert re.search(r'id="f-why-wrong"[^>]*>.*is missing', page)
    assert 'value="say &#34;this&#34;"' in page
    assert 'value="many"' in page
    assert re.search(r'<input id="f-integer"[^>]*aria-invalid="true"', page)
    row = await (await server.hf.holds()).get(operator(), hold)
    assert row.status is HoldStatus.pending
    again = await get(server, f"/holds/{hold}")  # what was typed is kept as a draft
    assert 'value="say &#34;this&#34;"' in again


async def test_a_comment_that_is_needed_is_asked_for(server: Server, simple: Flow) -> None:
    hold = await waiting(server, simple)
    assert "required for No" in await get(server, f"/holds/{hold}")
    answer = await post(server, f"/holds/{hold}", {"decision": "no"})
    assert answer.status_code == 422
    assert "comment" in answer.text
    none = await post(server, f"/holds/{hold}", {"comment": "typed"})
    assert none.status_code == 422
    assert "Choose one of the decisions." in none.text
    assert "typed</textarea>" in none.text
    answer = await post(server, f"/holds/{hold}", {"decision": "no", "comment": "too late"})
    assert answer.status_code == 303
    assert "“too late”" in await get(server, f"/holds/{hold}")


@pytest.mark.covers("SERVER-PAGE-02")
async def test_a_caller_who_is_second_sees_the_winner_and_what_they_had_typed(
    server: Server, simple: Flow
) -> None:
    hold = await waiting(server, simple)
    people = await server.hf.holds()
    await people.resolve(operator("user:dana"), hold, decision="yes")
    answer = await post(server, f"/holds/{hold}", {"decision": "no", "comment": "wait, please"})
    assert answer.status_code == 409
    assert "Already decided." in answer.text
    assert "dana decided “Yes”" in answer.text
    assert "wait, please" in answer.text
    assert 'name="decision"' not in answer.text


async def test_a_page_that_shows_something_older_decides_nothing(server: Server, simple: Flow) -> None:
    hold = await waiting(server, simple)
    answer = await post(server, f"/holds/{hold}", {"decision": "yes", "request_hash": "0" * 64})
    assert answer.status_code == 409
    assert "differs from what you were shown" in answer.text.lower()


async def test_questions_are_answered_in_words_and_by_several_people(server: Server) -> None:
    free = Flow("free", effect="pure")

    async def ask(_s: Any, ctx: Context) -> dict[str, Any]:
        return {"said": (await ctx.ask("What now?")).decision}

    free.node(id="ask")(ask)
    hold = await waiting(server, free)
    assert 'id="answer"' in await get(server, f"/holds/{hold}")
    assert (await post(server, f"/holds/{hold}", {"answer": "  "})).status_code == 422
    assert (await post(server, f"/holds/{hold}", {"answer": "wait a day"})).status_code == 303
    both = Flow("both", effect="pure")
    approval = {"mode": "quorum", "need": 2, "of": ["user:local", "user:lee"]}
    both.hold("ask", prompt="Agree?", options=["approve", "reject"], assignee="user:local", approval=approval)
    hold = await waiting(server, both)
    assert "It needs 2 of user:local, user:lee." in await get(server, f"/holds/{hold}")
    voted = await post(server, f"/holds/{hold}", {"decision": "approve"})
    assert voted.status_code == 303
    page = await get(server, voted.headers["location"])
    assert "More votes are needed." in page
    assert "<li>local: Approve</li>" in page
    again = await post(server, f"/holds/{hold}", {"decision": "reject"})
    assert again.status_code in (303, 409)


async def test_remarks_are_said_and_a_hold_is_kept_and_given_back(server: Server, simple: Flow) -> None:
    hold = await waiting(server, simple)
    said = await post(server, f"/holds/{hold}", {"act": "comment", "text": "<i>looks</i> fine"})
    assert said.status_code == 303
    await post(server, f"/holds/{hold}", {"act": "claim"})
    page = await get(server, f"/holds/{hold}")
    assert "&lt;i&gt;looks&lt;/i&gt; fine" in page
    assert "Release</button>" in page
    await post(server, f"/holds/{hold}", {"act": "release"})
    assert ">Claim</button>" in await get(server, f"/holds/{hold}")
    unknown = await post(server, f"/holds/{hold}", {"act": "explode"})
    assert unknown.status_code == 422


async def test_the_heading_is_the_first_line_of_the_question_and_the_rest_is_text(server: Server) -> None:
    flow = Flow("long", effect="pure")
    flow.hold("ask", prompt="Pay it?\n\nThe first reason.\n<b>The second.</b>", options=["yes", "no"])
    hold = await waiting(server, flow)
    page = await get(server, f"/holds/{hold}")
    assert '<h1 class="prompt">Pay it?</h1>' in page
    assert '<p class="prompt-rest">The first reason.\n&lt;b&gt;The second.&lt;/b&gt;</p>' in page


async def test_a_decision_that_can_be_taken_back_is_placed_and_taken_back(server: Server) -> None:
    flow = Flow("undoing", effect="pure")
    flow.hold("ask", prompt="Sure?", options=["yes", "no"], undo=30)
    hold = await waiting(server, flow)
    await post(server, f"/holds/{hold}", {"decision": "yes"})
    page = await get(server, f"/holds/{hold}")
    assert " decided: Yes. It is final in " in page
    assert "<button>Undo</button>" in page
    await post(server, f"/holds/{hold}", {"act": "undo"})
    row = await (await server.hf.holds()).get(operator(), hold)
    assert (row.status, row.placed) == (HoldStatus.pending, None)


# ---------------------------------------------------------------------- runs and flows


@pytest.mark.covers("SERVER-PAGE-04")
async def test_a_runs_page_has_its_drawing_its_timeline_and_what_it_waits_for(
    server: Server, simple: Flow
) -> None:
    hold = await waiting(server, simple)
    run = (await (await server.hf.holds()).get(operator(), hold)).run
    page = await get(server, f"/runs/{run}")
    assert f'src="/runs/{run}/drawing.svg' in page
    assert '<meta http-equiv="refresh"' in page
    assert f'href="/holds/{hold}"' in page
    assert '<li class="t-asking">' in page
    assert '<meta http-equiv="refresh"' not in await get(server, f"/runs/{run}?live=off")
    drawn = await server.client.get(f"/runs/{run}/drawing.svg")
    assert drawn.headers["content-type"] == "image/svg+xml"
    assert "waiting for input" in drawn.text
    assert "script-src" not in drawn.headers["content-security-policy"]
    stopped = await post(server, f"/runs/{run}", {"act": "cancel"})
    assert stopped.status_code == 303


async def test_a_failed_run_says_why_and_can_go_on(server: Server) -> None:
    flow = Flow("failing", effect="pure")

    async def fall(_s: Any) -> None:
        raise ValueError("no <luck>")

    flow.node(id="fall")(fall)
    assert (await flow.run({}, on=server.hf)).status == "failed"
    page = await get(server, "/runs?status=failed")
    run = re.search(r'href="/runs/([0-9a-f-]{36})"', page)
    assert run
    shown = await get(server, f"/runs/{run[1]}")
    assert "no &lt;luck&gt;" in shown
    assert "Resume</button>" in shown
    assert "No runs match." in await get(server, "/runs?status=cancelled")


async def test_a_flow_is_drawn_and_started_from_its_page(server: Server, greeting: Flow) -> None:
    server.hf.register(greeting.program())
    await (await server.hf.service()).store_flow(greeting.program())
    assert 'href="/flows/greeting"' in await get(server, "/flows")
    assert "Start a run" in await get(server, "/flows/greeting")
    drawn = await server.client.get("/flows/greeting/drawing.svg")
    assert "greet" in drawn.text
    wrong = await post(server, "/flows/greeting", {"input": "[1"})
    assert wrong.status_code == 422
    assert "No run was started." in wrong.text
    answer = await post(server, "/flows/greeting", {"input": '{"name": "Ada"}'})
    assert answer.status_code == 303
    assert "queued" in await get(server, answer.headers["location"])


async def test_deployed_document_is_started_from_its_page(server: Server) -> None:
    await deploy(server)
    assert "not served by this server" not in await get(server, "/flows")
    assert "Start a run" in await get(server, "/flows/refund")
    wrong = await post(server, "/flows/refund", {"input": '{"amount": "much"}'})
    assert (wrong.status_code, "No run was started." in wrong.text) == (422, True)
    answer = await post(server, "/flows/refund", {"input": '{"amount": 5}'})
    assert answer.status_code == 303
    assert "queued" in await get(server, answer.headers["location"])


# ---------------------------------------------------------------------- who may, and what is not there


async def test_strangers_are_sent_to_sign_in_and_come_back(server: Server, simple: Flow) -> None:
    hold = await waiting(server, simple)
    async with httpx2.AsyncClient(base_url=server.serving.address) as stranger:
        answer = await stranger.get(f"/holds/{hold}", headers=HTML)
        assert answer.status_code == 303
        assert answer.headers["location"] == f"/sign-in?next=/holds/{hold}"
        posted = await stranger.post(f"/holds/{hold}", data={"decision": "yes"}, headers=HTML)
        assert posted.status_code == 303
    row = await (await server.hf.holds()).get(operator(), hold)
    assert row.status is HoldStatus.pending


async def test_what_is_not_there_is_a_page_that_says_so(server: Server) -> None:
    assert "There is no run" in await get(server, "/runs/00000000-0000-4000-8000-000000000000", 404)
    assert "Not Found" in await get(server, "/no/such/place", 404)
    assert "There is no hold" in await get(server, "/holds/00000000-0000-4000-8000-000000000000", 404)
    assert (await server.client.get("/static/../app.py", headers=HTML)).status_code == 404
    css = await server.client.get("/static/pages.css")
    assert css.headers["content-type"].startswith("text/css")
    same = await server.client.get("/static/pages.css", headers={"If-None-Match": css.headers["etag"]})
    assert same.status_code == 304


async def test_a_reader_of_runs_sees_a_run_and_not_what_it_asks_of_others(
    server: Server, simple: Flow
) -> None:
    hold = await waiting(server, simple)
    run = (await (await server.hf.holds()).get(operator(), hold)).run
    tokens = ApiTokens(await server.hf.open())
    _, text = await tokens.create(Subject(subject="user:vic", rights=(Right.runs_read,)), by="user:local")
    headers = HTML | {"Authorization": f"Bearer {text}"}
    page = (await server.client.get(f"/runs/{run}", headers=headers)).text
    assert "It is waiting for input from another person." in page
    assert "Ship A-1?" not in page
    assert "Stop this run" not in page
    assert (await server.client.get(f"/holds/{hold}", headers=headers)).status_code in (403, 404)
    refused = await server.client.post(f"/holds/{hold}", data={"decision": "yes"}, headers=headers)
    assert refused.status_code == 403
    stopped = await server.client.post(f"/runs/{run}", data={"act": "cancel"}, headers=headers)
    assert stopped.status_code == 403
    other = Subject(subject="user:eve", tenant="elsewhere", roles=("admin",))
    _, text = await tokens.create(other, by="user:local")
    headers = HTML | {"Authorization": f"Bearer {text}"}
    for path in (f"/runs/{run}", f"/runs/{run}/drawing.svg", f"/holds/{hold}"):
        assert (await server.client.get(path, headers=headers)).status_code == 404
    assert run[:8] not in (await server.client.get("/", headers=headers)).text


async def test_addresses_cannot_be_bent_into_other_hosts_or_headers(server: Server) -> None:
    for bad in ("x%0d%0aSet-Cookie:%20a=b", "%2f%2fevil.example", "\u2028"):
        answer = await server.client.get(f"/inbox/{bad}", headers=HTML)
        assert "a" not in answer.cookies
        where = answer.headers.get("location", "/holds/")
        assert where.startswith("/holds/")
        assert "\r" not in where


# ---------------------------------------------------------------------- signed links


async def link_to(server: Server, hold: str, **grant: Any) -> str:
    people = await server.hf.holds()
    row = await people.get(operator(), hold)
    return await Links(people.ctx).make(row, LinkGrant(to="user:dana", **{"purpose": "decide", **grant}))


@pytest.fixture
async def mailbox(server: Server) -> AsyncIterator[httpx2.AsyncClient]:
    """A browser of somebody who has a link, and no other credential."""
    async with httpx2.AsyncClient(base_url=server.serving.address, headers=HTML) as found:
        yield found


@pytest.mark.covers("SERVER-PAGE-03")
async def test_a_signed_link_lands_on_its_hold_and_decides_once(
    server: Server, simple: Flow, mailbox: httpx2.AsyncClient
) -> None:
    hold = await waiting(server, simple)
    token = await link_to(server, hold)
    opened = await mailbox.get(f"/l/{token}")
    assert opened.status_code == 303
    assert opened.headers["location"] == f"/link/{hold}"
    assert opened.headers["referrer-policy"] == "no-referrer"
    cookie = opened.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert f"Path=/link/{hold}" in cookie
    page = (await mailbox.get(f"/link/{hold}")).text
    assert "Ship A-1?" in page
    assert token not in page
    assert "History" not in page  # a link shows the question, not who did what
    bare = await mailbox.post(f"/link/{hold}", data={"decision": "yes"})
    assert bare.status_code == 403
    fields = {"decision": "yes", "csrf_token": hidden(page, "csrf_token")}
    surplus = await mailbox.post(f"/link/{hold}", data=fields | {"surplus": "1", "comment": "In time."})
    assert surplus.status_code == 422
    assert "The form has no field" in surplus.text
    assert "In time." in surplus.text
    done = await mailbox.post(f"/link/{hold}", data=fields)
    assert done.status_code == 303, done.text
    row = await (await server.hf.holds()).get(operator(), hold)
    assert (row.status, row.resolved_by) == (HoldStatus.resolved, "user:dana")
    assert b'"link"' in (row.resolution or b"")
    again = await mailbox.post(f"/link/{hold}", data=fields | {"decision": "no", "comment": "x"})
    assert again.status_code == 409
    assert "Already decided." in again.text
    assert "dana decided “Yes”" in (await mailbox.get(f"/link/{hold}")).text


@pytest.mark.covers("SERVER-PAGE-03")
async def test_links_that_only_show_or_need_sign_in_have_no_buttons(
    server: Server, mailbox: httpx2.AsyncClient
) -> None:
    flow = Flow("careful", effect="pure")
    flow.hold("ask", prompt="Wire it?", options=["yes", "no"], assignee="user:dana", priority="critical")
    hold = await waiting(server, flow)
    for grant, words in (({}, "requires you to sign in"), ({"purpose": "view"}, "only shows the question")):
        opened = await mailbox.get(f"/l/{await link_to(server, hold, **grant)}")
        page = (await mailbox.get(opened.headers["location"])).text
        assert words in page
        assert 'name="decision"' not in page
        fields = {"decision": "yes", "csrf_token": hidden(page, "csrf_token")} if "csrf_token" in page else {}
        refused = await mailbox.post(f"/link/{hold}", data=fields or {"decision": "yes"})
        assert refused.status_code == 403
    row = await (await server.hf.holds()).get(operator(), hold)
    assert row.status is HoldStatus.pending


@pytest.mark.covers("SERVER-PAGE-03")
async def test_links_that_are_forged_or_void_say_so(
    server: Server, simple: Flow, mailbox: httpx2.AsyncClient
) -> None:
    hold = await waiting(server, simple)
    token = await link_to(server, hold)
    for bad in (token[:-4] + "AAAA", "v1.x.y", "nonsense", "a.b"):
        answer = await mailbox.get(f"/l/{bad}")
        assert answer.status_code == 403, bad
        assert "set-cookie" not in answer.headers
    people = await server.hf.holds()
    await people.reassign(operator(), hold, "user:lee")
    void = await mailbox.get(f"/l/{token}")
    assert void.status_code == 403
    assert "no longer valid" in void.text
    assert (await mailbox.get(f"/link/{hold}")).status_code == 403
    pasted = await mailbox.post("/links", data={"link": f"https://h.example/links#{token}"})
    assert pasted.headers["location"] == f"/l/{token}"
    assert "paste it here" in (await mailbox.get("/links")).text


# ---------------------------------------------------------------------- one file also on PostgreSQL


async def test_pages_decide_on_postgresql(simple: Flow) -> None:
    address = postgres.with_setting(postgres.database(), schema="pages")
    async with Holdfast(address) as hf, serving(hf) as server:
        hold = await waiting(server, simple)
        assert "Ship A-1?" in await get(server, f"/holds/{hold}")
        answers = await asyncio.gather(
            *(post(server, f"/holds/{hold}", {"decision": word, "comment": word}) for word in ("yes", "no"))
        )
        assert sorted(each.status_code for each in answers) == [303, 409]


# ---------------------------------------------------------------------- what was decided


@pytest.mark.covers("SAFE-READ-10", "WB-13")
async def test_decided_form_shows_its_values_and_a_returned_one_is_no_refusal(server: Server) -> None:
    flow = Flow("form", effect="pure")
    sections: list[dict[str, Any]] = [
        {"type": "input", "field": "amount", "kind": "integer", "label": "Amount", "default": 250},
        {"type": "input", "field": "why", "kind": "text", "label": "Reason", "required": True},
        {"type": "decision", "options": [{"id": "yes", "label": "Yes"}]},
    ]
    flow.hold("ask", prompt="Pay?", sections=sections, into="said", assignee="user:local")
    hold = await waiting(server, flow)
    shown = await get(server, f"/holds/{hold}")
    assert "Decided values" not in shown
    sent = {"decision": "yes", "request_hash": hidden(shown, "request_hash"), "f.amount": "200"}
    assert (await post(server, f"/holds/{hold}", sent)).status_code == 422
    returned = (await server.json("GET", f"/v1/holds/{hold}/history"))["items"]
    assert [each["action"] for each in returned if each["action"] in ("refused", "returned")] == ["returned"]
    sent["f.why"] = "agreed <b>"
    assert (await post(server, f"/holds/{hold}", sent)).status_code == 303
    text = unescape(re.sub(r"<[^>]+>", " ", await get(server, f"/holds/{hold}")))
    words = " ".join(text.split())
    assert "Decided values Amount 200 changed; proposed was 250 Reason agreed <b>" in words
    assert "local sent an answer that did not fit: a field was missing or wrong" in words
    assert "was not accepted" not in words
    told = [each["text"] for each in (await server.json("GET", f"/v1/holds/{hold}/history"))["items"]]
    assert "local chose “Yes” with amount 200 (proposed 250), over the API" in told
    assert told[-1] in words, "the page has the sentences of the API"


@pytest.mark.covers("SAFE-READ-10")
async def test_refusal_stays_a_refusal(server: Server, simple: Flow) -> None:
    hold = await waiting(server, simple)
    eve = bearer(await token(server, "user:eve", rights=("holds:write",)))
    answer = await server.client.post(f"/v1/holds/{hold}/resolve", json={"decision": "yes"}, headers=eve)
    assert answer.status_code == 403, answer.text
    history = (await server.json("GET", f"/v1/holds/{hold}/history"))["items"]
    assert [each["action"] for each in history if each["action"] in ("refused", "returned")] == ["refused"]
