"""Going through many questions: by keys alone, together with others, many at once, and a hundred thousand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import apsw
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.conftest import Opener, WebServer, inspect, picture
from tests.web.people import open_hold, signed_in, title

pytestmark = pytest.mark.xdist_group("web-2")


def rows(page: Page) -> Any:
    return page.get_by_role("list", name="Questions").get_by_role("listitem")


@pytest.mark.covers("WB-69-triage", "WB-69", "WEB-PROOF")
def test_twenty_questions_are_decided_by_keys_alone(server: WebServer, open_page: Opener) -> None:
    for number in range(20):
        server.claim(f"G-{number:02}", "brief")
    page = open_page("/runs")
    expect(page.locator(".live")).to_have_text("Live")
    for key in ("g", "i"):
        page.keyboard.press(key)
    expect(page.get_by_role("list", name="Questions")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("flow:brief G-")
    page.keyboard.press("Enter")
    expect(page.get_by_role("list", name="Filters")).to_be_visible()
    expect(page.get_by_text("20 questions")).to_be_visible()
    page.locator("#inbox-search").blur()
    page.keyboard.press("j")
    for number in range(20):
        shown = page.locator(".hold-title")
        expect(shown).to_have_text(f"Agree to G-{number:02}?")
        expect(page.get_by_role("button", name="Agree", exact=True)).to_be_visible()
        page.keyboard.press("2" if number % 5 == 0 else "1")
        expect(page.get_by_role("button", name=re.compile("^Confirm"))).to_be_visible()
        page.keyboard.press("Enter")
        expect(page.locator(".toast")).to_contain_text("Refuse" if number % 5 == 0 else "Agree")
    for _ in range(300):
        # The message of the last decision may still be that of the one before.
        query = "/v1/holds?q=flow:brief%20G-&view=all&status=pending&limit=100"
        by = {each["placed_by"] for each in server.api("GET", query)["items"]}
        if None not in by:
            break
        page.wait_for_timeout(100)
    assert by <= {"user:local"}
    for number in (0, 19):
        (found,) = server.api("GET", f"/v1/holds?q=%22G-{number:02}%22&view=all&limit=5")["items"]
        expect_decided(page, server, found["id"], "Refuse" if number == 0 else "Agree")


def expect_decided(page: Page, server: WebServer, hold: str, label: str) -> None:
    page.goto(f"{server.address}/holds/{hold}")
    decided = page.get_by_role("region", name="Decision")
    expect(decided).to_contain_text(label)
    expect(decided).to_contain_text("by local")


@pytest.mark.covers("WB-69-two", "WEB-PROOF", "WEB-INBOX")
@pytest.mark.parametrize(
    "rounds",
    [2, pytest.param(50, marks=[pytest.mark.soak, pytest.mark.timeout(1200), pytest.mark.covers("WB-69")])],
)
def test_two_people_on_one_question_are_told_who_was_first(
    server: WebServer, open_page: Opener, browser: Browser, rounds: int
) -> None:
    sam = signed_in(browser, server, "sam", "admin")
    theirs = sam.new_page()
    mine = open_page("/settings", expected="status of 4")
    for number in range(rounds):
        hold = server.claim(f"B-{number}", "short")
        open_hold(mine, server, hold)
        open_hold(theirs, server, hold, "all")
        for page in (mine, theirs):
            expect(page.get_by_role("button", name="Agree", exact=True)).to_be_visible()
            title(page)
            page.keyboard.press("1" if page is mine else "2")
        first, second = (mine, theirs) if number % 2 else (theirs, mine)
        first.keyboard.press("Enter")
        second.keyboard.press("Enter")
        expect(mine.locator(".toast:not(.away), .too-late").first).to_be_visible()
        expect(theirs.locator(".toast:not(.away), .too-late").first).to_be_visible()
        # Both are sent at once: the server says who was first, and each page says the same.
        history = server.api("GET", f"/v1/holds/{hold['id']}/history")["items"]
        (actor,) = [each["actor"] for each in history if each["action"] == "placed"]
        won, lost = (mine, theirs) if actor == "user:local" else (theirs, mine)
        expect(won.locator(".toast")).to_contain_text("Agree" if won is mine else "Refuse")
        told = lost.get_by_role("region", name="What you typed")
        expect(told).to_contain_text(f"{actor.removeprefix('user:')} ")
    picture(mine, "inbox-two-people")
    sam.close()


@pytest.mark.covers("WB-21")
def test_what_changed_after_the_preview_is_left_out_with_the_reason(
    server: WebServer, open_page: Opener, browser: Browser
) -> None:
    own, other = server.claim("M-1", "short"), server.claim("M-2", "short")
    kim = {"assignee": "user:kim", "reason": "Kim knows"}
    server.api("POST", f"/v1/holds/{other['id']}/reassign", kim)
    lee = signed_in(browser, server, "lee", "approver")
    server.api("POST", f"/v1/holds/{own['id']}/reassign", {"assignee": "user:lee", "reason": "x"})
    page = lee.new_page()
    page.goto(f"{server.address}/inbox/mine?q=flow%3Ashort+M-")
    expect(rows(page)).to_have_count(1)
    page.get_by_label("Select: Agree to M-1?").check()
    bulk = page.get_by_role("region", name="Select several")
    bulk.get_by_role("button", name="Agree", exact=True).click()
    expect(bulk).to_contain_text("Agree would be applied to 1 question")
    # Meanwhile it is given to another person: the preview was right, the decision leaves it out and says why.
    server.api("POST", f"/v1/holds/{own['id']}/reassign", kim)
    bulk.get_by_role("button", name="Confirm: Agree (1)").click()
    expect(bulk).to_contain_text("Agree was applied to 0 questions. 1 was left out and stays selected:")
    expect(bulk.get_by_role("listitem")).to_have_text("Agree to M-1?: it changed since it was shown.")
    expect(bulk).not_to_contain_text(re.compile(rf"{own['id']}|user:|\d{{4}}-\d\d-\d\dT"))
    expect(bulk).to_contain_text("1 selected")
    picture(page, "inbox-bulk-left")
    assert server.api("GET", f"/v1/holds/{own['id']}")["status"] == "pending"
    lee.close()


@pytest.mark.covers("WEB-INBOX")
def test_a_deadline_that_a_question_pauses_is_shown_as_paused_until_the_question_is_withdrawn(
    server: WebServer, open_page: Opener
) -> None:
    hold = server.claim("A-9")
    page = open_page(f"/inbox/mine/{hold['id']}")
    row = page.locator(f"[data-row='{hold['id']}']")
    head = page.locator(".hold-line")
    expect(row).to_contain_text("due in 2 days")
    title(page)
    page.keyboard.press("a")
    ask = page.get_by_role("form", name="Ask a question")
    ask.get_by_label("Your question").fill("Which glass?")
    ask.get_by_label("To whom").fill("kim")
    ask.get_by_role("button", name="Ask a question").click()
    expect(head).to_contain_text("deadline paused")
    expect(row).to_contain_text("deadline paused")
    # Who asked has no reply to give.
    expect(page.get_by_label("Your reply")).to_have_count(0)
    page.get_by_role("button", name="Withdraw the question").click()
    expect(head).to_contain_text("due in 2 days")
    expect(row).to_contain_text("due in 2 days")
    expect(page.locator(".history")).to_contain_text("local withdrew their question")


@pytest.mark.covers("WB-12-people", "WEB-INBOX")
def test_a_question_is_released_reassigned_asked_about_and_replied_to(
    server: WebServer, open_page: Opener, browser: Browser
) -> None:
    hold = server.claim("A-1", "short")
    page = open_page(f"/inbox/mine/{hold['id']}")
    page.get_by_role("button", name="Claim", exact=True).click()
    expect(page.get_by_text("local is working on it")).to_be_visible()
    page.get_by_role("button", name="Release").click()
    expect(page.get_by_text("local is working on it")).to_be_hidden()
    # Whoever started the run asks somebody else: there is nobody to ask by default.
    title(page)
    page.keyboard.press("a")
    ask = page.get_by_role("form", name="Ask a question")
    ask.get_by_label("Your question").fill("Which glass?")
    expect(ask.get_by_role("button", name="Ask a question")).to_be_disabled()
    ask.get_by_label("To whom").fill("kim")
    ask.get_by_role("button", name="Ask a question").click()
    expect(page.locator(".comments")).to_contain_text("local asks kim")
    kim = signed_in(browser, server, "kim", "approver")
    theirs = kim.new_page()
    theirs.goto(f"{server.address}/inbox/asked")
    theirs.get_by_role("button", name=re.compile("Agree to A-1")).click()
    theirs.get_by_label("Your reply").fill("The one from May")
    theirs.get_by_role("button", name="Reply").click()
    expect(theirs.locator(".comments")).to_contain_text("kim replies")
    expect(theirs.get_by_label("Your reply")).to_be_hidden()
    kim.close()
    expect(page.locator(".comments")).to_contain_text("The one from May")
    title(page)
    page.keyboard.press("r")
    panel = page.get_by_role("form", name="Reassign")
    panel.get_by_label("To", exact=True).fill("group:finance")
    panel.get_by_label("Reason").fill("Finance knows")
    inspect(page, "inbox-reassign")
    panel.get_by_role("button", name="Reassign").click()
    expect(page.get_by_text("For finance")).to_be_visible()
    expect(page.get_by_text("This question changed since you opened it.")).to_have_count(0)
    told = "local reassigned it to the group finance: Finance knows"
    expect(page.locator(".history")).to_contain_text(told)
    found = server.api("GET", f"/v1/holds/{hold['id']}")
    assert (found["assignee"], found["claimed_by"]) == ("group:finance", None)


COPIES = 99_999
COPY = """
WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < ?)
INSERT INTO holds ({names}) SELECT {values} FROM holds, counted WHERE holds.number = ?
"""
ANOTHER = {
    "id": "printf('00000000-0000-4000-8000-%012d', n)",
    "visit": "visit + n",
    "created_at": "created_at + n",
}


def fill_up(folder: Path) -> None:
    """A hundred thousand open questions: copies of the first, each a little younger."""
    store = apsw.Connection(str(folder / "web.db"))
    store.set_busy_timeout(30_000)
    kept = store.execute("SELECT name FROM pragma_table_info('holds') WHERE name <> 'number'")
    names = [str(name) for (name,) in kept]
    ((first,),) = store.execute("SELECT min(number) FROM holds")
    values = ", ".join(ANOTHER.get(name, name) for name in names)
    store.execute(COPY.format(names=", ".join(names), values=values), (COPIES, first))
    store.close()


@pytest.mark.covers("WB-23", "WB-21", "WB-5")
def test_a_hundred_thousand_questions_are_read_page_by_page(
    built: Path, tmp_path: Path, browser: Browser
) -> None:
    server = WebServer(tmp_path)
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    read: list[str] = []
    try:
        server.claim("H-1", "short")
        fill_up(tmp_path)
        page.goto(server.sign_in)
        page.on("request", lambda each: read.append(each.url) if "/v1/holds?" in each.url else None)
        page.goto(f"{server.address}/inbox/mine")
        foot = page.locator(".rows-foot")
        expect(foot).to_have_text("100 of 100,000 loaded")
        assert all("limit=100" in each for each in read)
        for loaded in (200, 300):
            scroll_bottom(page)
            expect(foot).to_have_text(f"{loaded} of 100,000 loaded")
        inspect(page, "inbox-huge")
        assert page.locator(".row").count() < 60
        for loaded in range(400, 2100, 100):
            scroll_bottom(page)
            expect(foot).to_have_text(f"{loaded:,} of 100,000 loaded")
            if loaded == 400:
                page.locator(".row-choice").last.click()
            if loaded == 1100:
                page.locator(".row-choice").last.click(modifiers=["Shift"])
                bulk = page.get_by_role("region", name="Select several")
                expect(bulk).to_contain_text("At most 500 can be decided at once.")
                expect(bulk.get_by_role("button", name="Agree")).to_be_hidden()
                bulk.get_by_role("button", name="Clear the selection").click()
        # Rows of the beginning are let go for those that come.
        page.wait_for_function(SCROLLED_PAST, arg=2200, polling=100)
        expect(foot).to_have_text("2,000 of 100,000 loaded")
        page.evaluate("document.querySelector('.rows').scrollTop = 0")
        expect(page.locator('.rows li[aria-posinset="1"]')).to_be_visible()
        expect(foot).to_have_text("2,000 of 100,000 loaded")
        assert page.locator(".row").count() < 60
    finally:
        page.context.close()
        server.stop()


SCROLLED_PAST = """(place) => {
    const rows = document.querySelector('.rows');
    rows.scrollTop = rows.scrollHeight;
    return Number([...rows.querySelectorAll('li[aria-posinset]')].at(-1)?.ariaPosInSet) > place;
}"""


def scroll_bottom(page: Page) -> None:
    page.evaluate("document.querySelector('.rows').scrollTop = document.querySelector('.rows').scrollHeight")
