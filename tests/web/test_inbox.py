"""What people need beside the decision itself: what it leads to, and what others did meanwhile."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.web.conftest import Opener, WebServer, picture, violations

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("web")]


def open_hold(page: Page, server: WebServer, hold: dict[str, Any], tab: str = "") -> None:
    page.goto(f"{server.address}/inbox/mine/{hold['id']}{tab}")
    expect(page.get_by_role("combobox", name="Account")).to_be_visible()


@pytest.mark.covers("WB-20")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_flow_tab_says_what_each_option_would_do(
    server: WebServer, open_page: Opener, scheme: Any
) -> None:
    hold = server.claim(f"W-{scheme}")
    page = open_page(f"/inbox/mine/{hold['id']}?tab=flow", scheme=scheme)
    told = page.get_by_role("region", name="What each decision would do")
    expect(told).to_contain_text("With the proposed values")
    expect(told.get_by_role("heading", level=4)).to_have_text(["Refund", "Reject"])
    expect(told).to_contain_text("Depends on account.")
    page.get_by_role("combobox", name="Account").select_option("4900")
    expect(told).to_contain_text("With the values that you typed")
    expect(told).to_contain_text(f"pay-W-{scheme}")
    told.scroll_into_view_if_needed()
    picture(page, f"inbox-flow-{scheme}")
    assert violations(page) == []
    assert server.api("GET", f"/v1/holds/{hold['id']}")["status"] == "pending"


@pytest.mark.covers("WB-18-late")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_who_is_too_late_reads_the_decision_and_keeps_what_they_typed(
    server: WebServer, open_page: Opener, scheme: Any
) -> None:
    hold = server.claim(f"T-{scheme}", "patient")
    page = open_page(f"/inbox/mine/{hold['id']}", scheme=scheme, expected="status of 409")
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
    picture(page, f"inbox-late-{scheme}")
    assert violations(page) == []
    mine.get_by_role("button", name="Copy what I typed").click()
    expect(mine.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "Amount: 900.00\nAccount: 4400"


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
    picture(page, "inbox-changed")
    assert violations(page) == []
    changed.get_by_role("button", name="I have read it").click()
    page.get_by_role("button", name="Refund", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("Refund in")


@pytest.mark.covers("WB-18-refused")
def test_a_field_that_only_the_server_refuses_is_marked_and_focused(
    server: WebServer, open_page: Opener
) -> None:
    hold = server.claim("R-1")
    page = open_page(f"/inbox/mine/{hold['id']}", expected="status of 422")
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
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("combobox", name="Account")).to_have_value("4400")
