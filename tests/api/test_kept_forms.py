"""A session that ends while a form is filled in leads back to the hold, with what was typed."""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator
from html import unescape
from typing import Any

import httpx2
import pytest

from holdfast import Flow
from holdfast.api.auth.sessions import OpenSession, Sessions
from holdfast.api.pages.kept_form import COOKIE_SIZE, COOKIES
from holdfast.types.terms import operator
from tests.api.conftest import Server
from tests.api.sign_in import browser, session, token

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-READ-11")]
HTML = {"Accept": "text/html"}
TYPED = {"f.why": 'because <b> & "so"', "f.amount": "41", "comment": "line one\r\nline two"}


@pytest.fixture
async def hold(server: Server) -> str:
    flow = Flow("form", effect="pure")
    sections: list[dict[str, Any]] = [
        {"type": "input", "field": "amount", "kind": "integer", "default": 250},
        {"type": "input", "field": "why", "kind": "textarea", "required": True},
        {"type": "decision", "options": [{"id": "yes", "label": "Yes"}, {"id": "no", "label": "No"}]},
    ]
    flow.hold("ask", prompt="Pay?", sections=sections, into="said")
    return (await flow.run({}, on=server.hf)).holds[0].id


@pytest.fixture
async def opened(server: Server) -> OpenSession:
    return await session(server, "user:dana", "operator")


@pytest.fixture
async def dana(server: Server, opened: OpenSession) -> AsyncIterator[httpx2.AsyncClient]:
    async with browser(server, opened) as client:
        yield client


async def filled(client: httpx2.AsyncClient, hold: str, **more: str) -> dict[str, str]:
    """The page's form as a browser sends it."""
    page = (await client.get(f"/holds/{hold}", headers=HTML)).text
    names = ("csrf_token", "request_hash", "key", "who")
    found = {name: re.search(rf'name="{name}" value="([^"]*)"', page) for name in names}
    hidden = {name: unescape(each[1]) for name, each in found.items() if each}
    assert set(hidden) == set(names)
    return {**hidden, **TYPED, "decision": "yes", **more}


async def sign_in(server: Server, client: httpx2.AsyncClient, where: str, subject: str = "user:dana") -> str:
    """With a token, as the page does; answers the page that the browser comes to."""
    text = await token(server, subject, "operator")
    address = httpx2.URL(where)
    assert address.path == "/sign-in"
    answer = await client.post("/sign-in", data={"token": text, "next": address.params["next"]}, headers=HTML)
    assert answer.status_code == 303, answer.text
    return (await client.get(answer.headers["location"], headers=HTML)).text


def typed(page: str) -> dict[str, str]:
    amount = re.search(r'name="f\.amount"[^>]*value="([^"]*)"', page)
    areas = dict(re.findall(r'<textarea[^>]*name="([^"]+)"[^>]*>\n?(.*?)</textarea>', page, re.DOTALL))
    assert amount
    return {name: unescape(value) for name, value in {**areas, "f.amount": amount[1]}.items()}


async def test_person_comes_back_to_the_form_as_it_was_filled_in(
    server: Server, dana: httpx2.AsyncClient, opened: OpenSession, hold: str
) -> None:
    form = await filled(dana, hold)
    await Sessions(await server.hf.open()).end(opened.id)
    sent = await dana.post(f"/holds/{hold}", data=form, headers=HTML)
    assert sent.status_code == 303
    assert sent.headers["location"] == f"/sign-in?next=/holds/{hold}"
    assert "httponly" in sent.headers["set-cookie"].lower()
    page = await sign_in(server, dana, sent.headers["location"])
    assert "Your answer was not sent: you were signed out." in page
    seen = typed(page)
    assert (seen["f.why"], seen["f.amount"]) == (TYPED["f.why"], "41")
    assert seen["comment"] == "line one\nline two"
    # Nothing was decided without a session; now it can be.
    assert (await server.json("GET", f"/v1/holds/{hold}"))["status"] == "pending"
    again = await dana.post(f"/holds/{hold}", data=await filled(dana, hold), headers=HTML)
    assert again.headers["location"] == f"/holds/{hold}?decided=1"
    assert "you were signed out" not in (await dana.get(f"/holds/{hold}", headers=HTML)).text
    assert not [name for name in dana.cookies if name in COOKIES]


async def test_form_of_an_earlier_session_is_filled_in_again_for_the_new_one(
    server: Server, dana: httpx2.AsyncClient, opened: OpenSession, hold: str
) -> None:
    form = await filled(dana, hold)
    await Sessions(await server.hf.open()).end(opened.id)
    fresh = await session(server, "user:dana", "operator")
    dana.cookies.set("holdfast_session", fresh.id, domain=server.serving.host)
    own = {"Origin": server.serving.address, "Sec-Fetch-Site": "same-origin"}
    sent = await dana.post(f"/holds/{hold}", data=form, headers=HTML | own)
    assert (sent.status_code, sent.headers["location"]) == (303, f"/holds/{hold}")
    assert typed((await dana.get(f"/holds/{hold}", headers=HTML)).text)["f.why"] == TYPED["f.why"]


async def test_comment_is_kept_too(
    server: Server, dana: httpx2.AsyncClient, opened: OpenSession, hold: str
) -> None:
    form = await filled(dana, hold)
    await Sessions(await server.hf.open()).end(opened.id)
    told = {"act": "comment", "text": "Wait for <me>", "csrf_token": form["csrf_token"], "who": form["who"]}
    sent = await dana.post(f"/holds/{hold}", data=told, headers=HTML)
    page = await sign_in(server, dana, sent.headers["location"])
    assert "Your comment was not sent" in page
    text = re.search(r'<textarea id="text"[^>]*>\n?(.*?)</textarea>', page, re.DOTALL)
    assert text
    assert unescape(text[1]) == "Wait for <me>"


async def test_another_person_does_not_get_what_was_typed(
    server: Server, dana: httpx2.AsyncClient, opened: OpenSession, hold: str
) -> None:
    form = await filled(dana, hold)
    await Sessions(await server.hf.open()).end(opened.id)
    sent = await dana.post(f"/holds/{hold}", data=form, headers=HTML)
    page = await sign_in(server, dana, sent.headers["location"], "user:kim")
    assert "because" not in page


FORGED: list[tuple[str, dict[str, str], dict[str, str]]] = [
    ("no token", {"csrf_token": ""}, {}),
    ("another token", {"csrf_token": "0" * 64}, {}),
    ("another site", {}, {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}),
    ("another site without its name", {"csrf_token": "x"}, {"Origin": "null"}),
    ("no person", {"who": ""}, {}),
]


@pytest.mark.parametrize(("changed", "headers"), [each[1:] for each in FORGED], ids=[f[0] for f in FORGED])
async def test_other_sites_cannot_fill_in_the_form(
    server: Server, dana: httpx2.AsyncClient, opened: OpenSession, hold: str, changed: Any, headers: Any
) -> None:
    form = await filled(dana, hold, **changed)
    await Sessions(await server.hf.open()).end(opened.id)
    sent = await dana.post(f"/holds/{hold}", data=form, headers=HTML | headers)
    assert sent.headers["location"] == f"/sign-in?next=/holds/{hold}"
    assert "set-cookie" not in sent.headers


async def test_stranger_is_led_to_the_hold_and_nothing_is_kept(server: Server, hold: str) -> None:
    async with browser(server) as client:
        sent = await client.post(f"/holds/{hold}", data={"who": "user:dana", "f.why": "x"}, headers=HTML)
    assert sent.headers["location"] == f"/sign-in?next=/holds/{hold}"
    assert "set-cookie" not in sent.headers


async def test_long_text_is_left_out_and_said(
    server: Server, dana: httpx2.AsyncClient, opened: OpenSession, hold: str
) -> None:
    noise = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=5 * COOKIE_SIZE))
    form = await filled(dana, hold, **{"f.why": noise})
    await Sessions(await server.hf.open()).end(opened.id)
    sent = await dana.post(f"/holds/{hold}", data=form, headers=HTML)
    page = await sign_in(server, dana, sent.headers["location"])
    assert "Not everything could be kept" in page
    assert (typed(page)["f.amount"], typed(page)["f.why"].strip()) == ("41", "")


@pytest.mark.parametrize("value", ["x", "e30", "eJw", "A" * 3000])
async def test_damaged_cookie_is_ignored(
    dana: httpx2.AsyncClient, server: Server, hold: str, value: str
) -> None:
    dana.cookies.set(COOKIES[0], value, domain=server.serving.host)
    page = await dana.get(f"/holds/{hold}", headers=HTML)
    assert page.status_code == 200
    assert "you were signed out" not in page.text


@pytest.mark.parametrize(
    "name", ["surplus", "f.other", "f.amount.0.x", "f.why.rows", "kept.other", "decision_", "f."]
)
async def test_field_that_the_form_does_not_have_decides_nothing_and_loses_nothing(
    server: Server, dana: httpx2.AsyncClient, hold: str, name: str
) -> None:
    form = await filled(dana, hold, **{name: "1"})
    refused = await dana.post(f"/holds/{hold}", data=form, headers=HTML)
    assert refused.status_code == 422
    assert "The form has no field" in unescape(refused.text)
    seen = typed(refused.text)
    assert (seen["f.why"], seen["f.amount"], seen["comment"]) == (
        TYPED["f.why"], "41", TYPED["comment"].replace("\r\n", "\n"),
    )  # fmt: skip
    row = await (await server.hf.holds()).get(operator("user:op"), hold)
    assert row.status == "pending"
    del form[name]
    assert (await dana.post(f"/holds/{hold}", data=form, headers=HTML)).status_code == 303


async def test_comment_with_a_field_that_the_form_does_not_have_is_shown_again(
    dana: httpx2.AsyncClient, hold: str
) -> None:
    form = await filled(dana, hold)
    said = {"act": "comment", "text": "Why 41?", "csrf_token": form["csrf_token"], "surplus": "1"}
    refused = await dana.post(f"/holds/{hold}", data=said, headers=HTML)
    assert refused.status_code == 422
    assert re.search(r'<textarea id="text"[^>]*>\nWhy 41\?</textarea>', refused.text)
    assert "No comments yet." in refused.text
    del said["surplus"]
    assert (await dana.post(f"/holds/{hold}", data=said, headers=HTML)).status_code == 303


async def test_every_part_of_a_form_is_known(server: Server, dana: httpx2.AsyncClient) -> None:
    flow = Flow("parts", effect="pure")
    columns = [{"field": "name", "kind": "text"}, {"field": "price", "kind": "currency"}]
    sections: list[dict[str, Any]] = [
        {"type": "input", "field": "sum", "kind": "currency"},
        {"type": "input", "field": "items", "kind": "table", "columns": columns},
        {"type": "input", "field": "tags", "kind": "multiselect", "options": ["a", "b"]},
        {"type": "decision", "options": [{"id": "yes", "label": "Yes"}, {"id": "no", "label": "No"}]},
    ]
    flow.hold("ask", prompt="Pay?", sections=sections, into="said")
    hold = (await flow.run({}, on=server.hf)).holds[0].id
    page = (await dana.get(f"/holds/{hold}", headers=HTML)).text
    names = set(re.findall(r'<(?:input|select|textarea)[^>]* name="([^"]+)"', page.split("Comments</h2>")[0]))
    assert {"f.sum.currency", "f.items.rows", "f.items.0.price.currency", "f.tags"} <= names
    form = {name: "" for name in names if name != "who"}
    hidden = {
        name: unescape(value)
        for name, value in re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', page)
        if name in names
    }
    chosen = {"f.tags": "a", "decision": "yes"}
    sent = await dana.post(f"/holds/{hold}", data={**form, **hidden, **chosen}, headers=HTML)
    assert sent.status_code == 303, unescape(sent.text)
