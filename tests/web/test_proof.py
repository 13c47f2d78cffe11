"""What the browser tests rest on: a real browser, what it reports, and servers on both stores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.services import browser as installed
from tests.services import postgres
from tests.web.conftest import Opener, Told, WebServer, inspect
from tests.web.kept_page import KeptPage

pytestmark = pytest.mark.xdist_group("web")


@pytest.mark.covers("WB-68")
def test_without_a_browser_tests_skip_and_fail_where_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("HOLDFAST_REQUIRE", "")
    with pytest.raises(pytest.skip.Exception, match="no Chromium is installed"):
        installed.program()
    monkeypatch.setenv("HOLDFAST_REQUIRE", "postgres,browser")
    with pytest.raises(pytest.fail.Exception, match="browser is required"):
        installed.program()


@pytest.mark.covers("WB-70")
def test_errors_failed_requests_and_what_the_policy_blocks_are_told(
    server: WebServer, open_page: Opener, told: Told
) -> None:
    page = open_page("/settings")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    page.evaluate("console.error('written by a test')")
    page.evaluate("setTimeout(() => { throw new Error('thrown by a test') })")
    page.evaluate("fetch('/v1/nothing-here').then((answer) => answer.text())")
    page.evaluate("fetch('/v1/refused').catch(() => 0)")
    page.route("**/v1/refused", lambda route: route.abort())
    page.evaluate("fetch('/v1/refused').catch(() => 0)")
    page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.ran = true";
          document.body.append(script);
          const picture = document.createElement("img");
          picture.src = "http://elsewhere.test/x.png";
          document.body.append(picture);
        }"""
    )
    expected = (
        "written by a test",
        "thrown by a test",
        "status of 404",
        "ERR_FAILED",
        "script",
        "elsewhere.test",
    )
    for text in expected:
        page.wait_for_function("() => true")
        assert any(text in each for each in told.wrong), (text, told.wrong)
    assert page.evaluate("window.ran") is None
    told.wrong.clear()


def test_the_page_of_one_test_brings_nothing_to_the_next(
    server: WebServer, browser: Browser, session: Any
) -> None:
    kept, page = KeptPage(server.address), browser.new_context().new_page()
    kept.keep(page)
    page.context.add_cookies(session)
    page.goto(f"{server.address}/settings")
    page.evaluate("() => { localStorage.setItem('a', '1'); sessionStorage.setItem('b', '2'); }")
    page.route("**/healthz", lambda route: route.fulfill(body="changed"))
    kept.give_back()
    assert kept.lend() is page
    assert page.context.cookies() == []
    page.goto(f"{server.address}/healthz")
    expect(page.locator("body")).not_to_contain_text("changed")
    assert page.evaluate("localStorage.length + sessionStorage.length") == 0
    page.add_init_script("window.left = true")
    kept.give_back()
    assert page.is_closed()
    assert kept.lend() is None


@pytest.mark.covers("WB-68")
def test_a_question_is_decided_and_its_run_followed_on_postgresql(
    built: Path, browser: Browser, tmp_path: Path
) -> None:
    server = WebServer(tmp_path, store=postgres.with_setting(postgres.database(), schema="web"))
    try:
        hold, other = server.claim("P-1"), server.claim("P-2")
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        page = context.new_page()
        page.goto(server.sign_in)
        page.goto(f"{server.address}/inbox/mine/{hold['id']}?q=flow:claims")
        page.get_by_label("Amount").fill("900.00")
        page.get_by_role("combobox", name="Account").select_option("4400")
        page.get_by_role("button", name="Refund", exact=True).click()
        # The list goes on to the next question, and what happens is shown without a reload.
        expect(page.locator(".hold-title")).to_contain_text("P-2")
        page.goto(f"{server.address}/runs/{hold['run']}?tab=timeline")
        expect(page.get_by_text("Completed", exact=True).first).to_be_visible()
        expect(page.get_by_role("region", name="Timeline")).to_contain_text("pay")
        page.goto(f"{server.address}/inbox/all/{hold['id']}")
        expect(page.get_by_role("region", name="Decision")).to_contain_text("proposed: 1840.00")
        inspect(page, "postgresql-decided")
        page.goto(f"{server.address}/runs?q=flow:claims")
        expect(page.get_by_role("link", name=other["run"][:8])).to_be_visible()
        page.goto(f"{server.address}/operations/backlog")
        expect(page.get_by_role("table", name="Open questions by age")).to_contain_text("Under 1 hour")
        context.close()
    finally:
        server.stop()
