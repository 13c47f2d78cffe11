"""What holds for every page of the app: finding, keys, rights, states, times, languages."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from holdfast import Holdfast
from holdfast.api.auth.grants import CredentialGrant
from holdfast.api.auth.sessions import Sessions
from tests.web.conftest import Opener, Told, WebServer, inspect, picture, show, sign_in_as, violations
from tests.web.people import signed_in as browser_of

pytestmark = pytest.mark.xdist_group("web-2")


@pytest.fixture(scope="module")
def server(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    found = WebServer(tmp_path_factory.mktemp("web-shell"), env={"HOLDFAST_DIRECTORY": "store"})
    found.api("PUT", "/v1/directory/people/local", {"name": "Local", "email": "local@example.com"})
    yield found
    found.stop()


@pytest.mark.covers("WB-11")
def test_the_palette_finds_pages_flows_ids_and_actions(server: WebServer, open_page: Opener) -> None:
    hold = server.claim("K-1")
    page = open_page(f"/inbox/mine/{hold['id']}")
    expect(page.get_by_role("combobox", name="Account")).to_be_visible()
    # Also while typing.
    page.get_by_label("Amount").focus()
    page.keyboard.press("Control+k")
    find = page.get_by_role("combobox", name="Find")
    expect(find).to_be_focused()
    options = page.get_by_role("dialog", name="Find").get_by_role("option")
    expect(options.filter(has_text="Inbox").first).to_contain_text("gi")
    inspect(page, "palette")
    page.keyboard.press("Escape")
    expect(page.get_by_label("Amount")).to_be_focused()
    for start, address in ((hold["run"][:9], f"/runs/{hold['run']}"), (hold["id"][:9], hold["id"])):
        page.keyboard.press("Control+k")
        find.fill(start)
        expect(options.first).to_contain_text("claims" if start == hold["run"][:9] else "Refund claim K-1")
        find.press("Enter")
        expect(page).to_have_url(re.compile(address))
    # Enter before the answer opens what is found when it comes.
    page.keyboard.press("Control+k")
    waiting: list[Route] = []
    searched = re.compile(rf"/v1/runs\?.*q={hold['run'][:10]}")
    # Only the search: the page asks for other runs too.
    page.route(searched, lambda route: waiting.append(route))
    find.fill(hold["run"][:10])
    expect(page.get_by_role("dialog", name="Find").get_by_text("Loading").first).to_be_attached()
    while not waiting:
        page.wait_for_timeout(20)
    find.press("Enter")
    for route in waiting:
        route.continue_()
    expect(page).to_have_url(re.compile(f"/runs/{hold['run']}"))
    page.unroute(searched)
    page.get_by_role("button", name="Find").click()
    find.fill("claims")
    expect(page.get_by_role("group", name="Flows").get_by_role("option")).to_have_text(["claims"])
    find.fill("start run: claims")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/flows/claims/start$"))
    page.keyboard.press("Control+k")
    find.fill("no such thing")
    expect(page.get_by_text("Nothing is named “no such thing”")).to_be_visible()
    # An action of the page below, by its name and key.
    page.keyboard.press("Escape")
    page.goto(f"{server.address}/inbox/mine/{hold['id']}")
    expect(page.get_by_role("combobox", name="Account")).to_be_visible()
    page.keyboard.press("Control+k")
    find.fill("claim")
    claim = page.get_by_role("group", name="Actions").get_by_role("option").filter(has_text="Claim").first
    expect(claim).to_contain_text("m")
    claim.click()
    expect(page.get_by_text("local claimed it").first).to_be_visible()


@pytest.mark.covers("WB-11", "WB-11-keys")
def test_g_and_a_letter_opens_each_area_and_the_list_has_what_is_bound(open_page: Opener) -> None:
    page = open_page("/settings")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    for letter, area in (("r", "runs"), ("f", "flows"), ("o", "operations"), ("i", "inbox")):
        for _ in range(5):  # a busy machine may take longer than the second between the two keys
            page.keyboard.press("g")
            page.keyboard.press(letter)
            if f"/{area}" in page.url:
                break
        expect(page).to_have_url(re.compile(f"/{area}"))
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog.locator("dt")).to_contain_text(["Inbox", "Runs", "Flows", "Operations", "Find", "Keys"])
    expect(dialog).to_contain_text("Next question")
    page.keyboard.press("Escape")
    page.goto(page.url.replace("/inbox/mine", "/settings"))
    expect(page.get_by_role("heading", name="Settings")).to_be_visible()
    page.keyboard.press("?")
    expect(dialog).to_be_visible()
    expect(dialog).not_to_contain_text("Next question")


@pytest.mark.covers("WB-4")
def test_links_are_shown_by_right_and_an_address_names_the_missing_one(
    server: WebServer, open_page: Opener
) -> None:
    page = open_page("/settings")
    sign_in_as(page, server, "rita", rights=["runs:read"])
    page.goto(f"{server.address}/")
    # Without the right to holds the first page is that of the runs.
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    main = page.get_by_role("navigation", name="Main")
    expect(main.get_by_role("link")).to_have_text(["Runs"])
    expect(page.locator("header .live")).to_have_text("Live")
    page.goto(f"{server.address}/settings")
    expect(page.locator("header .live")).to_have_text("Live")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("option")).to_contain_text(["Runs", "Dead letters", "Settings"])
    expect(page.get_by_role("option", name="Inbox")).to_have_count(0)
    page.keyboard.press("Escape")
    hold, flow = server.claim("R-1")["id"], "claims"
    missing = {
        "/inbox": "holds:read", f"/inbox/all/{hold}": "holds:read", "/flows": "flows:read",
        f"/flows/{flow}": "flows:read", f"/flows/{flow}/start": "flows:read",
        "/operations/audit": "audit:read", "/operations/tokens": "admin:manage",
    }  # fmt: skip
    for path, right in missing.items():
        show(page, path)
        expect(page.get_by_text(f"You do not have the right {right}.")).to_be_visible()
    # Of a person who may see nothing, too.
    sign_in_as(page, server, "nina", rights=["audit:read"])
    page.goto(f"{server.address}/runs")
    expect(page.get_by_text("You do not have the right runs:read.")).to_be_visible()
    expect(main.get_by_role("link")).to_have_text(["Operations"])
    expect(page.locator("header .live")).to_have_count(0)
    inspect(page, "forbidden")


def signed_in(page: Page, server: WebServer, grant: CredentialGrant) -> None:
    """With a code, as `holdfast sign-in` makes it."""

    async def made() -> str:
        async with Holdfast(server.store) as hf:
            return await Sessions(await hf.open()).new_code(grant)

    # The browser's own loop runs in this thread.
    with ThreadPoolExecutor(1) as other:
        code = other.submit(asyncio.run, made()).result()
    page.goto("about:blank")
    page.context.clear_cookies()
    page.goto(f"{server.address}/sign-in?code={code}")


@pytest.mark.covers("WB-47", "WB-47-tenant")
def test_a_tenant_switch_empties_what_was_read(server: WebServer, open_page: Opener) -> None:
    hold = server.claim("T-1")
    page = open_page("/settings", expected="status of 404")
    grant = CredentialGrant(subject="user:local", tenants=("default", "acme"), roles=("admin",))
    signed_in(page, server, grant)
    page.goto(f"{server.address}/inbox/mine/{hold['id']}")
    expect(page.get_by_role("button", name=re.compile("T-1"))).to_be_visible()
    page.evaluate("sessionStorage.setItem('holdfast.draft.x', '{}')")
    page.get_by_role("button", name="Tenant default").click()
    inspect(page, "tenant-menu")
    page.get_by_role("menuitem", name="acme").click()
    expect(page.get_by_role("button", name="Tenant acme")).to_be_visible()
    expect(page).to_have_url(re.compile("/inbox/mine$"))
    expect(page.get_by_role("main").get_by_text("No question waits for you.")).to_be_visible()
    expect(page.get_by_text("T-1")).to_have_count(0)
    assert page.evaluate("sessionStorage.length") == 0
    # Back does not show what the other tenant has.
    page.goto(f"{server.address}/inbox/all/{hold['id']}")
    expect(page.get_by_text("There is nothing at this address.")).to_be_visible()
    # With one tenant there is nothing to switch.
    page.goto("about:blank")
    sign_in_as(page, server, "solo", roles=["member"])
    page.goto(f"{server.address}/settings")
    expect(page.get_by_role("button", name="Account of solo")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Tenant"))).to_have_count(0)


@pytest.mark.covers("WB-47", "WEB-PERSON", "WB-14-exact", "WB-52")
def test_settings_are_kept_on_the_server_and_hold_in_another_browser(
    server: WebServer, open_page: Opener
) -> None:
    server.api("PUT", "/v1/directory/people/sofia", {"name": "Sofia", "email": "sofia@example.com"})
    server.api("PUT", "/v1/directory/people/ada", {"name": "Ada", "email": "ada@example.com"})
    page = open_page("/settings")
    sign_in_as(page, server, "sofia", roles=["operator"])
    page.goto(f"{server.address}/settings")
    page.get_by_role("radio", name="Dark").check()
    page.get_by_label("Time zone").select_option("Pacific/Kiritimati")
    page.get_by_label("Language and date format").select_option("en-US")
    page.get_by_label("Single-letter shortcuts").uncheck()
    page.get_by_label("Reminders").uncheck()
    expect(page.get_by_text("Saved.")).to_have_count(3)
    page.get_by_label("Substitute").select_option(label="Ada")
    page.get_by_label("Until").fill("2099-01-02T08:00")
    page.get_by_role("button", name="Start the absence").click()
    expect(page.get_by_text("Your substitute is ada")).to_be_visible()
    # 14 hours ahead of UTC, as chosen.
    expect(page.get_by_text("Jan 2, 2099").first).to_be_visible()
    picture(page, "settings-changed")
    assert violations(page) == []
    kept = page.evaluate("fetch('/v1/me/preferences').then((answer) => answer.json())")
    assert kept == {
        "language": "en-US", "time_zone": "Pacific/Kiritimati", "theme": "dark", "shortcuts": False,
        "notifications": {"reminders": False, "outcomes": True},
    }  # fmt: skip
    away = page.evaluate("fetch('/v1/directory/me').then((answer) => answer.json())")["away"]
    assert away["until"].startswith("2099-01-01T18:00")
    # Another browser of the same person.
    other = open_page("/settings", expected="status of 401")
    sign_in_as(other, server, "sofia", roles=["operator"])
    other.goto(f"{server.address}/runs")
    expect(other.locator("html")).to_have_attribute("data-theme", "dark")
    other.keyboard.press("g")
    other.keyboard.press("f")
    other.keyboard.press("Control+k")
    expect(other.get_by_role("dialog", name="Find")).to_be_visible()
    expect(other).to_have_url(re.compile("/runs$"))
    other.keyboard.press("Escape")
    other.goto(f"{server.address}/runs/{server.claim('Z-1')['run']}?tab=events")
    moment = other.locator("main time").first
    expect(moment).to_have_attribute("title", re.compile(r"GMT\+14.*\(\d{4}-\d\d-\d\dT[\d:]+Z\)"))
    # For screen readers too.
    expect(moment.locator(".away")).to_contain_text("Z)")
    # A wrong token says what it may be, and what to do.
    other.goto("about:blank")
    other.context.clear_cookies()
    other.goto(f"{server.address}/sign-in")
    other.get_by_label("Token").fill("hf_wrong")
    other.get_by_role("button", name="Sign in").click()
    expect(other.get_by_text("not valid (unknown, expired or revoked)")).to_be_visible()


@pytest.mark.covers("WB-10")
def test_another_release_of_the_server_offers_a_reload_that_keeps_the_draft(
    server: WebServer, open_page: Opener
) -> None:
    hold = server.claim("V-1")
    page = open_page(f"/inbox/mine/{hold['id']}", expected="ERR_INTERNET_DISCONNECTED")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    expect(page.get_by_role("combobox", name="Account")).to_be_visible()
    expect(page.get_by_text("A new version is available.")).to_have_count(0)

    def newer(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json=answer.json() | {"web_release": "another"})

    page.route(re.compile("/v1/session$"), newer)
    page.get_by_label("Amount").fill("612.00")
    # The connection is lost, as it is when a server is replaced.
    page.context.set_offline(True)
    expect(page.get_by_text("Offline", exact=True)).to_be_visible()
    page.context.set_offline(False)
    expect(page.get_by_text("A new version is available.")).to_be_visible()
    inspect(page, "new-release")
    page.unroute(re.compile("/v1/session$"))
    page.get_by_role("button", name="Reload").click()
    expect(page.get_by_label("Amount")).to_have_value("612.00")
    expect(page.get_by_text("A new version is available.")).to_have_count(0)


def test_a_token_that_starts_no_session_is_refused_with_the_command_that_does(
    server: WebServer, open_page: Opener
) -> None:
    """The token that a server prints for programs; people paste it."""
    page = open_page("/settings")
    page.goto("about:blank")
    page.context.clear_cookies()
    refused = page.request.post(f"{server.address}/sign-in", form={"token": server.token})
    assert refused.status == 401
    assert "holdfast sign-in prints an address that signs a browser in." in refused.text()


@pytest.mark.covers("WB-46")
def test_other_tabs_go_to_the_sign_in_page_with_the_one_that_signs_out(
    browser: Browser, server: WebServer, told: Told
) -> None:
    """At once: they would show what the person may not leave behind until they ask the server again."""
    told.expected.add("ERR_FAILED")
    context = browser_of(browser, server, "leaver", "admin")
    one, other = context.new_page(), context.new_page()
    for page in (one, other):
        page.goto(f"{server.address}/runs")
        expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    other.route("**/v1/**", lambda route: route.abort())  # it learns nothing from the server
    one.get_by_role("button", name="Account of leaver").click()
    one.get_by_role("menuitem", name="Sign out").click()
    for page in (one, other):
        expect(page).to_have_url(re.compile("/sign-in"))
        expect(page.get_by_role("heading", name="Runs")).to_have_count(0)
    context.close()
