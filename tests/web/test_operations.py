"""An operator and a person at their settings, in a real browser against a real server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import (
    Opener,
    WebServer,
    inspect,
    picture,
    show,
    sign_in_as,
    too_wide,
    violations,
    wrong_in,
)

pytestmark = pytest.mark.xdist_group("web-2")
PANELS = {
    "workers": "Alive", "backlog": "Runs by lane", "schedules": "nightly", "dead": "There is no dead letter.",
    "metrics": "Open questions by age", "notifications": "No notification has failed.", "queues": "letters",
    "audit": "Verify", "tokens": "service:mail", "members": "Ada",
}  # fmt: skip


@pytest.fixture(scope="module")
def server(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """Its people are those of the store's directory."""
    found = WebServer(tmp_path_factory.mktemp("web-operations"), env={"HOLDFAST_DIRECTORY": "store"})
    yield found
    found.stop()


@pytest.fixture(scope="module")
def busy(server: WebServer) -> WebServer:
    """Something in each panel."""
    server.api(
        "PUT", "/v1/schedules/nightly", {"flow": "claims", "cron": "0 3 * * *", "zone": "Europe/Berlin"}
    )
    server.api("POST", "/v1/queues/post/letters/messages", {"payload": {"to": "Ada"}})
    server.api(
        "POST", "/v1/tokens", {"subject": "service:mail", "roles": ["viewer"], "note": "Reads the inbox"}
    )
    for name in ("ada", "local"):
        server.api(
            "PUT", f"/v1/directory/people/{name}", {"name": name.title(), "email": f"{name}@example.com"}
        )
    server.api("PUT", "/v1/directory/groups/claims", {"name": "Claims", "members": ["ada"]})
    server.claim("O-1")
    return server


def confirm(page: Page, button: str) -> None:
    page.get_by_role("dialog").get_by_role("button", name=button).click()
    expect(page.get_by_role("dialog")).to_be_hidden()


@pytest.mark.covers("WB-9")
def test_without_a_network_the_actions_of_rows_dialogs_and_runs_are_off(
    busy: WebServer, open_page: Opener
) -> None:
    page = open_page("/operations/schedules", expected="ERR_INTERNET_DISCONNECTED")
    run_now = page.get_by_role("button", name="Run now: nightly")
    run_now.click()
    confirm = page.get_by_role("dialog").get_by_role("button", name="Run now")
    expect(confirm).to_be_enabled()
    page.context.set_offline(True)
    expect(page.locator(".live")).to_have_text("Offline")
    expect(confirm).to_be_disabled()
    page.keyboard.press("Escape")
    expect(run_now).to_be_disabled()
    page.context.set_offline(False)
    expect(page.locator(".live")).to_have_text("Live")
    expect(run_now).to_be_enabled()
    run = busy.api("GET", "/v1/runs")["items"][0]["id"]
    show(page, f"/runs/{run}")
    cancel = page.get_by_role("button", name="Cancel run")
    cancel.click()
    confirm = page.get_by_role("dialog").get_by_role("button", name="Cancel run")
    expect(confirm).to_be_enabled()
    page.context.set_offline(True)
    expect(confirm).to_be_disabled()
    page.keyboard.press("Escape")
    for name in ("Cancel run", "Fork", "Rewind"):
        expect(page.get_by_role("button", name=name)).to_be_disabled()
    page.keyboard.press("f")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.context.set_offline(False)
    expect(cancel).to_be_enabled()


@pytest.mark.covers("WB-44-schedules", "WEB-OPS")
def test_an_operator_pauses_runs_and_resumes_a_schedule_and_sees_its_next_times(
    busy: WebServer, open_page: Opener
) -> None:
    page = open_page("/operations/schedules")
    page.get_by_role("button", name="nightly", exact=True).click()
    expect(page).to_have_url(re.compile(r"row=nightly"))
    expect(page.locator("tr.more li")).to_have_count(5)
    page.get_by_role("button", name="Pause: nightly").click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Pause: nightly")).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_label("Reason").fill("The archive is full")
    inspect(page, "operations-confirm")
    confirm(page, "Pause")
    expect(page.get_by_text("nightly is paused.")).to_be_visible()
    assert busy.api("GET", "/v1/schedules/nightly")["reason"] == "The archive is full"
    expect(page.locator("tr.more")).to_contain_text("The archive is full")
    inspect(page, "operations-schedule")
    page.get_by_role("button", name="Resume: nightly").click()
    confirm(page, "Resume")
    page.get_by_role("button", name="Run now: nightly").click()
    sent: list[str] = []
    page.on("request", lambda each: sent.append(each.url) if each.url.endswith("/trigger") else None)
    # A double click starts one run.
    page.get_by_role("dialog").get_by_role("button", name="Run now").dblclick()
    expect(page.get_by_text("nightly starts a run.")).to_be_visible()
    assert len(sent) == 1
    assert busy.api("GET", "/v1/schedules/nightly")["paused"] is False


@pytest.mark.covers("WB-44-tokens", "WEB-OPS")
def test_the_secret_of_a_token_is_shown_once_and_a_revoked_token_is_refused(
    busy: WebServer, open_page: Opener
) -> None:
    page = open_page("/operations/tokens")
    page.get_by_role("button", name="New token").click()
    page.get_by_label("Subject").fill("service:report")
    page.get_by_role("button", name="Create").click()
    secret = page.locator(".secret").inner_text()
    inspect(page, "operations-secret")
    page.get_by_role("button", name="I have saved it").click()
    page.get_by_role("button", name="Revoke: service:report").click()
    assert secret not in page.content()
    confirm(page, "Revoke")
    expect(page.get_by_role("row", name=re.compile("service:report"))).to_contain_text("Revoked")
    found = busy.api("GET", "/v1/tokens")["items"]
    assert [each["status"] for each in found if each["subject"] == "service:report"] == ["revoked"]


@pytest.mark.covers("WB-44-rights")
def test_a_viewer_sees_no_actions_and_is_told_which_right_is_missing(
    busy: WebServer, open_page: Opener
) -> None:
    page = open_page("/settings")
    sign_in_as(page, busy, "vera", roles=["viewer"])
    page.goto(f"{busy.address}/operations/schedules")
    expect(page.get_by_role("button", name="nightly", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Pause: nightly")).to_have_count(0)
    expect(page.get_by_role("link", name="Tokens")).to_have_count(0)
    page.goto(f"{busy.address}/operations/members")
    expect(page.get_by_role("table", name="People")).to_contain_text("Ada")
    expect(page.get_by_role("button", name="Set absence: Ada")).to_have_count(0)
    page.goto(f"{busy.address}/operations/tokens")
    expect(page.get_by_text("You do not have the right admin:manage.")).to_be_visible()
    expect(page.get_by_role("button", name="New token")).to_have_count(0)


@pytest.mark.covers("WB-44-audit", "WEB-OPS")
def test_the_audit_is_filtered_by_the_address_and_verified(busy: WebServer, open_page: Opener) -> None:
    (hold, *_) = busy.api("GET", "/v1/holds")["items"]
    page = open_page("/operations/audit?action=nothing.like.this")
    expect(page.get_by_text("No record matches.")).to_be_visible()
    page.get_by_label("Action").fill("CREAT")
    page.get_by_label("Search", exact=True).fill(hold["id"][:13].upper())
    page.get_by_role("button", name="Filter", exact=True).click()
    rows = page.get_by_role("table", name="Audit").get_by_role("row")
    created = rows.nth(1).get_by_role("rowheader")
    # With the question, and its deadline in the zone of the reader.
    expect(created).to_contain_text(re.compile(r"Asked of .*, due .*\(“Refund claim O-1 of Nordwerk\?”\)"))
    expect(created.locator("time")).to_have_count(1)
    page.get_by_role("button", name="Clear filters").click()
    newest = busy.api("GET", "/v1/audit/head")["seq"]
    expect(rows.nth(1).get_by_role("cell").last).to_have_text(str(newest))
    expect(rows.filter(has_text=re.compile("scaicore|system:"))).to_have_count(0)
    inspect(page, "operations-audit-all")
    page.get_by_role("button", name="Verify").click()
    expect(page.get_by_text(re.compile(r"\d+ records? unchanged"))).to_be_visible()


@pytest.mark.covers("WB-44-panels", "WEB-OPS")
def test_every_panel_is_readable_in_light_in_dark_and_on_a_phone(busy: WebServer, open_page: Opener) -> None:
    page = open_page("/operations")
    wrong: dict[str, list[str]] = {}
    for panel, text in PANELS.items():
        page.get_by_role("navigation", name="Panels").locator(f"a[href$='/{panel}']").click()
        expect(page.get_by_role("main").get_by_text(text).first).to_be_visible()
        expect(page.locator(".skeleton")).to_have_count(0)
        wrong[panel] = wrong_in(page, f"operations-{panel}")
        # What is empty says what would be there, or what to do.
        wrong[panel] += page.locator(".panel > .notice:not(:has(p.muted))").all_text_contents()
    assert {panel: found for panel, found in wrong.items() if found} == {}
    page.goto(f"{busy.address}/operations/workers")
    page.locator(".opener").first.click()
    page.set_viewport_size({"width": 390, "height": 844})
    # A phone shows rows as cards: nothing is beside the screen.
    wide = "all => all.filter(one => one.scrollWidth > one.clientWidth).length"
    assert page.locator(".table-scroll").evaluate_all(wide) == 0
    # One ground behind the whole card: cells stand apart there.
    grounds = "all => all.map(one => getComputedStyle(one).backgroundColor)"
    assert set(page.locator("tr.open > *, tr.more > *").evaluate_all(grounds)) == {"rgba(0, 0, 0, 0)"}
    assert len(set(page.locator("tr.open, tr.more").evaluate_all(grounds))) == 1
    page.set_viewport_size({"width": 1280, "height": 800})
    (worker,) = busy.api("GET", "/v1/workers")["items"]
    expect(page.get_by_role("note")).to_have_count(0)
    run = busy.api("GET", "/v1/runs")["items"][0]["id"]
    blocked = {"entity": "claim-7", "run": run, "flow": "claims", "nodes": "pay", "since": worker["seen_at"]}
    gone = worker | {"name": "gone", "alive": False, "blocked_entities": [blocked | {"entity": "claim-8"}]}
    both = [worker | {"blocked_entities": [blocked], "unstored": {run: "The bucket does not answer."}}, gone]
    page.route("**/v1/workers", lambda route: route.fulfill(json={"items": both, "next": None}))
    notes = page.get_by_role("note")
    expect(notes.nth(1)).to_contain_text("1 run waits for the blob store.")
    expect(notes.nth(1).get_by_role("listitem")).to_have_text(
        f"{run[:8]}, {worker['name']}: The bucket does not answer."
    )
    expect(notes.first).to_contain_text("1 entity is still locked.")
    expect(notes.first.get_by_role("listitem")).to_contain_text(
        f"claim-7: flow claims, node pay, on {worker['name']}"
    )
    expect(page.get_by_role("row", name=re.compile("^gone"))).not_to_contain_text(" of ")
    inspect(page, "operations-entities")
    page.unroute("**/v1/workers")
    (version,) = [each for each, flow in worker["versions"].items() if flow == "claims"]
    expect(page.locator("tr.more li").filter(has_text=version)).to_have_text(f"claims {version}")
    expect(page.locator("tr.more")).not_to_contain_text("-0.0")
    expect(page.locator("tr.more dt", has_text="Leases")).to_be_visible()
    inspect(page, "operations-worker")


@pytest.mark.covers("WB-47-settings")
def test_a_theme_and_an_absence_apply_at_once_and_are_kept_on_the_server(
    busy: WebServer, open_page: Opener
) -> None:
    page = open_page("/settings", width=320)
    page.get_by_role("radio", name="Dark").check()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert busy.api("GET", "/v1/me/preferences")["theme"] == "dark"
    picture(page, "settings-dark")
    assert violations(page) + too_wide(page) == []
    page.get_by_role("radio", name="Light").check()
    page.get_by_label("Substitute").select_option(label="Ada")
    page.get_by_label("Until").fill("2099-01-02T08:00")
    assert violations(page) == []
    page.get_by_role("button", name="Start the absence").click()
    expect(page.get_by_text("Your substitute is ada")).to_be_visible()
    assert busy.api("GET", "/v1/directory/me")["away"]["until"].startswith("2099-01-0")
    page.get_by_role("radio", name="Same as system").check()
    page.get_by_role("button", name="End the absence").click()
    expect(page.get_by_role("button", name="Start the absence")).to_be_visible()
    assert busy.api("GET", "/v1/directory/me")["away"] is None


@pytest.mark.covers("WB-44", "WB-44-members", "WEB-OPS")
def test_an_administrator_sets_and_ends_the_absence_of_a_person(busy: WebServer, open_page: Opener) -> None:
    page = open_page("/operations/members")
    page.get_by_role("button", name="Set absence: Ada").click()
    dialog = page.get_by_role("dialog", name="Absence of Ada")
    dialog.get_by_label("Substitute").select_option(label="Local")
    dialog.get_by_label("Until").fill("2099-01-02T08:00")
    inspect(page, "operations-absence")
    dialog.get_by_role("button", name="Start the absence").click()
    expect(page.get_by_text("Ada is away.")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("Ada"))).to_contain_text("Away, substitute local")
    assert busy.api("GET", "/v1/directory/people/ada")["away"]["until"].startswith("2099-01-0")
    page.get_by_role("button", name="End absence: Ada").click()
    confirm(page, "End absence")
    expect(page.get_by_role("button", name="Set absence: Ada")).to_be_visible()
    assert busy.api("GET", "/v1/directory/people/ada")["away"] is None
