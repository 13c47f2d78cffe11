"""The pages in a real browser: without script, on a phone, as a screen reader hears them, live."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from holdfast import Flow, Worker
from holdfast.api.auth.authenticator import Authenticator
from holdfast.api.auth.first_token import sign_in_address
from holdfast.holds.links.open import Links
from holdfast.holds.links.tokens import LinkGrant
from holdfast.types.status import HoldStatus
from holdfast.types.terms import operator
from tests.api.conftest import Server
from tests.deadlines import HANG
from tests.services.browser import Tab, browsing

NAMED = ("button", "link", "textbox", "combobox", "radio", "checkbox", "spinbutton", "image", "region")
pytestmark = pytest.mark.anyio


@pytest.fixture
def asking() -> Flow:
    flow = Flow("asking", effect="pure")
    flow.hold(
        "ask",
        prompt="Ship order {{order}} to a customer with averyveryverylongnamewithoutanyspaceinitatallreally?",
        context={"order": "{{order}}", "lines": [{"what": "pen", "pieces": 3}, {"what": "ink", "pieces": 1}]},
        assignee="user:local",
        sections=[
            {"type": "input", "field": "note", "kind": "text", "label": "A note", "required": True},
            {"type": "input", "field": "count", "kind": "integer", "label": "How many", "default": 2},
            {"type": "input", "field": "rows", "kind": "table", "label": "Lines", "columns": ["what", "why"]},
            {
                "type": "decision",
                "options": [
                    {"id": "yes", "label": "Ship it", "variant": "primary"},
                    {"id": "no", "label": "Keep it"},
                ],
            },
        ],
        into="said",
    )

    async def after(_s: Any) -> dict[str, Any]:
        return {"went": True}

    flow.node(id="after")(after)
    flow.edge("ask", "after")
    return flow


async def waiting(server: Server, flow: Flow) -> tuple[str, str]:
    result = await flow.run({"order": "A-17"}, on=server.hf)
    return result.run_id, (await (await server.hf.service()).holds(result.run_id))[0].id


async def signed_in(server: Server) -> str:
    return await sign_in_address(Authenticator(server.hf), server.serving.address)


async def browse(work: Callable[[Tab], None], *, script: bool = False) -> None:
    """In a thread: the server answers in this one."""

    def whole() -> None:
        with browsing(script=script) as tab:
            tab.look()
            work(tab)

    await asyncio.to_thread(whole)


@pytest.mark.covers("SERVER-PAGE-02", "SERVER-PAGE-05", "SERVER-PAGE-07", "SERVER-AUTH-03")
async def test_a_person_without_script_signs_in_fills_a_form_and_decides(
    server: Server, asking: Flow
) -> None:
    _, hold = await waiting(server, asking)
    address, home = server.serving.address, await signed_in(server)

    def work(tab: Tab) -> None:
        tab.open(home)
        tab.click(f'a[href="/holds/{hold}"]')
        tab.type("#f-note", "fragile")
        tab.press("Enter", 13)  # decides nothing: no button was chosen
        assert "/holds/" in tab.text()
        assert "Done." not in tab.text()
        tab.type("#f-count", "x")
        tab.click('button[value="yes"]')
        assert "is not a number" in tab.text()
        assert 'value="fragile"' in tab.text()
        tab.type("#f-count", "3")
        tab.click('button[value="yes"]')
        assert "Done." in tab.text()
        tab.click(".me button")
        assert "Sign in" in tab.text()
        tab.open(f"{address}/holds/{hold}")
        assert 'id="token"' in tab.text()

    await browse(work)
    row = await (await server.hf.holds()).get(operator(), hold)
    assert (row.status, row.resolved_by) == (HoldStatus.resolved, "user:local")
    assert b'"count":3' in (row.resolution or b"")


@pytest.mark.covers("SERVER-PAGE-05", "SERVER-PAGE-07")
async def test_pages_fit_a_phone_and_are_asked_to_screen_readers(server: Server, asking: Flow) -> None:
    run, hold = await waiting(server, asking)
    address, home = server.serving.address, await signed_in(server)
    pages = (
        "/",
        "/holds?view=all",
        f"/holds/{hold}",
        "/runs",
        f"/runs/{run}",
        "/flows",
        "/flows/asking",
        "/nope",
    )

    def work(tab: Tab) -> None:
        tab.open(home)
        for path in pages:
            for width, dark in ((320, False), (1280, True)):
                tab.look(width=width, height=800, dark=dark)
                complaints = [text for text in tab.complaints(address + path) if "404" not in text]
                assert complaints == [], path
                assert tab.width() <= width, (path, width)
            tree = tab.tree()
            roles = [role for role, _ in tree]
            assert {"banner", "main", "contentinfo"} <= set(roles), path
            assert roles.count("main") == 1
            headings = re.findall(r"<h([1-6])", tab.text())
            assert headings.count("1") == 1, path
            assert all(int(b) - int(a) <= 1 for a, b in pairwise(headings)), path
            unnamed = [
                role for role, name in tree
                if role in NAMED and not name.strip()
            ]  # fmt: skip
            assert unnamed == [], path

    await browse(work)


@pytest.mark.covers("SERVER-PAGE-04")
async def test_a_runs_page_follows_the_run_with_and_without_script(server: Server, asking: Flow) -> None:
    run, hold = await waiting(server, asking)
    home = await signed_in(server)
    people, loop = await server.hf.holds(), asyncio.get_running_loop()

    def decide() -> None:
        answer = {"note": "n", "count": 1, "rows": []}
        said = people.resolve(operator(), hold, decision="yes", response_data=answer)
        asyncio.run_coroutine_threadsafe(said, loop).result(HANG)

    def work(tab: Tab) -> None:
        tab.open(home)
        tab.open(f"{server.serving.address}/runs/{run}")
        assert "waiting for input" in tab.text()
        decide()
        _until(tab, "completed")

    async with Worker(asking, on=server.hf):
        await browse(work, script=True)


@pytest.mark.covers("SERVER-PAGE-03")
async def test_a_link_with_its_token_behind_a_hash_opens_too(server: Server, asking: Flow) -> None:
    _, hold = await waiting(server, asking)
    people = await server.hf.holds()
    row = await people.get(operator(), hold)
    token = await Links(people.ctx).make(row, LinkGrant(to="user:dana", purpose="view"))

    def work(tab: Tab) -> None:
        tab.open(f"{server.serving.address}/links#{token}")
        _until(tab, "only shows the question")

    await browse(work, script=True)


def _until(tab: Tab, words: str) -> None:
    deadline = time.monotonic() + HANG
    while words not in tab.text():
        assert time.monotonic() < deadline, tab.text()
        time.sleep(0.1)
