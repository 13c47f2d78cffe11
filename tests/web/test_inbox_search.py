"""Searching in the inbox and in the list of runs: one grammar in Python and in the app."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.web.conftest import Opener, WebServer, inspect, too_wide
from tests.web.query_corpus import FILE, corpus

pytestmark = pytest.mark.xdist_group("web")
NAMES = (
    "age, assignee, decided, decided_by, due, flow, group, has, key, priority, role, run, status, tag, text, "
    "type"
)


@pytest.mark.covers("WB-15")
def test_the_searches_that_the_app_is_tested_with_are_read_by_the_server() -> None:
    """web/tests/query.test.ts reads each of them with the app's own grammar."""
    assert FILE.read_text() == corpus(), "run python -m tests.web.query_corpus"


@pytest.mark.covers("WB-15", "WEB-INBOX")
def test_a_wrong_word_is_named_and_the_last_good_list_stays(server: WebServer, open_page: Opener) -> None:
    hold = server.claim("Q-1", "short")
    server.claim("Q-2")
    page = open_page("/inbox/mine?q=flow%3Ashort+Q-1")
    row = page.get_by_role("button", name=re.compile("Agree to Q-1"))
    expect(row).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("Refund claim Q-2"))).to_be_hidden()
    filters = page.get_by_role("list", name="Filters")
    expect(filters.get_by_role("listitem")).to_have_text([re.compile("flow:short"), re.compile("text “Q-1”")])
    box = page.get_by_role("searchbox", name="Search")
    for query, told in (
        (
            "flow:short priority>=urgent",
            "“priority>=urgent” is not known. Known: low, normal, high, critical.",
        ),
        ("due<soon", "“due<soon” has no length of time. Write due<2d, due<4h or due<30m."),
        ("flow>short", "“flow>short”: flow cannot be compared. Write flow:VALUE."),
        ("foo:bar Q-1", f"“foo:bar”: foo is not a search term. Known: {NAMES}."),
        ("staus:pending Q-1", "“staus:pending”: staus is not a search term."),
    ):
        box.fill(query)
        box.press("Enter")
        expect(page.get_by_role("alert")).to_have_text(told)
        expect(box).to_have_attribute("aria-invalid", "true")
        expect(row).to_be_visible()
        expect(page).to_have_url(re.compile(r"q=flow%3Ashort(\+|%20)Q-1$"))
    inspect(page, "inbox-wrong-word")
    page.get_by_role("button", name="Search for status:pending Q-1").click()
    expect(page).to_have_url(re.compile(r"q=status%3Apending(\+|%20)Q-1$"))
    expect(row).to_be_visible()
    box.fill("re:invoice")
    box.press("Enter")
    page.get_by_role("button", name="Search for text:re:invoice").click()
    expect(filters.get_by_role("listitem")).to_have_text([re.compile("text “re:invoice”")])
    page.go_back()
    page.go_back()
    page.get_by_role("button", name="Remove flow:short").click()
    expect(page).to_have_url(re.compile("q=Q-1$"))
    expect(row).to_be_visible()
    # A link with a wrong word names it too.
    page.goto(f"{server.address}/inbox/mine/{hold['id']}?q=status%3Aopen")
    expect(page.get_by_role("alert")).to_contain_text("“status:open” is not known. Known: pending")
    expect(row).to_be_visible()
    page.set_viewport_size({"width": 320, "height": 640})
    assert too_wide(page) == []
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{server.address}/runs?q=flow%3Ashort")
    expect(page.get_by_role("link", name=hold["run"][:8])).to_be_visible()
    box = page.get_by_role("searchbox", name="Search")
    box.fill("took:1h")
    box.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("“took:1h” needs < or >. Write took<2d or took>2d.")
    expect(page.get_by_role("link", name=hold["run"][:8])).to_be_visible()
    expect(page).to_have_url(re.compile("q=flow%3Ashort$"))
