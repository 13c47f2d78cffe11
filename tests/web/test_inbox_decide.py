"""A decision in the inbox: two keys, once, undone for a while, and shown afterwards as it was made."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Request, Route, expect

from tests.web.conftest import Opener, WebServer, inspect, show
from tests.web.people import open_hold, signed_in, title

pytestmark = pytest.mark.xdist_group("web-2")


def history(server: WebServer, hold: dict[str, Any]) -> list[dict[str, Any]]:
    return server.api("GET", f"/v1/holds/{hold['id']}/history")["items"]


def fill(page: Page) -> None:
    page.get_by_label("Amount").fill("900.00")
    page.get_by_role("combobox", name="Account").select_option("4400")


@pytest.mark.covers("WB-50", "WB-46")
def test_the_focus_follows_an_armed_decision_and_a_comment_that_is_not_sent_is_kept(
    server: WebServer, open_page: Opener
) -> None:
    hold = server.claim("D-7")
    page = open_page(f"/inbox/mine/{hold['id']}")
    reject = page.get_by_role("article").get_by_role("button", name="Reject")
    reject.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name=re.compile("^Confirm"))).to_be_focused()
    page.get_by_role("button", name="Back", exact=True).press("Enter")
    expect(page.get_by_role("article").get_by_role("button", name="Refund")).to_be_focused()
    # By keys: an option that needs a comment leads into it, and Esc out of it.
    show(page, f"/inbox/mine/{server.claim('D-8', 'explained')['id']}")
    expect(page.get_by_role("button", name="Refuse")).to_be_visible()
    title(page)
    page.keyboard.press("2")
    expect(page.get_by_label("Comment", exact=False).first).to_be_focused()
    page.keyboard.type("No")
    page.keyboard.press("Escape")
    expect(page.locator(".hold-title")).to_be_focused()
    expect(page.get_by_role("button", name=re.compile("^Confirm"))).to_have_count(0)
    show(page, f"/inbox/mine/{hold['id']}")
    page.get_by_label("Add a comment").fill("The frame is missing")
    page.get_by_role("article").get_by_role("link", name="Data", exact=True).click()
    page.get_by_role("article").get_by_role("link", name="Activity", exact=True).click()
    expect(page.get_by_label("Add a comment")).to_have_value("The frame is missing")
    page.reload()
    expect(page.get_by_label("Add a comment")).to_have_value("The frame is missing")
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator(".comments")).to_contain_text("The frame is missing")
    expect(page.get_by_label("Add a comment")).to_have_value("")
    page.reload()
    expect(page.locator(".comments")).to_contain_text("The frame is missing")
    expect(page.get_by_label("Add a comment")).to_have_value("")


@pytest.mark.covers("WB-16", "WB-50")
def test_the_field_that_is_typed_into_stays_while_another_person_changes_the_question(
    server: WebServer, open_page: Opener, browser: Browser
) -> None:
    hold = server.claim("D-9", "patient")
    page = open_page(f"/inbox/mine/{hold['id']}")
    expect(page.get_by_role("combobox", name="Account")).to_be_visible()
    title(page)
    page.keyboard.press("2")
    why = page.get_by_label("What is wrong with it")
    why.fill("The frame")
    kim = signed_in(browser, server, "kim", "admin")
    theirs = kim.new_page()
    theirs.goto(f"{server.address}/inbox/all/{hold['id']}")
    theirs.get_by_role("button", name="Claim", exact=True).click()
    # It is another version, which nothing decides yet; what is typed is text, and no keys of the page.
    expect(page.get_by_text("kim is working on it")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Confirm"))).to_have_count(0)
    expect(why).to_be_focused()
    page.keyboard.type(" misses rungs")
    expect(why).to_have_value("The frame misses rungs")
    page.keyboard.press("Control+Enter")
    confirm = page.get_by_role("button", name="Confirm: Reject")
    expect(confirm).to_be_visible()
    # A key that takes the focused button away leaves the focus beside it.
    confirm.focus()
    page.keyboard.press("q")
    expect(page.get_by_role("article").get_by_role("button", name="Refund")).to_be_focused()
    # Away from the typed text too.
    page.keyboard.press("2")
    why.press("Escape")
    expect(why).to_have_count(0)
    expect(page.locator(".hold-title")).to_be_focused()
    assert page.locator(".hold-title").evaluate("each => getComputedStyle(each).outlineStyle") == "solid"
    kim.close()


@pytest.mark.covers("WB-16")
def test_only_enter_after_a_digit_decides_and_only_what_was_shown(
    server: WebServer, open_page: Opener
) -> None:
    first, second = server.claim("D-1", "short"), server.claim("D-2", "short")
    page = open_page(f"/inbox/mine/{first['id']}?q=flow%3Ashort")
    confirm = page.get_by_role("button", name=re.compile("^Confirm"))
    # The key x selects the row, and the bar of a selection has a button of this name too.
    agree = page.get_by_role("article").get_by_role("button", name="Agree", exact=True)
    expect(agree).to_be_visible()
    for key in ("9", "ArrowLeft", "PageDown", "x", "h", " ", "Escape"):
        title(page)
        page.keyboard.press("1")
        expect(confirm).to_be_visible()
        page.keyboard.press(key)
        expect(confirm).to_be_hidden()
    page.keyboard.press("Enter")
    # A change by another person disarms, also if Enter comes at once.
    title(page)
    page.keyboard.press("1")
    expect(confirm).to_have_text(re.compile("^Confirm: Agree"))
    server.api("POST", f"/v1/holds/{first['id']}/claim", {})
    expect(confirm).to_be_hidden()
    page.keyboard.press("Enter")
    # Keys that are pressed while the next question is on its way belong to no question.
    waiting: list[Route] = []
    page.route(re.compile(f"/v1/holds/{second['id']}$"), lambda route: waiting.append(route))
    title(page)
    page.keyboard.press("1")
    page.keyboard.press("j")
    expect(page).to_have_url(re.compile(second["id"]))
    for key in ("Enter", "1", "Enter"):
        page.keyboard.press(key)
    for route in waiting:
        route.continue_()
    expect(agree).to_be_visible()
    expect(confirm).to_be_hidden()
    for hold in (first, second):
        found = server.api("GET", f"/v1/holds/{hold['id']}")
        assert (found["status"], found["placed_by"]) == ("pending", None)


@pytest.mark.covers("WB-17", "WEB-INBOX")
def test_a_decision_waits_while_the_next_row_is_focused_and_a_closed_tab_changes_nothing(
    server: WebServer, open_page: Opener
) -> None:
    first, second = server.claim("E-1", "default_undo"), server.claim("E-2", "default_undo")
    page = open_page(f"/inbox/mine/{first['id']}?q=flow%3Adefault_undo")
    fill(page)
    expect(page.get_by_text("Draft saved")).to_be_visible()
    title(page)
    page.keyboard.press("1")
    expect(page.get_by_text("Refund is chosen. Enter confirms, Escape goes back.")).to_be_attached()
    page.keyboard.press("Enter")
    toast = page.locator(".toast")
    expect(toast).to_contain_text(re.compile(r"Refund in [1-8] s\."))
    row = page.get_by_role("button", name=re.compile("Refund claim E-2"))
    expect(row).to_have_attribute("aria-current", "true")
    expect(row).to_be_focused()
    # It lies over no button of the next question.
    decisions = page.locator(".decisions").bounding_box()
    undo = toast.bounding_box()
    assert decisions is not None
    assert undo is not None
    assert undo["x"] + undo["width"] <= decisions["x"]
    placed = server.api("GET", f"/v1/holds/{first['id']}")
    assert placed["status"] == "pending"
    page.keyboard.press("z")
    expect(page).to_have_url(re.compile(first["id"]))
    expect(page.get_by_label("Amount")).to_have_value("900.00")
    expect(page.get_by_role("button", name=re.compile("Refund claim E-1"))).to_be_focused()
    assert server.api("GET", f"/v1/holds/{first['id']}")["placed_by"] is None
    assert server.api("GET", f"/v1/holds/{second['id']}")["status"] == "pending"
    # The window is the server's: what was placed becomes final without the tab, what was typed does not.
    third, fourth = server.claim("E-3"), server.claim("E-4")
    page.goto(f"{server.address}/inbox/mine/{third['id']}?q=flow%3Aclaims+E-")
    fill(page)
    title(page)
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    expect(toast).to_contain_text("Refund")
    expect(page).to_have_url(re.compile(fourth["id"]))
    page.get_by_label("Amount").fill("1.00")
    page.close()
    watcher = open_page(f"/holds/{third['id']}")
    expect(watcher.get_by_role("region", name="Decision")).to_contain_text("900.00")
    assert server.api("GET", f"/v1/holds/{fourth['id']}")["status"] == "pending"


@pytest.mark.covers("WB-18")
def test_a_double_click_a_lost_reply_and_a_reload_decide_once(server: WebServer, open_page: Opener) -> None:
    hold, lost = server.claim("O-1", "patient"), server.claim("O-2", "patient")
    page = open_page(f"/inbox/mine/{hold['id']}", expected="ERR_FAILED")
    sent: list[Request] = []
    page.on("request", lambda each: sent.append(each) if each.url.endswith("/place") else None)
    fill(page)
    page.get_by_role("button", name="Refund", exact=True).dblclick()
    expect(page.locator(".toast")).to_contain_text("Refund in")
    placed = [each["action"] for each in history(server, hold)].count("placed")
    assert placed == 1
    body = sent[0].post_data_json
    assert sent[0].headers["if-match"].strip('"') == str(hold["version"])
    assert body["request_hash"] == hold["request_hash"]
    assert len({each.headers["idempotency-key"] for each in sent}) == 1
    # The server decides, and its reply is lost on the way.
    open_hold(page, server, lost)
    fill(page)
    sent.clear()

    def lose(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route(re.compile(r"/place$"), lose)
    page.get_by_role("button", name="Refund", exact=True).click()
    decided = page.get_by_role("region", name="Decision")
    expect(decided).to_contain_text("local has decided: Refund.")
    expect(page.get_by_role("region", name="What you typed")).to_be_hidden()
    assert len({each.headers["idempotency-key"] for each in sent}) == 1
    page.unroute_all(behavior="wait")  # a reply that is being lost must not meet the reload
    page.reload()
    expect(page.get_by_role("button", name="Refund", exact=True)).to_be_hidden()
    assert [each["action"] for each in history(server, lost)].count("placed") == 1
    # Also after a reload, the person who decided can take it back.
    decided.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("button", name="Refund", exact=True)).to_be_visible()
    expect(page.locator(".hold-title")).to_be_focused()
    assert server.api("GET", f"/v1/holds/{lost['id']}")["placed_by"] is None


@pytest.mark.covers("WB-18")
def test_the_second_click_of_a_double_click_does_not_decide_the_next_hold_however_late_it_comes(
    server: WebServer, open_page: Opener
) -> None:
    first, second = server.claim("W-1", "patient"), server.claim("W-2", "patient")
    page = open_page(f"/inbox/mine/{second['id']}?q=flow%3Apatient")
    fill(page)  # so that it could be decided by one click
    expect(page.get_by_text("Draft saved")).to_be_visible()
    open_hold(page, server, first)
    fill(page)
    refund = page.get_by_role("button", name="Refund", exact=True)
    sent: list[str] = []
    page.on("request", lambda each: sent.append(each.url) if each.url.endswith("/place") else None)
    refund.click()
    while second["id"] not in page.url:  # those of tests before may come first
        expect(page.locator(".toast")).to_contain_text("Refund in")
        open_hold(page, server, second)
    expect(page.get_by_label("Amount")).to_have_value("900.00")
    expect(refund).to_be_enabled()
    box = refund.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down(click_count=2)
    page.mouse.up(click_count=2)
    expect(refund).to_be_enabled()
    assert server.api("GET", f"/v1/holds/{second['id']}")["placed_by"] is None
    assert len(sent) == 1
    refund.click()
    expect(page.locator(".toast")).to_contain_text("Refund in")
    assert server.api("GET", f"/v1/holds/{second['id']}")["placed_by"] == "user:local"


@pytest.mark.covers("WB-19", "WEB-DECIDED", "WB-13")
def test_a_decided_hold_shows_what_was_decided_and_how(server: WebServer, open_page: Opener) -> None:
    hold = server.claim("Z-1")
    page = open_page(f"/inbox/mine/{hold['id']}")
    fill(page)
    page.get_by_role("button", name="Reject", exact=True).click()
    page.get_by_label("What is wrong with it").fill("Two years old")
    page.get_by_label("Comment", exact=True).fill("See the letter of May")
    page.get_by_role("button", name="Confirm: Reject").click()
    expect(page.locator(".toast")).to_contain_text("Reject")
    page.goto(f"{server.address}/holds/{hold['id']}")
    decided = page.get_by_role("region", name="Decision")
    expect(decided).to_contain_text("The run resumed")
    for text in ("Reject", "by local", "on the web page", "See the letter of May", "Amount (EUR)",
                 "900.00", "proposed: 1840.00", "4400 Material", "Two years old"):  # fmt: skip
        expect(decided).to_contain_text(text)
    expect(decided.locator("time")).to_have_count(2)
    expect(decided).not_to_contain_text("after the deadline")
    sentence = "local rejected with amount 900.00 (proposed 1,840.00), on the web page"
    expect(page.locator(".history")).to_contain_text(sentence)
    inspect(page, "inbox-decided")
    # After its deadline, which the server seldom lets happen; and by the deadline itself.
    page.route(re.compile(f"/v1/holds/{hold['id']}$"), make_late)
    page.goto(f"{server.address}/holds/{hold['id']}")
    expect(decided).to_contain_text("on the web page · after the deadline")
    silent = server.claim("silent", "silent")
    page.goto(f"{server.address}/holds/{silent['id']}")
    expect(decided).to_contain_text("Refuse")
    expect(decided).to_contain_text("automatic: not answered in time")
    expect(page.locator(".history")).to_contain_text("because no answer came in time")


def make_late(route: Route) -> None:
    answer = route.fetch()
    found = answer.json()
    route.fulfill(response=answer, json={**found, "resolution": {**found["resolution"], "late": True}})


CLICK_AT_ONCE = """hold => new MutationObserver(() => {
  const all = [...document.querySelectorAll(".decisions button")];
  const button = all.find((each) => each.textContent.includes("Agree"));
  if (!button || !location.pathname.includes(hold)) return;
  window.clicks = (window.clicks ?? 0) + 1;
  button.click();
}).observe(document.body, { subtree: true, childList: true })"""


@pytest.mark.covers("WB-16", "WB-18")
def test_the_second_click_of_a_double_click_decides_nothing(server: WebServer, open_page: Opener) -> None:
    first, second = server.claim("W-1", "short"), server.claim("W-2", "short")
    page = open_page(f"/inbox/mine/{first['id']}?q=flow%3Ashort+W-")
    agree = page.get_by_role("article").get_by_role("button", name="Agree", exact=True)
    expect(agree).to_be_visible()
    page.evaluate(CLICK_AT_ONCE, second["id"])
    agree.click()
    expect(page).to_have_url(re.compile(second["id"]))
    # Not by `wait_for_function`, which the page's policy forbids.
    while not page.evaluate("window.clicks > 0"):
        page.wait_for_timeout(20)
    expect(agree).to_be_enabled()
    found = server.api("GET", f"/v1/holds/{second['id']}")
    assert (found["status"], found["placed_by"]) == ("pending", None)


@pytest.mark.covers("WB-46")
def test_a_page_decides_for_nobody_but_the_person_who_opened_it(server: WebServer, open_page: Opener) -> None:
    hold = server.claim("V-1", "short")
    page = open_page(f"/inbox/all/{hold['id']}", expected="status of 40")
    agree = page.get_by_role("article").get_by_role("button", name="Agree", exact=True)
    expect(agree).to_be_visible()
    token = server.api("POST", "/v1/tokens", {"subject": "user:ann", "roles": ["admin"]})["token"]
    page.context.clear_cookies()  # the session of the fixture lives on
    page.request.post(f"{server.address}/sign-in", form={"token": token})
    agree.click()
    expect(page.get_by_role("dialog", name="Another person has signed in")).to_be_visible()
    found = server.api("GET", f"/v1/holds/{hold['id']}")
    assert (found["status"], found["placed_by"]) == ("pending", None)


@pytest.mark.covers("WB-18")
def test_a_decision_of_another_person_is_named_while_it_can_still_be_undone(
    server: WebServer, open_page: Opener, browser: Browser
) -> None:
    hold = server.claim("Y-1", "patient")
    page = open_page(f"/inbox/all/{hold['id']}")
    fill(page)
    page.get_by_label("Amount").fill("750.00")
    expect(page.get_by_text("Draft saved")).to_be_visible()
    sam = signed_in(browser, server, "sam", "admin")
    theirs = sam.new_page()
    open_hold(theirs, server, hold, "all")
    fill(theirs)
    theirs.get_by_role("button", name="Refund", exact=True).click()
    expect(theirs.locator(".toast")).to_contain_text("Refund in")
    told = page.get_by_role("region", name="What you typed")
    expect(told).to_contain_text(
        re.compile(r"sam has decided: Refund\. It is final at \d\d:\d\d unless sam ")
    )
    expect(told).to_contain_text("750.00")
    badge = page.locator(".hold-head .badge")
    expect(badge).to_have_text("Refund, not final yet")
    # Its row has room for it.
    facts = page.locator(f"[data-row='{hold['id']}'] .row-facts")
    expect(facts).to_contain_text("sam has decided")
    assert facts.evaluate("each => each.scrollWidth <= each.clientWidth + 1")
    inspect(page, "inbox-placed-by-another")
    # Their undo opens it again.
    theirs.locator(".toast").get_by_role("button", name="Undo").click()
    expect(badge).to_have_text("Open")
    expect(page.get_by_role("button", name="Refund", exact=True)).to_be_visible()
    sam.close()


@pytest.mark.covers("WB-17")
def test_who_signs_out_while_a_decision_can_be_undone_is_asked_first(
    server: WebServer, browser: Browser
) -> None:
    first, second = server.claim("D-20", "patient"), server.claim("D-21", "patient")
    context = signed_in(browser, server, "local", "admin")
    page = context.new_page()
    open_hold(page, server, first)
    decide_and_sign_out(page)
    dialog = page.get_by_role("dialog", name="Your decision is not final yet")
    expect(dialog).to_contain_text("If you sign out before, it is undone")
    inspect(page, "sign-out-not-final")
    # Who stays keeps it.
    dialog.get_by_role("button", name="Close").click()
    assert server.api("GET", f"/v1/holds/{first['id']}")["placed_until"]
    page.keyboard.press("z")
    expect(page.get_by_label("Amount")).to_have_value("900.00")
    # What was undone is not asked about.
    assert page.evaluate("localStorage.getItem('holdfast.placed')") == "{}"
    open_hold(page, server, second)
    decide_and_sign_out(page)
    # The window of this flow is a minute; the page is told that it ends now.
    soon = "hold => localStorage.setItem('holdfast.placed', JSON.stringify({ [hold]: Date.now() + 1000 }))"
    dialog.get_by_role("button", name="Wait, then sign out").click()
    expect(dialog).to_contain_text("You are signed out in")
    page.evaluate(soon, second["id"])
    expect(page).to_have_url(f"{server.address}/sign-in")
    assert page.evaluate("localStorage.getItem('holdfast.placed')") is None
    context.close()


def decide_and_sign_out(page: Page) -> None:
    fill(page)
    title(page)
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile(r"^Refund in \d+ s"))).to_be_visible()
    page.get_by_role("button", name="Account of local").click()
    page.get_by_role("menuitem", name="Sign out").click()


@pytest.mark.covers("WB-19")
def test_a_list_of_decided_questions_says_who_decided_each_and_when(
    server: WebServer, open_page: Opener
) -> None:
    hold = server.claim("D-22", "short")
    server.api("POST", f"/v1/holds/{hold['id']}/resolve", {"decision": "refuse"})
    page = open_page("/inbox/all?q=status%3Aresolved%20flow%3Ashort")
    row = page.locator(f"[data-row='{hold['id']}']")
    expect(row).to_contain_text("Refuse")
    expect(row).to_contain_text("by local just now")
