"""People at work in the app, in a real browser against a real server."""

from __future__ import annotations

import re
from json import dumps

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import Opener, Told, WebServer, inspect, picture, too_wide

pytestmark = pytest.mark.xdist_group("web")
ATTEMPTS = 3
"""Of the client, until a read has failed."""


def fill(page: Page, amount: str = "900.00") -> None:
    page.get_by_label("Amount").fill(amount)
    page.get_by_role("combobox", name="Account").select_option("4400")


def leave_fields(page: Page) -> None:
    page.locator("h2.hold-title").focus()


@pytest.mark.covers("WB-69-newcomer", "WB-19-values", "WEB-PROOF")
def test_a_newcomer_decides_a_hold_by_keys_and_sees_the_run_go_on(
    server: WebServer, open_page: Opener
) -> None:
    hold = server.claim("N-1")
    page = open_page("/")
    expect(page).to_have_url(re.compile(r"/inbox/mine$"))
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    page.get_by_role("button", name=re.compile("N-1")).click()
    expect(page).to_have_url(re.compile(rf"/inbox/mine/{hold['id']}"))
    expect(page.locator(".confidence")).to_contain_text("62 % sure")
    inspect(page, "hold-open")
    fill(page)
    expect(page.get_by_text("was 1840.00")).to_be_visible()
    expect(page.get_by_text("Draft saved")).to_be_visible()
    leave_fields(page)
    page.keyboard.press("1")
    expect(page.get_by_role("button", name="Confirm: Refund")).to_be_visible()
    inspect(page, "hold-armed")
    page.keyboard.press("Enter")
    expect(page.locator(".toast")).to_contain_text("Refund")
    page.goto(f"{server.address}/runs/{hold['run']}")
    expect(page.get_by_text("Completed", exact=True)).to_be_visible()
    inspect(page, "run-completed")
    page.goto(f"{server.address}/holds/{hold['id']}")
    outcome = page.get_by_role("region", name="Decision")
    expect(outcome).to_contain_text("900.00")
    expect(outcome).to_contain_text("proposed: 1840.00")
    inspect(page, "hold-decided")


@pytest.mark.covers("WB-16-keys")
def test_another_key_and_another_hold_disarm(server: WebServer, open_page: Opener) -> None:
    first, second = server.claim("A-1"), server.claim("A-2")
    page = open_page(f"/inbox/mine/{first['id']}")
    confirm = page.get_by_role("button", name=re.compile("^Confirm"))
    expect(page.get_by_role("combobox", name="Account")).to_be_visible()
    for key in ("Escape", "?"):
        leave_fields(page)
        page.keyboard.press("1")
        expect(confirm).to_be_visible()
        page.keyboard.press(key)
        expect(confirm).to_be_hidden()
        if key == "?":
            expect(page.get_by_role("dialog")).to_be_visible()
            page.keyboard.press("Escape")
            expect(page.get_by_role("dialog")).to_be_hidden()
    leave_fields(page)
    page.keyboard.press("1")
    page.goto(f"{server.address}/inbox/mine/{second['id']}")
    page.get_by_role("combobox", name="Account").wait_for()
    page.keyboard.press("Enter")
    expect(confirm).to_be_hidden()
    for hold in (first, second):
        assert server.api("GET", f"/v1/holds/{hold['id']}")["status"] == "pending"


@pytest.mark.covers("WB-17-undo")
def test_undo_brings_back_the_hold_and_its_fields(server: WebServer, open_page: Opener) -> None:
    hold = server.claim("U-1", "patient")
    page = open_page(f"/inbox/mine/{hold['id']}")
    fill(page, "850.00")
    expect(page.get_by_text("Draft saved")).to_be_visible()
    page.get_by_role("button", name="Refund", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("Refund")
    inspect(page, "hold-placed")
    # Where no other question is left, the decided one is still open and has a button too.
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page).to_have_url(re.compile(hold["id"]))
    expect(page.get_by_label("Amount")).to_have_value("850.00")
    assert server.api("GET", f"/v1/holds/{hold['id']}")["placed_by"] is None


@pytest.mark.covers("WB-18-fields")
def test_a_missing_field_is_named_and_focused(server: WebServer, open_page: Opener) -> None:
    hold = server.claim("F-1")
    page = open_page(f"/inbox/mine/{hold['id']}")
    page.get_by_role("button", name="Refund", exact=True).click()
    expect(page.get_by_text("One field needs your attention.")).to_be_visible()
    expect(page.get_by_role("combobox", name="Account")).to_be_focused()
    page.get_by_role("button", name="Reject", exact=True).click()
    expect(page.get_by_label("What is wrong with it")).to_be_visible()
    inspect(page, "hold-invalid")


@pytest.mark.covers("WB-8-new", "WB-7-other")
def test_what_others_do_shows_without_a_reload(server: WebServer, open_page: Opener) -> None:
    hold = server.claim("L-1")
    page = open_page(f"/inbox/mine/{hold['id']}")
    expect(page.get_by_role("combobox", name="Account")).to_be_visible()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    server.claim("L-2")
    fresh = page.get_by_role("button", name="1 new")
    expect(fresh).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("L-2"))).to_be_hidden()
    body = {"decision": "refund", "response_data": {"amount": "700.00", "account": "4900"}}
    server.api("POST", f"/v1/holds/{hold['id']}/resolve", body)
    expect(page.get_by_role("region", name="Decision")).to_contain_text("700.00")
    fresh.click()
    expect(page.get_by_role("button", name=re.compile("L-2"))).to_be_visible()


@pytest.mark.covers("WB-46", "WB-69", "WEB-PROOF", "WEB-INBOX")
def test_a_session_that_ends_while_typing_shows_a_dialog_that_leads_back_to_what_was_typed(
    server: WebServer, open_page: Opener
) -> None:
    hold = server.claim("S-1")
    page = open_page(f"/inbox/mine/{hold['id']}", expected="status of 401")
    expect(page.get_by_role("combobox", name="Account")).to_be_visible()
    page.context.clear_cookies()
    page.get_by_label("Amount").fill("777.00")
    link = page.get_by_role("dialog").get_by_role("link", name="Sign in")
    expect(link).to_have_attribute("href", f"/sign-in?next=%2Finbox%2Fmine%2F{hold['id']}")
    inspect(page, "session-ended")
    link.click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    token = server.api("POST", "/v1/tokens", {"subject": "user:local", "roles": ["admin"]})["token"]
    # A wrong token does not lose the way back.
    for given in ("hf_mistyped", token):
        page.get_by_label("Token").fill(given)
        page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(f"{server.address}/inbox/mine/{hold['id']}")
    expect(page.get_by_label("Amount")).to_have_value("777.00")
    expect(page.get_by_text("Draft saved")).to_be_visible()
    # What another person typed in this tab is not shown, and dropped.
    other = {"person": "kim", "draft": {"decision": None, "values": {"amount": "1.00"}, "comment": ""}}
    page.evaluate(
        "([name, text]) => sessionStorage.setItem(name, text)", [f"holdfast.draft.{hold['id']}", dumps(other)]
    )
    page.reload()
    expect(page.get_by_label("Amount")).to_have_value("777.00")
    assert page.evaluate("sessionStorage.length") == 0


@pytest.mark.covers("WB-50-phone")
def test_nothing_is_wider_than_a_phone(server: WebServer, open_page: Opener) -> None:
    hold = server.claim("P-1")
    page = open_page("/inbox/mine", width=320, height=640)
    page.get_by_role("button", name=re.compile("P-1")).click()
    expect(page.get_by_role("combobox", name="Account")).to_be_visible()
    expect(page).to_have_url(re.compile(hold["id"]))
    assert too_wide(page) == []
    # The list is behind the question, and Back leads to it.
    expect(page.get_by_role("button", name=re.compile("P-1"))).to_be_hidden()
    page.get_by_role("button", name="Back to the list").click()
    expect(page.get_by_role("button", name=re.compile("P-1"))).to_be_visible()
    assert too_wide(page) == []


@pytest.mark.covers("WB-1-reload")
def test_reload_and_back_restore_what_was_shown(server: WebServer, open_page: Opener) -> None:
    hold = server.claim("B-1")
    page = open_page("/runs?q=flow%3Aclaims")
    page.get_by_role("link", name=hold["run"][:8]).click()
    page.get_by_role("link", name="State").click()
    page.get_by_role("button", name="Previous step").click()
    expect(page).to_have_url(re.compile(r"tab=state&at=\d+$"))
    shown = page.get_by_text(re.compile(r"^Record \d+ of \d+$")).inner_text()
    page.reload()
    expect(page.get_by_text(shown, exact=True)).to_be_visible()
    picture(page, "run-state")
    page.go_back()
    page.go_back()
    expect(page.get_by_label("Search")).to_have_value("flow:claims")


@pytest.mark.covers("WB-10-part")
def test_a_part_that_the_server_no_longer_has_offers_a_reload(server: WebServer, open_page: Opener) -> None:
    page = open_page("/inbox/mine", expected="Failed to ")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    page.route(re.compile(r"/assets/Screen-"), lambda route: route.fulfill(status=404, body=""))
    page.get_by_role("link", name="Flows").click()
    expect(page.get_by_text("A new version is available.")).to_be_visible()
    expect(page.get_by_role("button", name="Reload")).to_be_visible()


@pytest.mark.covers("WB-9")
def test_a_part_that_is_opened_while_the_server_is_away_is_loaded_when_it_answers_again(
    server: WebServer, open_page: Opener, told: Told
) -> None:
    page = open_page("/inbox/mine", expected="Failed to load resource")
    told.expected.add("A part of the page was not loaded")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    away = re.compile(r"/assets/|/healthz$")
    page.route(away, lambda route: route.abort())
    page.get_by_role("link", name="Flows").click()
    expect(page.get_by_text("This part of the page was not loaded.")).to_be_visible()
    with page.expect_event("requestfailed", lambda sent: sent.url.endswith("/healthz")):
        page.get_by_role("button", name="Retry").click()
    expect(page.get_by_text("This part of the page was not loaded.")).to_be_visible()
    expect(page.get_by_text("A new version is available.")).to_have_count(0)
    page.unroute(away)
    page.get_by_role("button", name="Retry").click()
    expect(page.get_by_role("heading", name="Flows")).to_be_visible()
    expect(page.get_by_text("A new version is available.")).to_have_count(0)


@pytest.mark.covers("WB-9")
def test_a_form_stays_with_what_is_typed_while_its_question_cannot_be_read_again(
    server: WebServer, open_page: Opener
) -> None:
    hold = server.claim("R-1")
    page = open_page(f"/inbox/mine/{hold['id']}", expected="Failed to load resource")
    amount = page.get_by_label("Amount")
    amount.fill("61")
    question = re.compile(rf"/v1/holds/{hold['id']}$")
    page.route(question, lambda route: route.abort())
    failed: list[str] = []
    page.on("requestfailed", lambda sent: failed.append(sent.url) if question.search(sent.url) else None)
    server.api("POST", f"/v1/holds/{hold['id']}/claim")
    while len(failed) < ATTEMPTS:
        page.wait_for_timeout(50)
    amount.press_sequentially("2.50", delay=250)  # as people type, so that the failure is drawn meanwhile
    expect(amount).to_have_value("612.50")
    expect(page.get_by_text("The server does not answer.")).to_have_count(0)
    page.unroute(question)


@pytest.mark.covers("WB-11-keys")
def test_keys_open_the_areas_and_are_listed(open_page: Opener) -> None:
    page = open_page("/inbox/mine")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog).to_contain_text("Operations")
    inspect(page, "keys")
