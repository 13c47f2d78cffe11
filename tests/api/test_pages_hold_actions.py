"""What a hold's page does beside deciding, without script: hand on, put off, watch, ask back, reply."""

from __future__ import annotations

import re
from html import unescape

import pytest

from holdfast import Flow
from holdfast.types.terms import operator
from tests.api.conftest import Server
from tests.api.sign_in import bearer, browser, session, token

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SERVER-PAGE-02")]
HTML = {"Accept": "text/html"}


def simple() -> Flow:
    flow = Flow("simple", effect="pure")
    flow.hold("ask", prompt="Go on?", options=["yes", "no"], assignee="user:dana")
    return flow


async def waiting(server: Server, *, started_by: str = "user:ada") -> str:
    result = await simple().run({}, on=server.hf, started_by=started_by)
    return str(result.holds[0].id)


async def shown(server: Server, hold: str, who: dict[str, str]) -> str:
    answer = await server.client.get(f"/holds/{hold}", headers=HTML | who)
    assert answer.status_code == 200, answer.text
    return unescape(answer.text)


async def act(server: Server, hold: str, who: dict[str, str], status: int = 303, **form: str) -> str:
    answer = await server.client.post(f"/holds/{hold}", data=form, headers=HTML | who)
    assert answer.status_code == status, answer.text
    return unescape(answer.text) if status != 303 else str(answer.headers["location"])


async def test_hold_is_handed_on_with_a_reason(server: Server) -> None:
    hold = await waiting(server)
    dana = bearer(await token(server, "user:dana", "approver"))
    assert "Reassign</button>" in await shown(server, hold, dana)
    await act(server, hold, dana, act="reassign", to="user:eli", text="I am away")
    eli = bearer(await token(server, "user:eli", "approver"))
    page = await shown(server, hold, eli)
    assert "I am away" in page
    row = await (await server.hf.holds()).get(operator("user:op"), hold)
    assert row.assignee == "user:eli"


@pytest.mark.parametrize("to", ["", "user:"])
async def test_hold_stays_where_it_is_when_nobody_is_meant(server: Server, to: str) -> None:
    hold = await waiting(server)
    dana = bearer(await token(server, "user:dana", "approver"))
    assert "Nothing was changed." in await act(server, hold, dana, 422, act="reassign", to=to)
    assert "Yes" in (await shown(server, hold, dana)).title()


async def test_hold_is_put_off_and_comes_back(server: Server) -> None:
    hold = await waiting(server)
    dana = bearer(await token(server, "user:dana", "approver"))
    await act(server, hold, dana, act="snooze", **{"for": "4h"})
    assert "Snoozed until" in await shown(server, hold, dana)
    listed = await server.client.get("/holds", headers=HTML | dana)
    assert hold not in listed.text
    await act(server, hold, dana, act="unsnooze")
    assert "Snooze</button>" in await shown(server, hold, dana)
    assert hold in (await server.client.get("/holds", headers=HTML | dana)).text
    assert "Nothing was changed." in await act(server, hold, dana, 422, act="snooze", **{"for": "ever"})


async def test_hold_is_watched_and_no_longer(server: Server) -> None:
    hold = await waiting(server)
    dana = bearer(await token(server, "user:dana", "approver"))
    await act(server, hold, dana, act="watch")
    assert "Stop watching" in await shown(server, hold, dana)
    watched = await server.json("GET", "/v1/holds?view=watching", headers=dana)
    assert [each["id"] for each in watched["items"]] == [hold]
    await act(server, hold, dana, act="unwatch")
    assert (await server.json("GET", "/v1/holds?view=watching", headers=dana))["items"] == []


async def test_question_is_asked_back_and_replied_to(server: Server) -> None:
    hold = await waiting(server)
    dana = bearer(await token(server, "user:dana", "approver"))
    ada = bearer(await token(server, "user:ada", "approver"))
    page = await shown(server, hold, dana)
    assert "empty: ada, who started the run" in page
    await act(server, hold, dana, act="ask_back", to="", text="For which order?")
    asked = await shown(server, hold, ada)
    assert "dana asks: For which order?" in asked
    question = re.search(r'name="question" value="([^"]+)"', asked)
    assert question is not None
    # Whoever asked does not reply to themselves.
    assert 'name="question"' not in await shown(server, hold, dana)
    await act(server, hold, ada, act="reply", question=question[1], text="The blue one")
    assert "The blue one" in await shown(server, hold, dana)
    assert 'name="question"' not in await shown(server, hold, ada)


async def test_nothing_is_offered_to_a_caller_who_only_reads(server: Server) -> None:
    hold = await waiting(server)
    reader = bearer(await token(server, "user:dana", rights=("holds:read",)))
    page = await shown(server, hold, reader)
    assert not re.search(r'value="(reassign|snooze|watch|ask_back|reply)"', page)
    for wanted in ("reassign", "snooze", "watch", "ask_back"):
        await act(server, hold, reader, 403, act=wanted, to="user:eli", text="x", **{"for": "1h"})


async def test_act_from_another_sites_page_does_nothing(server: Server) -> None:
    hold = await waiting(server)
    async with browser(server, await session(server, "user:dana", "approver")) as tab:
        for form in ({"act": "watch"}, {"act": "reassign", "to": "user:evil", "csrf_token": "guess"}):
            answer = await tab.post(f"/holds/{hold}", data=form, headers=HTML)
            assert answer.status_code == 403
        page = await tab.get(f"/holds/{hold}", headers=HTML)
        csrf = re.search(r'name="csrf_token" value="([^"]+)"', page.text)
        assert csrf is not None
        form = {"act": "watch", "csrf_token": csrf[1]}
        assert (await tab.post(f"/holds/{hold}", data=form, headers=HTML)).status_code == 303
    row = await (await server.hf.holds()).get(operator("user:op"), hold)
    assert row.assignee == "user:dana"
