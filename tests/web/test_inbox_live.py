"""The inbox while others work, the network is cut and the server is restarted."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Request, Response, WebSocketRoute, expect

from tests.web.conftest import Opener, Told, WebServer, inspect, show
from tests.web.people import open_hold, signed_in

pytestmark = pytest.mark.xdist_group("web-2")
SOCKET = re.compile(r"/v1/stream/ws")
STREAM = re.compile(r"/v1/holds/stream")
REFUSE = {"decision": "refuse"}


def row(page: Page, name: str) -> Any:
    return page.get_by_role("button", name=re.compile(f"Agree to {name}\\?"))


def live(page: Page, state: str = "Live") -> None:
    expect(page.locator(".live")).to_have_text(state)


def titles(page: Page) -> list[str]:
    return page.locator(".row-title").all_inner_texts()


@pytest.mark.covers("WB-8", "WEB-INBOX")
def test_rows_change_in_place_new_ones_wait_and_gone_ones_are_dimmed(
    server: WebServer, open_page: Opener, browser: Browser
) -> None:
    first, second, third = (server.claim(f"K-{each}", "short") for each in "123")
    page = open_page(f"/inbox/mine/{first['id']}?q=flow%3Ashort+K-")
    live(page)
    expect(row(page, "K-3")).to_be_visible()
    before = titles(page)
    # Of another view: it does not count.
    server.claim("X-1", "short")
    kim = {"assignee": "user:kim", "reason": "Kim knows"}
    server.api("POST", f"/v1/holds/{second['id']}/resolve", REFUSE)
    server.api("POST", f"/v1/holds/{third['id']}/reassign", kim)
    for each in "45":
        server.claim(f"K-{each}", "short")
    fresh = page.get_by_role("button", name="2 new")
    expect(fresh).to_be_visible()
    expect(row(page, "K-2")).to_have_class(re.compile("dimmed"))
    expect(row(page, "K-2")).to_contain_text("Refuse")
    expect(row(page, "K-3")).to_have_class(re.compile("dimmed"))
    expect(row(page, "K-3")).to_contain_text("no longer here")
    shown = page.locator(".rows [data-row]").count()
    expect(page.locator(".rows-foot")).to_have_text(re.compile(f"^{shown - 2} question"))
    assert titles(page) == before
    inspect(page, "inbox-meanwhile")
    # A new one that is decided before it was shown is no news.
    latest = server.claim("K-6", "short")
    expect(page.get_by_role("button", name="3 new")).to_be_visible()
    server.api("POST", f"/v1/holds/{latest['id']}/resolve", REFUSE)
    fresh.click()
    expect(row(page, "K-5")).to_be_visible()
    for gone in ("K-2", "K-3", "K-6"):
        expect(row(page, gone)).to_be_hidden()
    assert len(titles(page)) == len(set(titles(page))) == 3


@pytest.mark.covers("WB-9", "WB-7")
def test_without_a_network_nothing_is_sent_and_nothing_is_missed(
    server: WebServer, open_page: Opener
) -> None:
    hold = server.claim("N-1", "patient")
    server.claim("N-2", "short")
    page = open_page(f"/inbox/mine/{hold['id']}?q=N-", expected="ERR_INTERNET_DISCONNECTED")
    live(page)
    sent: list[Request] = []
    expect(row(page, "N-2")).to_be_visible()
    expect(page.get_by_label("Amount")).to_be_visible()
    page.get_by_label("Amount").fill("776.00")
    expect(page.get_by_text("Draft saved")).to_be_visible()
    page.context.set_offline(True)
    expect(page.get_by_text("Offline. Nothing is sent.")).to_be_visible()
    live(page, "Offline")
    page.on("request", lambda each: sent.append(each) if each.method != "GET" else None)
    page.get_by_label("Amount").fill("777.00")
    # It is not in the draft that was saved before.
    expect(page.get_by_text("Draft not saved")).to_be_visible()
    page.get_by_role("combobox", name="Account").select_option("4400")
    for name in ("Refund", "Reject", "Claim"):
        expect(page.get_by_role("button", name=name, exact=True)).to_be_disabled()
    page.locator(".hold-title").focus()
    for key in ("m", "1", "Enter"):
        page.keyboard.press(key)
    inspect(page, "inbox-offline")
    # That the question was opened, before the network went, may be reported late.
    assert [each.url for each in sent if not each.url.endswith(("/presence", "/seen"))] == []
    server.claim("N-3", "short")
    (other,) = server.api("GET", "/v1/holds?q=N-2&view=mine")["items"]
    server.api("POST", f"/v1/holds/{other['id']}/resolve", REFUSE)
    with page.expect_response(lambda each: each.url.endswith("/draft") and each.request.method != "GET"):
        page.context.set_offline(False)
    live(page)
    expect(page.get_by_text("Draft saved")).to_be_visible()
    expect(page.get_by_role("button", name="1 new")).to_be_visible()
    expect(row(page, "N-2")).to_have_class(re.compile("dimmed"))
    found = server.api("GET", f"/v1/holds/{hold['id']}")
    assert (found["status"], found["placed_by"], found["claimed_by"]) == ("pending", None, None)
    draft = server.api("GET", f"/v1/holds/{hold['id']}/draft")
    assert draft["response_data"]["amount"] == "777.00"


@pytest.mark.covers("WB-7", "WB-69", "WEB-PROOF")
def test_a_server_that_is_killed_and_started_again_misses_and_doubles_nothing(
    built: Path, tmp_path: Path, browser: Browser, told: Told
) -> None:
    server = WebServer(tmp_path)
    told.expected.add("ERR_")  # of the server that is gone
    page = browser.new_context().new_page()
    try:
        page.goto(server.sign_in)
        hold, other = server.claim("S-1", "patient"), server.claim("S-2", "short")
        open_hold(page, server, hold)
        live(page)
        page.get_by_label("Amount").fill("555.00")
        expect(page.get_by_text("Draft saved")).to_be_visible()
        os.kill(server.child.pid, signal.SIGKILL)
        expect(page.locator(".live")).to_have_text(re.compile("Reconnecting|Offline"))
        page.get_by_label("Amount").fill("556.00")
        server.start_again()
        server.api("POST", f"/v1/holds/{other['id']}/resolve", REFUSE)
        server.claim("S-3", "short")
        live(page)
        expect(page.get_by_role("button", name="1 new")).to_be_visible()
        expect(row(page, "S-2")).to_have_class(re.compile("dimmed"))
        expect(page.get_by_label("Amount")).to_have_value("556.00")
        page.get_by_role("button", name="1 new").click()
        expect(row(page, "S-3")).to_be_visible()
        assert sorted(titles(page)) == ["Agree to S-3?", "Refund claim S-1 of Nordwerk?"]
        # An answer that was on its way for long does not replace what the page knows since.
        old = server.api("GET", f"/v1/holds/{hold['id']}")
        server.api("POST", f"/v1/holds/{hold['id']}/claim", {})
        expect(page.get_by_role("button", name="Release")).to_be_visible()
        page.route(re.compile(f"/v1/holds/{hold['id']}$"), lambda route: route.fulfill(json=old))
        page.get_by_label("Add a comment").fill("Seen")
        with page.expect_response(re.compile(f"/v1/holds/{hold['id']}$")):
            page.get_by_role("button", name="Comment", exact=True).click()
        expect(page.locator(".comments")).to_contain_text("Seen")
        expect(page.get_by_role("button", name="Release")).to_be_visible()
    finally:
        page.context.close()
        server.stop()


@pytest.mark.covers("WB-6")
def test_without_sockets_events_come_by_a_stream_and_without_streams_by_polls(
    server: WebServer, open_page: Opener
) -> None:
    server.claim("P-1", "short")
    page = open_page("/settings")
    page.goto("about:blank")
    sockets: list[str] = []

    def refuse(socket: WebSocketRoute) -> None:
        sockets.append(socket.url)
        socket.close()

    page.route_web_socket(SOCKET, refuse)
    streams: list[str] = []
    page.on("request", lambda each: streams.append(each.url) if STREAM.search(each.url) else None)
    page.goto(f"{server.address}/inbox/mine?q=flow%3Ashort+P-")
    live(page)
    assert len(sockets) == 2
    assert len(streams) == 1
    server.claim("P-2", "short")
    expect(page.get_by_role("button", name="1 new")).to_be_visible()
    # Neither: the list is read from time to time.
    polled = open_page("/settings", expected="ERR_FAILED")
    polled.goto("about:blank")
    polled.clock.install()
    polled.route_web_socket(SOCKET, lambda socket: socket.close())
    polled.route(STREAM, lambda route: route.abort())
    polled.goto(f"{server.address}/inbox/mine?q=flow%3Ashort+P-")
    expect(row(polled, "P-2")).to_be_visible()
    live(polled, "Reconnecting")
    server.claim("P-3", "short")
    fresh = polled.get_by_role("button", name="1 new")
    while not fresh.is_visible():  # until both have failed there is nothing to wait for
        polled.clock.fast_forward(15_000)
        polled.wait_for_timeout(50)


def is_draft(request: Request) -> bool:
    return request.method == "PUT" and request.url.endswith("/draft")


@pytest.mark.covers("WB-22", "WEB-INBOX")
def test_a_draft_is_saved_a_second_after_the_last_key_and_follows_to_another_device(
    server: WebServer, open_page: Opener
) -> None:
    hold = server.claim("R-1", "patient")
    page = open_page("/settings")
    page.clock.install()
    saved: list[Request] = []
    page.on("request", lambda each: saved.append(each) if is_draft(each) else None)
    open_hold(page, server, hold)
    expect(page.get_by_label("Amount")).to_be_visible()
    page.clock.pause_at(page.evaluate("Date.now()") + 100)
    for key in "99":
        page.get_by_label("Amount").press_sequentially(key)
        page.clock.run_for(700)
    for key in "77":
        page.get_by_label("Amount").press_sequentially(key)
    page.clock.run_for(900)
    assert saved == [], "the last key was less than a second ago"
    page.clock.run_for(200)
    page.clock.resume()
    expect(page.get_by_text("Draft saved")).to_be_visible()
    assert len(saved) == 1
    device = open_page(f"/inbox/mine/{hold['id']}")
    expect(device.get_by_label("Amount")).to_have_value(re.compile("^9977"))
    device.get_by_label("Amount").fill("300.00")
    expect(device.get_by_text("Draft saved")).to_be_visible()
    page.evaluate("window.dispatchEvent(new Event('visibilitychange'))")
    expect(page.get_by_label("Amount")).to_have_value("300.00")


def is_question_who_looks(answer: Response) -> bool:
    return answer.request.method == "GET" and answer.url.endswith("/presence")


@pytest.mark.covers("WB-22", "WEB-INBOX")
def test_a_person_who_is_gone_without_saying_so_is_no_longer_shown(
    server: WebServer, open_page: Opener, browser: Browser
) -> None:
    hold = server.claim("R-2", "patient")
    page = open_page("/settings", expected="ERR_FAILED")
    page.clock.install()
    open_hold(page, server, hold)
    kim = signed_in(browser, server, "kim", "admin")
    theirs = kim.new_page()
    with theirs.expect_response(re.compile("/presence$")):
        open_hold(theirs, server, hold, "all")
    # Asked for every three seconds.
    with page.expect_response(is_question_who_looks):
        page.clock.fast_forward(3_000)
    viewing = page.get_by_text("kim is viewing")
    expect(viewing).to_be_visible()
    page.route(re.compile("/presence$"), lambda route: route.abort())
    kim.close()
    expect(viewing).to_be_visible()
    page.clock.fast_forward(31_000)
    expect(viewing).to_be_hidden()


@pytest.mark.covers("WB-5", "WB-8")
def test_what_comes_into_an_empty_list_is_shown_at_once(open_page: Opener, server: WebServer) -> None:
    """Nothing can move there, and "No question waits for you" beside "1 new" would be wrong."""
    page = open_page("/inbox/all?q=key:first-of-all")
    expect(page.get_by_text("Clear")).to_be_visible()
    run = server.api(
        "POST",
        "/v1/runs",
        {"flow": "claims", "input": {"number": "F-1"}, "instance_key": "first-of-all", "wait": 60},
    )
    assert run["status"] == "pending_input"
    expect(page.get_by_role("list", name="Questions").get_by_role("listitem")).to_have_count(1)
    expect(page.get_by_role("button", name="1 new")).to_have_count(0)


@pytest.mark.covers("WB-1", "WB-20")
def test_a_link_to_a_tab_opens_at_the_tab_and_moving_on_begins_at_the_top(
    open_page: Opener, server: WebServer
) -> None:
    holds = [server.claim(f"T-{each}", "claims") for each in "12"]
    page = open_page(f"/inbox/mine/{holds[0]['id']}?tab=flow", height=500)
    page.reload()  # the page of another test may be shown anew without loading it
    tabs = page.get_by_role("navigation", name="About this question")
    expect(page.get_by_role("region", name="What each decision would do")).to_contain_text("preview")
    expect(tabs).to_be_in_viewport()
    show(page, f"/inbox/mine/{holds[1]['id']}?tab=flow")
    expect(page.locator(".hold-title")).to_contain_text("T-2")
    expect(page.locator(".hold-title")).to_be_in_viewport()
