"""People at work where something is not as it should be: cuts of the network, a phone, a prefix, a browser
without scripts or with a wrong clock, many tabs."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Error, Page, Request, Route, expect

from tests.web.conftest import PATIENCE, Opener, Told, WebServer, picture, too_wide, violations
from tests.web.mounted import mounted
from tests.web.people import title

pytestmark = pytest.mark.xdist_group("web")
API: Final = re.compile(r"/v1/")
CUTS: Final = ("before", "after", "offline")


def fill(page: Page, amount: str = "900.00") -> None:
    page.get_by_label("Amount").fill(amount)
    page.get_by_role("combobox", name="Account").select_option("4400")


def expect_resumed(server: WebServer, hold: dict[str, Any], amount: str = "900.00") -> None:
    """With this answer, which was given once."""
    # The decision waits for an undo first.
    while server.api("GET", f"/v1/runs/{hold['run']}")["status"] != "completed":
        time.sleep(0.1)
    found = server.api("GET", f"/v1/holds/{hold['id']}")
    assert found["resolution"]["response_data"]["amount"] == amount
    actions = [each["action"] for each in server.api("GET", f"/v1/holds/{hold['id']}/history")["items"]]
    assert actions.count("placed") == 1, actions


# ---------------------------------------------------------------------- cuts of the network


def kind_of(request: Request, hold: dict[str, Any]) -> str:
    """`GET holds/HOLD/history`: the same for every hold."""
    path = request.url.partition("/v1/")[2].partition("?")[0]
    return f"{request.method} {path.replace(hold['id'], 'HOLD')}"


def decide(page: Page, server: WebServer, hold: dict[str, Any]) -> None:
    """As a patient person does: what failed is tried again where the page offers it."""
    page.goto(f"{server.address}/inbox/mine/{hold['id']}")
    refund = page.get_by_role("button", name="Refund", exact=True, disabled=False)
    retry = page.get_by_role("button", name="Retry").first
    while not refund.is_visible():
        back_online(page)
        if retry.is_visible():
            retry.click()
        page.wait_for_timeout(50)
    fill(page)
    while not page.get_by_text(re.compile("Draft (not )?saved")).is_visible():
        back_online(page)
        page.wait_for_timeout(50)
    decided = page.get_by_role("region", name="Decision").or_(page.locator(".toast:not(.away)")).first
    while not decided.is_visible():
        back_online(page)
        if refund.is_visible():
            with suppress(Error):  # it has gone meanwhile
                refund.click(timeout=2_000)
        page.wait_for_timeout(50)


def back_online(page: Page) -> None:
    if page.get_by_text("Offline. Nothing is sent.").is_visible():
        page.context.set_offline(False)


def requests_of_a_decision(page: Page, server: WebServer) -> list[str]:
    """Each kind once, in the order in which a decision without trouble sends them."""
    hold = server.claim("cut-0")
    found: list[str] = []

    def note(request: Request) -> None:
        if API.search(request.url):
            found.append(kind_of(request, hold))

    page.on("request", note)
    decide(page, server, hold)
    page.remove_listener("request", note)
    expect_resumed(server, hold)
    return [each for each in dict.fromkeys(found) if " holds" in each]


def cut(page: Page, hold: dict[str, Any], kind: str, when: str) -> list[str]:
    """This kind of request fails once: before the server has it, after the server has answered, or as the
    first of everything that is sent. What was cut."""
    seen: list[str] = []

    def fail(route: Route) -> None:
        if seen or kind_of(route.request, hold) != kind:
            route.fallback()
            return
        seen.append(route.request.url)
        if when == "after":
            route.fetch()
        if when == "offline":
            page.context.set_offline(True)
        route.abort()

    page.route(API, fail)
    return seen


def decide_through_cuts(server: WebServer, open_page: Opener, cuts: Sequence[tuple[str, str]]) -> None:
    page = open_page("/settings", expected="net::ERR_")
    holds: list[dict[str, Any]] = []
    for number, (kind, when) in enumerate(cuts, 1):
        hold = server.claim(f"cut-{number}")
        seen = cut(page, hold, kind, when)
        decide(page, server, hold)
        assert len(seen) == 1, (kind, when)
        holds.append(hold)
        page.unroute_all(behavior="ignoreErrors")
    for hold in holds:
        expect_resumed(server, hold)


@pytest.mark.covers("WB-69", "WEB-PROOF")
def test_a_decision_is_taken_once_where_the_network_is_cut_at_what_it_sends(
    server: WebServer, open_page: Opener
) -> None:
    decide_through_cuts(
        server,
        open_page,
        [("PUT holds/HOLD/draft", "offline"), *(("POST holds/HOLD/place", each) for each in CUTS)],
    )


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.covers("WB-69")
def test_a_decision_is_taken_once_wherever_the_network_is_cut(server: WebServer, open_page: Opener) -> None:
    sent = requests_of_a_decision(open_page("/settings"), server)
    assert {"GET holds/HOLD", "PUT holds/HOLD/draft", "POST holds/HOLD/place"} <= set(sent)
    decide_through_cuts(server, open_page, [(kind, when) for kind in sent for when in CUTS])


# ---------------------------------------------------------------------- other browsers


@pytest.mark.covers("WB-69", "WEB-PROOF")
def test_a_question_is_decided_on_a_phone(server: WebServer, browser: Browser, session: Any) -> None:
    hold = server.claim("phone-1")
    context = browser.new_context(
        viewport={"width": 390, "height": 780}, is_mobile=True, has_touch=True, device_scale_factor=2
    )
    context.add_cookies(session)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{server.address}/")
    page.get_by_role("button", name=re.compile("phone-1")).tap()
    expect(page.get_by_label("Amount")).to_be_visible()
    expect(page.get_by_role("list", name="Questions")).to_be_hidden()
    # The decisions are in view without scrolling, and large enough for a finger.
    for name in ("Refund", "Reject"):
        place = page.get_by_role("button", name=name, exact=True).bounding_box()
        assert place is not None
        assert place["height"] >= 44
        assert 0 < place["y"] < place["y"] + place["height"] <= 780
    picture(page, "story-phone")
    assert too_wide(page) == []
    assert violations(page) == []
    page.get_by_label("Amount").tap()
    fill(page, "480.00")
    page.get_by_role("button", name="Refund", exact=True).tap()
    expect(page.locator(".toast")).to_contain_text("Refund")
    expect_resumed(server, hold, "480.00")
    page.goto(f"{server.address}/holds/{hold['id']}")
    expect(page.get_by_role("region", name="Decision")).to_contain_text("480.00")
    page.get_by_role("button", name="Back to the list").tap()
    expect(page.get_by_role("list", name="Questions")).to_be_visible()
    context.close()


@pytest.mark.covers("WB-69")
def test_a_question_is_decided_below_a_path_prefix(server: WebServer, open_page: Opener) -> None:
    hold = server.claim("prefix-1")
    page = open_page("/settings")
    with mounted(server, page) as harness:
        page.goto(f"{harness}/holds/{hold['id']}")
        expect(page).to_have_url(f"{harness}/inbox/all/{hold['id']}")
        expect(page.locator(".live")).to_have_text("Live")
        fill(page, "360.00")
        expect(page.get_by_text("Draft saved")).to_be_visible()
        title(page)
        page.keyboard.press("1")
        page.keyboard.press("Enter")
        expect(page.locator(".toast")).to_contain_text("Refund")
        # Its worker is the other server's; the page hears of it.
        page.goto(f"{harness}/runs/{hold['run']}")
        expect(page.get_by_text("Completed", exact=True)).to_be_visible()
    expect_resumed(server, hold, "360.00")


@pytest.mark.covers("WB-69", "WEB-PROOF")
def test_a_question_is_decided_without_scripts(
    server: WebServer, browser: Browser, session: Any, told: Told
) -> None:
    told.expected |= {": csp", "script", "status of 4"}  # not run; and mistakes in the form
    hold = server.claim("plain-1")
    context = browser.new_context(viewport={"width": 1000, "height": 700}, java_script_enabled=False)
    context.add_cookies(session)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    loaded: list[str] = []
    page.on("request", lambda each: loaded.append(each.url) if "/plain/" in page.url else None)
    # The inbox leads to the plain one, and so does the address that mails have.
    page.goto(f"{server.address}/inbox/mine")
    expect(page).to_have_url(f"{server.address}/plain/")
    page.get_by_role("link", name=re.compile("plain-1")).first.click()
    expect(page.get_by_role("heading", name="Refund claim plain-1 of Nordwerk?")).to_be_visible()
    page.goto(f"{server.address}/holds/{hold['id']}")
    expect(page).to_have_url(f"{server.address}/plain/holds/{hold['id']}")
    page.get_by_role("button", name="Refund").click()
    expect(page.get_by_role("alert")).to_contain_text("Account")
    fill(page, "240.00")
    picture(page, "story-no-scripts")
    page.get_by_role("button", name="Refund").click()
    expect(page.get_by_role("status").first).to_contain_text("Refund")
    expect_resumed(server, hold, "240.00")
    page.goto(f"{server.address}/runs/{hold['run']}")
    expect(page.locator("main").get_by_text(re.compile("^completed$", re.IGNORECASE)).first).to_be_visible()
    assert loaded
    assert [each for each in loaded if "/assets/" in each] == []
    context.close()


@pytest.mark.covers("WB-69", "WB-14-clock")
@pytest.mark.parametrize("hours", [-1, 1])
def test_a_browser_whose_clock_is_an_hour_off_shows_and_keeps_the_times_of_the_server(
    server: WebServer, open_page: Opener, hours: int
) -> None:
    hold = server.claim(f"clock{hours}", "patient")
    page = open_page("/settings")
    page.goto("about:blank")
    page.clock.install(time=datetime.now(UTC) + timedelta(hours=hours))
    page.goto(f"{server.address}/inbox/mine/{hold['id']}")
    row = page.get_by_role("button", name=re.compile(rf"clock{hours} "))
    expect(row).to_contain_text(re.compile(r"just now|[1-9] min ago"))
    expect(row).to_contain_text(re.compile(r"due in (2 days|47 h)"))
    fill(page)
    expect(page.get_by_text("Draft saved")).to_be_visible()
    now = datetime.now().astimezone()
    minutes = "|".join(f"{now - timedelta(minutes=past):%H:%M}" for past in range(3))
    expect(page.get_by_text("Draft saved")).to_have_text(re.compile(f"Draft saved ({minutes})"))
    page.get_by_role("button", name="Refund", exact=True).click()
    expect(page.locator(".toast")).to_contain_text(re.compile(r"Refund in \d\d? s"))
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.get_by_label("Amount")).to_have_value("900.00")
    # A snooze of an hour is one of the server's time.
    title(page)
    page.keyboard.press("s")
    snooze = page.get_by_role("form", name="Snooze")
    snooze.get_by_label("For").select_option("1")
    snooze.get_by_role("button", name="Snooze").click()
    expect(snooze).to_be_hidden()
    found = server.api("GET", f"/v1/holds?view=snoozed&run={hold['run']}")["items"]
    assert [each["id"] for each in found] == [hold["id"]]


@pytest.mark.covers("WB-69")
def test_eight_tabs_of_one_browser_are_all_live(server: WebServer, open_page: Opener) -> None:
    hold, other = server.claim("tab-1"), server.claim("tab-2", "short")
    first = open_page(f"/inbox/mine/{hold['id']}")
    paths = (
        "/inbox/mine", f"/inbox/all/{hold['id']}", "/runs", f"/runs/{hold['run']}", "/flows",
        "/operations/workers", "/settings",
    )  # fmt: skip
    tabs = [first]
    for path in paths:
        tab = first.context.new_page()
        tab.set_default_timeout(PATIENCE)
        tab.goto(server.address + path)
        tabs.append(tab)
    for tab in tabs:
        expect(tab.locator(".live")).to_have_text("Live")
    inbox, same, runs, run = tabs[1:5]
    expect(inbox.get_by_role("button", name=re.compile("tab-1"))).to_be_visible()
    fill(first)
    first.get_by_role("button", name="Refund", exact=True).click()
    expect(same.get_by_role("region", name="Decision")).to_contain_text("900.00")
    expect(inbox.get_by_role("button", name=re.compile("tab-1"))).to_have_class(re.compile("dimmed"))
    row = runs.get_by_role("row").filter(has_text=hold["run"][:8])
    expect(row).to_contain_text("Completed")
    expect(run.get_by_text("Completed", exact=True)).to_be_visible()
    # The count in the header of every tab follows.
    count = len(server.api("GET", "/v1/holds?view=mine&limit=100")["items"])
    for tab in tabs:
        expect(tab).to_have_title(re.compile(rf"^\({count}\) .*Holdfast$"))
    server.api("POST", f"/v1/holds/{other['id']}/resolve", {"decision": "agree"})
    for tab in tabs:
        expect(tab).to_have_title(
            re.compile(rf"^\({count - 1}\) .*Holdfast$" if count > 1 else r"^[^(].*Holdfast$")
        )
