"""Titles of pages, long texts, shadow answers, and what the header says after a session."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import Opener, WebServer, too_wide, violations

pytestmark = pytest.mark.xdist_group("web")
PHONE = {"width": 360, "height": 700}


@pytest.fixture(scope="module")
def server(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    found = WebServer(tmp_path_factory.mktemp("texts"), Path(__file__).with_name("long_flows.py"))
    yield found
    found.stop()


def asked(server: WebServer, flow: str) -> dict[str, Any]:
    run = server.api("POST", "/v1/runs", {"flow": flow, "input": {}, "wait": 60})
    (hold,) = server.api("GET", f"/v1/holds?run={run['id']}")["items"]
    return hold


def decided(server: WebServer, flow: str, decision: str) -> str:
    hold = asked(server, flow)
    server.api("POST", f"/v1/holds/{hold['id']}/resolve", {"decision": decision})
    return str(hold["id"])


def counted(title: str) -> re.Pattern[str]:
    """With the number of open questions before it."""
    return re.compile(rf"^\(\d+\) {re.escape(title)}$")


def heights(page: Page, selector: str) -> float:
    box = page.locator(selector).first.bounding_box()
    assert box is not None
    return box["height"]


@pytest.mark.covers("WB-54")
def test_a_long_label_of_a_decision_does_not_scroll_a_phone_sideways(
    server: WebServer, open_page: Opener
) -> None:
    open_hold = asked(server, "long_label")["id"]
    page = open_page(f"/holds/{open_hold}", **PHONE)
    expect(page.get_by_role("button", name="Approve the refund")).to_be_visible()
    assert too_wide(page) == []
    done = decided(server, "long_label", "yes")
    page = open_page(f"/holds/{done}", **PHONE)
    expect(page.locator(".outcome")).to_contain_text("with an apology")
    assert too_wide(page) == []
    page = open_page("/inbox/done", **PHONE)
    expect(page.locator(".rows [data-row]").first).to_be_visible()
    assert too_wide(page) == []


@pytest.mark.covers("WB-27")
def test_a_long_question_and_a_long_error_are_folded_to_a_part_of_the_page(
    server: WebServer, open_page: Opener
) -> None:
    page = open_page(f"/inbox/all/{asked(server, 'long_prompt')['id']}", **PHONE)
    button = page.get_by_role("button", name=re.compile("Show all"))
    expect(button).to_be_visible()
    folded = page.locator(".hold-body").evaluate("each => each.scrollHeight")
    button.click()
    expect(page.get_by_role("button", name="Show less")).to_be_visible()
    grown = "small => document.querySelector('.hold-body').scrollHeight > 3 * small"
    page.wait_for_function(grown, arg=folded)  # laid out with the next frame
    run = server.api("POST", "/v1/runs", {"flow": "long_error", "input": {}, "wait": 60})["id"]
    page = open_page(f"/runs/{run}", **PHONE)
    error = page.locator(".run-head .run-error")
    expect(error.get_by_role("button", name=re.compile("Show all"))).to_be_visible()
    assert heights(page, ".run-head .run-error") < PHONE["height"]
    error.get_by_role("button").click()
    assert heights(page, ".run-head .run-error") > PHONE["height"]


@pytest.mark.covers("WB-51")
def test_each_view_has_its_title_and_screen_readers_hear_that_of_the_next(
    server: WebServer, open_page: Opener
) -> None:
    hold = asked(server, "judged")
    page = open_page("/inbox/mine")
    expect(page).to_have_title(counted("Mine · Inbox · Holdfast"))
    said = page.locator("[data-title]")
    expect(said).to_have_text("")
    page.get_by_role("link", name="Runs", exact=True).click()
    expect(page).to_have_title(counted("Runs · Holdfast"))
    expect(said).to_have_text("Runs · Holdfast")
    short = hold["run"][:8]
    for path, title in (
        (f"/runs/{hold['run']}", f"judged {short} · Runs · Holdfast"),
        ("/flows", "Flows · Holdfast"),
        ("/flows/judged", "judged · Flows · Holdfast"),
        ("/flows/judged/start", "Start judged · Holdfast"),
        ("/editor/judged", "judged · Editor · Holdfast"),
        ("/operations/backlog", "Backlog · Operations · Holdfast"),
        ("/settings", "Settings · Holdfast"),
        (f"/inbox/mine/{hold['id']}", "Refund 12? · Inbox · Holdfast"),
        ("/nowhere", "There is nothing at this address. · Holdfast"),
    ):
        page.evaluate("path => history.pushState(null, '', path)", path)
        expect(page).to_have_title(counted(title))
        expect(said).to_have_text(title)


@pytest.mark.covers("WB-46")
def test_the_header_says_no_more_that_it_is_live_after_the_session_has_ended(
    server: WebServer, open_page: Opener
) -> None:
    page = open_page("/runs", expected="401")
    mark = page.locator(".bar .live")
    expect(mark).to_have_text("Live")
    page.context.clear_cookies()
    page.get_by_role("link", name="Flows", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("Your session has ended")
    expect(mark).to_have_text("Signed out")


@pytest.mark.covers("USERS-SHADOW")
def test_the_shadow_answer_of_a_judge_is_shown_after_the_decision_only(
    server: WebServer, open_page: Opener
) -> None:
    hold = asked(server, "judged")["id"]
    page = open_page(f"/holds/{hold}")
    expect(page.get_by_role("button", name="Refund", exact=True)).to_be_visible()
    assert "amount is small" not in page.content()
    page.goto(f"{server.address}/plain/holds/{hold}")
    assert "judged/decide" not in page.content()
    for decision, word in (("no", "Differs"), ("yes", "Agrees")):
        page.goto(f"{server.address}/holds/{decided(server, 'judged', decision)}")
        shown = page.get_by_role("region", name="Shadow answer")
        expect(shown).to_contain_text(f"Refund{word}judged/decide answered before the question was shown")
        expect(shown).to_contain_text("82% sure")
        expect(shown).to_contain_text("The amount is small.")
        assert violations(page) == []
        page.goto(page.url.replace("/inbox/all/", "/plain/holds/"))
        shown = page.get_by_role("region", name="Shadow answer")
        expect(shown).to_contain_text(f"Refund ({word.lower()}). judged/decide answered before")


@pytest.mark.covers("FLEET-DEGR-03")
def test_the_page_of_a_run_that_waits_for_the_blob_store_says_why(
    server: WebServer, open_page: Opener
) -> None:
    run = asked(server, "judged")["run"]
    page = open_page("/runs")
    detail = server.api("GET", f"/v1/runs/{run}") | {"status": "running", "unstored": "The bucket is away."}
    page.route(re.compile(f"/v1/runs/{run}$"), lambda route: route.fulfill(json=detail))
    page.goto(f"{server.address}/runs/{run}")
    expect(page.locator(".run-held")).to_have_text(
        "The run waits for the blob store. It resumes when the store is available. The bucket is away."
    )
    assert violations(page) == []


@pytest.mark.covers("WB-54")
def test_tables_of_a_flow_and_errors_in_lists_fit_a_phone(server: WebServer, open_page: Opener) -> None:
    server.api("POST", "/v1/runs", {"flow": "long_error", "input": {}, "wait": 60})
    page = open_page("/runs?q=flow%3Along_error", **PHONE)
    expect(page.locator(".row-error").first).to_be_visible()
    assert heights(page, ".row-error") < 100
    for tab in ("versions", "runs", "failures"):
        page.goto(f"{server.address}/flows/long_error?tab={tab}")
        expect(page.locator(".flow-table tbody tr").first).to_be_visible()
        wide = "all => all.filter(one => one.scrollWidth > one.clientWidth).length"
        assert page.locator(".table-scroll").evaluate_all(wide) == 0, tab
        assert too_wide(page) == []
    page.goto(f"{server.address}/editor/judged")
    expect(page.locator(".react-flow__node").first).to_be_visible()
    covered = """() => {
      const under = document.querySelector(".react-flow__controls").getBoundingClientRect();
      return [...document.querySelectorAll(".react-flow__node")].filter((each) => {
        const { top, bottom, left, right } = each.getBoundingClientRect();
        return left < under.right && right > under.left && top < under.bottom && bottom > under.top;
      }).length;
    }"""
    assert page.evaluate(covered) == 0
