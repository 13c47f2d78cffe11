"""What people need beside the decision itself: what it leads to, and what others did meanwhile."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.web.conftest import Opener, WebServer, inspect, violations

pytestmark = pytest.mark.xdist_group("web-2")


def open_hold(page: Page, server: WebServer, hold: dict[str, Any], tab: str = "") -> None:
    page.goto(f"{server.address}/inbox/mine/{hold['id']}{tab}")
    expect(page.get_by_role("combobox", name="Account")).to_be_visible()


@pytest.mark.covers("WB-20")
def test_the_flow_tab_says_what_each_option_would_do(server: WebServer, open_page: Opener) -> None:
    hold = server.claim("W-1")
    page = open_page(f"/inbox/mine/{hold['id']}?tab=flow")
    # The whole title is in the list, at a common width of a window.
    title = page.locator(".row.current .row-title")
    expect(title).to_have_text("Refund claim W-1 of Nordwerk?")
    assert title.evaluate(
        "each => each.scrollHeight <= each.clientHeight && each.scrollWidth <= each.clientWidth"
    )
    told = page.get_by_role("region", name="What each decision would do")
    expect(told).to_contain_text("With the proposed values")
    expect(told.get_by_role("heading", level=4)).to_have_text(["Refund", "Reject"])
    # No field that is still empty decides what happens.
    expect(told).to_contain_text("pay-W-1")
    expect(told).not_to_contain_text("Depends on")
    page.get_by_role("combobox", name="Account").select_option("4900")
    expect(told).to_contain_text("With the values that you typed")
    expect(told).to_contain_text("pay-W-1")
    told.scroll_into_view_if_needed()
    inspect(page, "inbox-flow")
    assert server.api("GET", f"/v1/holds/{hold['id']}")["status"] == "pending"


@pytest.mark.covers("WB-18-late", "WEB-INBOX")
def test_who_is_too_late_reads_the_decision_and_keeps_what_they_typed(
    server: WebServer, open_page: Opener
) -> None:
    hold = server.claim("T-1", "patient")
    page = open_page(f"/inbox/mine/{hold['id']}", expected="status of 409")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])

    def overtake(route: Route) -> None:
        answer = {"amount": "700.00", "account": "4900", "why": "Too old"}
        server.api("POST", f"/v1/holds/{hold['id']}/resolve", {"decision": "reject", "response_data": answer})
        route.continue_()

    page.route(re.compile(r"/place$"), overtake)
    page.get_by_label("Amount").fill("900.00")
    page.get_by_role("combobox", name="Account").select_option("4400")
    page.get_by_role("button", name="Refund", exact=True).click()
    mine = page.get_by_role("region", name="What you typed")
    expect(mine).to_contain_text("local had already decided: Reject.")
    expect(mine.locator("time")).to_be_visible()
    expect(mine).to_contain_text("900.00")
    inspect(page, "inbox-late")
    mine.get_by_role("button", name="Copy what I typed").click()
    expect(mine.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "Amount: 900.00\nAccount: 4400 Material"


@pytest.mark.covers("WB-18-changed")
def test_a_question_that_changed_says_what_changed_before_it_is_decided(
    server: WebServer, open_page: Opener
) -> None:
    hold = server.claim("C-1", "patient")
    page = open_page(f"/inbox/mine/{hold['id']}", expected="status of 412")

    def change(route: Route) -> None:
        if server.api("GET", f"/v1/holds/{hold['id']}")["version"] == hold["version"]:
            later = {"expires_at": "2099-01-02T10:00:00Z", "reason": "More time"}
            server.api("POST", f"/v1/holds/{hold['id']}/reassign", {"assignee": "user:local", **later})
        route.continue_()

    page.route(re.compile(r"/place$"), change)
    page.get_by_role("combobox", name="Account").select_option("4400")
    page.get_by_role("button", name="Refund", exact=True).click()
    expect(page.get_by_text("Nothing was decided: the question changed")).to_be_visible()
    changed = page.get_by_role("alert", name="This question changed since you opened it.")
    expect(changed).to_contain_text("2099")
    expect(page.get_by_role("combobox", name="Account")).to_have_value("4400")
    inspect(page, "inbox-changed")
    changed.get_by_role("button", name="I have read it").click()
    page.get_by_role("button", name="Refund", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("Refund in")


@pytest.mark.covers("WB-18-refused")
def test_a_field_that_only_the_server_refuses_is_marked_and_focused(
    server: WebServer, open_page: Opener
) -> None:
    hold = server.claim("R-1")
    page = open_page(f"/inbox/mine/{hold['id']}", expected="status of 422")
    page.get_by_role("button", name="Refund", exact=True).click()
    expect(page.get_by_role("combobox", name="Account")).to_have_attribute("aria-invalid", "true")
    # What another decision asks for besides is not wrong before the person has come to it.
    page.get_by_role("button", name="Reject", exact=True).click()
    expect(page.get_by_label("What is wrong with it")).to_be_visible()
    expect(page.get_by_label("What is wrong with it")).not_to_have_attribute("aria-invalid", "true")
    page.get_by_role("button", name="Back", exact=True).click()
    page.get_by_label("Amount").fill("12,three")
    page.get_by_role("combobox", name="Account").select_option("4400")
    page.get_by_role("button", name="Refund", exact=True).click()
    expect(page.get_by_label("Amount")).to_be_focused()
    expect(page.get_by_label("Amount")).to_have_attribute("aria-invalid", "true")
    assert violations(page) == []


@pytest.mark.covers("WB-14-clock")
def test_countdowns_follow_the_clock_of_the_server(server: WebServer, open_page: Opener) -> None:
    hold = server.claim("K-1", "patient")
    page = open_page("/settings")
    # An hour ahead: by this clock the minute for an undo is over before it begins.
    page.add_init_script("const now = Date.now; Date.now = () => now() + 3_600_000;")
    open_hold(page, server, hold)
    page.get_by_role("combobox", name="Account").select_option("4400")
    page.get_by_role("button", name="Refund", exact=True).click()
    expect(page.locator(".toast")).to_contain_text(re.compile(r"Refund in \d\d? s"))
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("combobox", name="Account")).to_have_value("4400")


def press(page: Page, *keys: str) -> None:
    page.locator("h2.hold-title").focus()
    for key in keys:
        page.keyboard.press(key)


@pytest.mark.covers("WB-12-hold", "WEB-INBOX")
def test_keys_claim_snooze_watch_and_comment(server: WebServer, open_page: Opener) -> None:
    hold = server.claim("M-1", "patient")
    page = open_page(f"/inbox/mine/{hold['id']}")
    expect(page.get_by_role("combobox", name="Account")).to_be_visible()
    press(page, "m")
    expect(page.get_by_role("button", name="Release")).to_be_visible()
    press(page, "w")
    page.get_by_role("button", name="More").click()
    expect(page.get_by_role("menuitem", name="Stop watching")).to_be_visible()
    inspect(page, "inbox-actions")
    page.keyboard.press("Escape")
    press(page, "s")
    snooze = page.get_by_role("form", name="Snooze")
    expect(snooze.get_by_label("For")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".hold-title")).to_be_focused()
    press(page, "s")
    snooze.get_by_label("For").select_option("1")
    snooze.get_by_role("button", name="Snooze").click()
    expect(snooze).to_be_hidden()
    toast = page.locator(".toast:not(.away)")
    expect(toast).to_contain_text(
        re.compile(r"Refund claim M-1 of Nordwerk\?” is snoozed until \d+ \w+ \d\d:\d\d")
    )
    inspect(page, "inbox-snoozed")
    press(page, "z")
    expect(toast).to_have_count(0)
    assert server.api("GET", f"/v1/holds?view=snoozed&run={hold['run']}")["items"] == []
    press(page, "s")
    snooze.get_by_role("button", name="Snooze").click()
    expect(toast.get_by_role("button", name="Undo")).to_be_visible()
    press(page, "c")
    expect(page.get_by_label("Add a comment")).to_be_focused()
    page.keyboard.type("Seen by me")
    # A comment is no decision: it is sent, and nothing is armed.
    for _ in range(2):
        page.keyboard.press("Control+Enter")
    expect(page.locator(".comments").get_by_role("listitem")).to_have_count(1)
    expect(page.get_by_role("button", name=re.compile("^Confirm"))).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.locator(".hold-title")).to_be_focused()
    # Its row says it, and everything that the row says is in view.
    page.goto(f"{server.address}/inbox/all/{hold['id']}")
    facts = page.get_by_role("button", name=re.compile("Refund claim M-1")).locator(".row-facts")
    for text in ("High", "patient", "local", "62 % sure", "1 comment"):
        expect(facts).to_contain_text(text)
    inspect(page, "inbox-row")
    assert facts.evaluate("each => each.scrollWidth <= each.clientWidth + 1")
    expect(page.get_by_label("Add a comment")).to_be_visible()
    press(page, "a")
    ask = page.get_by_role("form", name="Ask a question")
    ask.get_by_label("Your question").fill("Which glass?")
    inspect(page, "inbox-ask")
    page.keyboard.press("Escape")
    expect(ask).to_be_hidden()
    for view in ("watching", "snoozed"):
        found = server.api("GET", f"/v1/holds?view={view}&run={hold['run']}")["items"]
        assert [each["id"] for each in found] == [hold["id"]], view
    assert server.api("GET", f"/v1/holds/{hold['id']}")["claimed_by"] == "user:local"
    # Until when, in its row and beside it.
    page.goto(f"{server.address}/inbox/snoozed/{hold['id']}")
    asleep = page.get_by_role("button", name=re.compile("Refund claim M-1")).locator(".row-asleep")
    expect(asleep).to_have_text(re.compile(r"^snoozed until \d+ \w+ \d\d:\d\d$"))
    assert asleep.evaluate("each => each.scrollWidth <= each.clientWidth + 1")
    assert asleep.evaluate(
        "each => each.getBoundingClientRect().right <= each.parentElement.getBoundingClientRect().right"
    )
    until = re.compile(r"You snoozed this question until \d+ \w+ \d\d:\d\d")
    expect(page.get_by_role("article")).to_contain_text(until)


@pytest.mark.covers("WB-50")
def test_keys_go_on_from_the_row_that_escape_leads_back_to(server: WebServer, open_page: Opener) -> None:
    for number in range(3):
        server.claim(f"E-{number}", "short")
    page = open_page("/inbox/mine?q=E-%20flow%3Ashort")
    rows = page.locator(".row")
    expect(rows).to_have_count(3)
    for _ in range(2):
        page.keyboard.press("j")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".hold-title")).to_have_count(0)
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("j")
    expect(rows.nth(2)).to_be_focused()


@pytest.mark.covers("WB-21-bulk", "WEB-INBOX")
def test_many_are_decided_after_a_preview_and_failures_stay_selected(
    server: WebServer, open_page: Opener
) -> None:
    first, second, third = (server.claim(f"B-{each}", "short") for each in "123")
    page = open_page(f"/inbox/mine/{first['id']}?q=flow%3Ashort")
    expect(page.get_by_role("button", name="Agree", exact=True)).to_be_visible()
    # The key selects a row of the list, which may come after the question.
    expect(page.get_by_label("Select: Agree to B-1?")).to_be_visible()
    press(page, "x")
    for each in "23":
        page.get_by_label(f"Select: Agree to B-{each}?").check()
    bulk = page.get_by_role("region", name="Select several")
    expect(bulk).to_contain_text("3 selected")
    # The bar is below the rows: none has moved under the pointer.
    assert page.locator(".rows").bounding_box()["y"] < bulk.bounding_box()["y"]  # type: ignore[index]
    bulk.get_by_role("button", name="Agree", exact=True).click()
    expect(bulk.get_by_label("Comment")).to_be_focused()
    expect(bulk).to_contain_text("Agree would be applied to 3 questions.")
    inspect(page, "inbox-bulk")
    assert server.api("GET", f"/v1/holds/{first['id']}")["status"] == "pending"
    server.api("POST", f"/v1/holds/{second['id']}/resolve", {"decision": "refuse"})
    bulk.get_by_role("button", name="Confirm: Agree (3)").dblclick()
    expect(bulk).to_contain_text("Agree was chosen for 2 questions. 1 was left out and stays selected:")
    expect(page.locator(".toast")).to_contain_text("Agree (2) in")
    expect(bulk).to_contain_text("1 selected")
    expect(bulk.get_by_role("listitem")).to_contain_text("already decided: “Refuse” by local")
    inspect(page, "inbox-bulk-done")
    for hold in (first, third):
        assert server.api("GET", f"/v1/holds/{hold['id']}")["placed_by"] == "user:local"
    # All of them are undone together.
    page.locator(".toast").get_by_role("button", name="Undo").click()
    row = page.get_by_role("button", name=re.compile("^(?!Select).*Agree to B-1"))
    expect(row).to_be_focused()
    expect(bulk).not_to_contain_text("was chosen")
    for hold in (first, third):
        assert server.api("GET", f"/v1/holds/{hold['id']}")["placed_by"] is None


@pytest.mark.covers("WB-15-view", "WEB-INBOX")
def test_a_search_is_saved_as_a_view_and_deleted(server: WebServer, open_page: Opener) -> None:
    server.claim("V-1", "short")
    decided = server.claim("V-0", "short")
    server.api("POST", f"/v1/holds/{decided['id']}/resolve", {"decision": "agree"})
    page = open_page("/inbox/all?q=flow%3Ashort+V-")
    page.get_by_role("button", name="+ Save view").click()
    page.get_by_label("Name").fill("Short ones")
    inspect(page, "inbox-view")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("link", name="Short ones")).to_have_attribute("aria-current", "page")
    expect(page.get_by_role("button", name="+ Save view")).to_be_focused()
    expect(page.get_by_role("searchbox", name="Search")).to_have_value("flow:short V-")
    # Listed are both, counted is the one that still waits.
    expect(page.get_by_role("button", name=re.compile("Agree to V-0"))).to_be_visible()
    expect(page.get_by_role("link", name="Short ones").locator(".view-count")).to_have_text("1")
    expect(page.get_by_role("button", name=re.compile("V-1"))).to_be_visible()
    page.get_by_role("button", name="Delete the view Short ones").click()
    expect(page.get_by_role("link", name="Short ones")).to_be_hidden()
    expect(page.get_by_role("button", name="+ Save view")).to_be_focused()
    assert server.api("GET", "/v1/views")["items"] == []


@pytest.mark.covers("WEB-INBOX")
def test_the_first_view_of_a_question_is_recorded_once(server: WebServer, open_page: Opener) -> None:
    hold = server.claim("S-1", "short")
    before = server.api("GET", "/v1/holds/metrics")["time_to_view"]["count"]
    page = open_page(f"/inbox/mine/{hold['id']}")
    history = page.locator(".history")
    expect(history).to_contain_text("local looked at it for the first time")
    page.reload()
    expect(history).to_contain_text("local looked at it for the first time")
    actions = [each["action"] for each in server.api("GET", f"/v1/holds/{hold['id']}/history")["items"]]
    assert actions.count("viewed") == 1
    assert server.api("GET", "/v1/holds/metrics")["time_to_view"]["count"] == before + 1
