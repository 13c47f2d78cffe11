"""Every screen and state: screenshots in build/screens, axe, longer texts, right to left, failed answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, Route, expect

from tests.web.conftest import Opener, WebServer, picture, too_wide, violations
from tests.web.screen_flows import NAME

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("web")]

CLIPPED = """() => [...document.querySelectorAll("body *")].filter((each) => {
  const style = getComputedStyle(each);
  const hasText = [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  const cuts = ["hidden", "clip"].includes(style.overflowX) && style.textOverflow !== "ellipsis"
    && style.webkitLineClamp === "none";
  return hasText && cuts && !each.closest(".away, .brand, svg") && style.position !== "absolute"
    && (each.scrollWidth > each.clientWidth + 1);
}).map((each) => each.className + ": " + each.textContent.slice(0, 60)).slice(0, 5)"""


@pytest.fixture(scope="module")
def server(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    found = WebServer(tmp_path_factory.mktemp("screens"), Path(__file__).with_name("screen_flows.py"))
    found.api("PUT", "/v1/directory/people/local", {"name": "Local", "email": "local@example.com"})
    found.api(
        "PUT", "/v1/schedules/nightly", {"flow": "claims", "cron": "0 3 * * *", "zone": "Europe/Berlin"}
    )
    yield found
    found.stop()


@pytest.fixture(scope="module")
def screens(server: WebServer) -> dict[str, str]:
    """The address of each screen, with something to show."""
    hold, other = server.claim("A-1"), server.claim("A-2", "short")
    server.api("POST", f"/v1/holds/{other['id']}/resolve", {"decision": "agree"})
    failed = server.api("POST", "/v1/runs", {"flow": "orders", "input": {}, "wait": 20})["id"]
    server.api("POST", "/v1/runs", {"flow": "stops", "input": {}, "wait": 20})
    strange = quote(NAME, safe="")
    panels = [
        "workers",
        "backlog",
        "schedules",
        "dead",
        "notifications",
        "queues",
        "audit",
        "tokens",
        "members",
    ]
    return {
        "inbox": "/inbox/mine", "inbox-empty": "/inbox/watching", "inbox-no-match": "/inbox/mine?q=nothing-here",  # noqa: E501
        "hold": f"/inbox/all/{hold['id']}", "hold-flow": f"/inbox/all/{hold['id']}?tab=flow",
        "hold-data": f"/inbox/all/{hold['id']}?tab=data", "hold-decided": f"/inbox/all/{other['id']}",
        "hold-missing": "/inbox/all/00000000-0000-4000-8000-000000000000",
        "runs": "/runs", "runs-no-match": "/runs?q=status:cancelled", "run-graph": f"/runs/{failed}",
        "run-timeline": f"/runs/{failed}?tab=timeline", "run-events": f"/runs/{failed}?tab=events",
        "run-state": f"/runs/{failed}?tab=state", "flows": "/flows", "flows-no-match": "/flows?q=nothing",
        "flow-graph": "/flows/orders", "flow-versions": "/flows/orders?tab=versions",
        "flow-runs": "/flows/orders?tab=runs", "flow-failures": "/flows/orders?tab=failures",
        "flow-strange": f"/flows/{strange}", "start": "/flows/claims/start", "settings": "/settings",
        "missing": "/runs/00000000-0000-4000-8000-000000000000",
        **{f"operations-{panel}": f"/operations/{panel}" for panel in panels},
    }  # fmt: skip


def settled(page: Page) -> None:
    """Nothing is loading any more."""
    expect(page.locator("main")).to_be_visible()
    expect(page.locator(".skeleton, .waiting")).to_have_count(0)


@pytest.mark.covers("WB-50-screens", "WB-70-screens", "WEB-PROOF")
def test_every_screen_is_accessible_in_light_in_dark_and_on_a_phone(
    server: WebServer, screens: dict[str, str], open_page: Opener
) -> None:
    page = open_page("/settings", expected="status of 404")
    wrong: dict[str, list[str]] = {}
    for name, path in screens.items():
        page.set_viewport_size({"width": 1280, "height": 800})
        page.emulate_media(color_scheme="light")
        page.goto(server.address + path)
        settled(page)
        picture(page, f"screen-{name}-light")
        found = violations(page) + too_wide(page)
        page.set_viewport_size({"width": 320, "height": 640})
        page.emulate_media(color_scheme="dark")
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        picture(page, f"screen-{name}-dark-phone")
        wrong[name] = found + violations(page) + too_wide(page)
    assert {name: found for name, found in wrong.items() if found} == {}


@pytest.mark.covers("WB-52-layout")
def test_longer_texts_and_right_to_left_clip_nothing(
    server: WebServer, screens: dict[str, str], open_page: Opener
) -> None:
    page = open_page("/settings?locale=pseudo-rtl", width=320, height=640, expected="status of 404")
    wrong: dict[str, list[str]] = {}
    for name, path in screens.items():
        page.goto(f"{server.address}{path}{'&' if '?' in path else '?'}locale=pseudo-rtl")
        settled(page)
        expect(page.locator("html")).to_have_attribute("dir", "rtl")
        expect(page.locator("header.bar")).to_contain_text("~")
        picture(page, f"screen-{name}-pseudo")
        wrong[name] = too_wide(page) + page.evaluate(CLIPPED)
        page.set_viewport_size({"width": 1280, "height": 800})
        wrong[name] += too_wide(page) + page.evaluate(CLIPPED)
        page.set_viewport_size({"width": 320, "height": 640})
    assert {name: found for name, found in wrong.items() if found} == {}


PROBLEM = {
    "type": "about:blank", "title": "Internal", "status": 500, "code": "internal",
    "detail": "The store did not answer.", "hint": "Try again.", "request_id": "req-4711",
}  # fmt: skip


LISTS = {
    "runs": r"/v1/runs\?", "flows": "/v1/flows$", "inbox": r"/v1/holds\?",
    "run-events": "/v1/runs/[^/]+/events", "run-timeline": "/v1/runs/[^/]+/timeline",
    "operations-workers": "/v1/workers", "operations-audit": "/v1/audit",
    "operations-schedules": "/v1/schedules", "operations-dead": "/v1/dead", "operations-tokens": "/v1/tokens",
    "operations-queues": "/v1/queues", "operations-members": "/v1/directory/people",
    "operations-notifications": "/v1/notices",
}  # fmt: skip
PARTS = [
    *LISTS.items(), ("hold", r"/v1/holds/[\w-]+$"), ("hold-flow", "/consequences$"),
    ("hold-decided", "/history$"), ("hold-decided", "/comments$"),
]  # fmt: skip


@pytest.mark.covers("WB-5-states")
def test_lists_and_panels_are_loading_failed_offline_forbidden_and_without_a_match(
    server: WebServer, screens: dict[str, str], open_page: Opener
) -> None:
    page = open_page("/settings", expected="Failed to load resource")
    waiting: list[Route] = []
    refused = PROBLEM | {
        "status": 403,
        "code": "forbidden",
        "detail": "You may not see this.",
        "hint": "Ask.",
    }
    for name, address in PARTS:
        pattern = re.compile(address)
        page.route(pattern, lambda route: waiting.append(route))
        page.goto(server.address + screens[name])
        expect(page.locator(".skeleton").first, name).to_be_visible()
        picture(page, f"loading-{name}")
        assert violations(page) == [], name
        page.unroute(pattern)
        page.route(pattern, lambda route: route.abort())
        page.reload()
        alert = page.get_by_role("main").get_by_role("alert")
        expect(alert.filter(has_text="The server does not answer.").first, name).to_be_visible()
        picture(page, f"offline-{name}")
        page.unroute(pattern)
        page.route(pattern, lambda route: route.fulfill(status=403, json=refused))
        page.reload()
        expect(page.get_by_text("You may not see this.").first, name).to_be_visible()
        page.unroute(pattern)
        page.route(pattern, lambda route: route.fulfill(status=500, json=PROBLEM))
        page.reload()
        failed = alert.filter(has_text="The store did not answer.").first
        expect(failed, name).to_contain_text("req-4711")
        picture(page, f"failed-{name}")
        # The rest is usable, and Retry reads this part again.
        expect(page.get_by_role("navigation", name="Main").get_by_role("link")).to_have_count(4)
        page.unroute(pattern)
        failed.get_by_role("button", name="Retry").click()
        expect(alert.filter(has_text="The store did not answer."), name).to_have_count(0)
    for name in ("inbox-no-match", "runs-no-match", "flows-no-match"):
        page.goto(server.address + screens[name])
        page.get_by_role("button", name="Clear").click()
        expect(page).not_to_have_url(re.compile(r"q="))


@pytest.mark.covers("WB-55-replies", "WB-55")
@pytest.mark.parametrize("reply", ['{"items": [{}]}', "[]", "null", "<html>no</html>"])
def test_an_answer_that_is_not_understood_is_an_error_with_its_request(
    server: WebServer, screens: dict[str, str], open_page: Opener, reply: str
) -> None:
    page = open_page("/settings")
    headers = {"X-Request-Id": "req-0815", "Content-Type": "application/json"}
    for name, address in LISTS.items():
        pattern = re.compile(address)
        page.route(pattern, lambda route: route.fulfill(status=200, headers=headers, body=reply))
        page.goto(server.address + screens[name])
        alert = page.get_by_role("main").get_by_role("alert").filter(has_text="does not understand")
        expect(alert.first, name).to_contain_text("req-0815")
        # One failed part leaves the rest usable.
        expect(alert.first.get_by_role("button", name="Retry"), name).to_be_visible()
        expect(page.get_by_role("navigation", name="Main").get_by_role("link")).to_have_count(4)
        page.unroute(pattern)
    picture(page, "unexpected-reply")


def changed(text: str, changes: dict[str, Any]) -> Any:
    """The JSON with these members replaced, wherever they are."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: changes.get(name, walk(each)) for name, each in value.items()}
        return [walk(each) for each in value] if isinstance(value, list) else value

    return walk(json.loads(text))


@pytest.mark.covers("WB-55-values", "WB-55")
def test_values_of_a_newer_server_are_shown_plainly(
    server: WebServer, screens: dict[str, str], open_page: Opener
) -> None:
    page = open_page("/settings")
    new = {"status": "hibernating", "state": "levitating", "kind": "hologram", "variant": "plasma",
           "effect": "quantum", "type": "run.teleported", "priority": "cosmic"}  # fmt: skip

    def newer(route: Route) -> None:
        answer = route.fetch()
        text = answer.text()
        if "json" not in answer.headers.get("content-type", "") or not text:
            route.fulfill(response=answer)
        else:
            route.fulfill(response=answer, json=changed(text, new))

    page.route(re.compile(r"/v1/(?!session|me/)"), newer)
    for name in ("hold", "runs", "run-graph", "run-timeline", "run-events", "flow-graph"):
        page.goto(server.address + screens[name])
        settled(page)
        expect(page.get_by_text("This part of the page failed.")).to_have_count(0)
        expect(page.get_by_text("does not understand")).to_have_count(0)
        picture(page, f"newer-{name}")
    page.goto(server.address + screens["runs"])
    expect(page.get_by_role("main").get_by_text("hibernating").first).to_be_visible()
    page.goto(server.address + screens["run-events"])
    expect(page.get_by_role("main").get_by_text("teleported").first).to_be_visible()
