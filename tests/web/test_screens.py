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

from tests.web.conftest import Opener, WebServer, clipped, picture, show, too_wide, violations, wrong_in
from tests.web.screen_flows import NAME

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("web")]


@pytest.fixture(scope="module")
def server(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    found = WebServer(
        tmp_path_factory.mktemp("screens"),
        Path(__file__).with_name("screen_flows.py"),
        env={"HOLDFAST_DIRECTORY": "store"},
    )
    found.api("PUT", "/v1/directory/people/local", {"name": "Local", "email": "local@example.com"})
    found.api(
        "PUT", "/v1/schedules/nightly", {"flow": "claims", "cron": "0 3 * * *", "zone": "Europe/Berlin"}
    )
    yield found
    found.stop()


PANELS = (
    "workers",
    "backlog",
    "metrics",
    "schedules",
    "dead",
    "notifications",
    "queues",
    "audit",
    "tokens",
    "members",
)
VIEWS = ("groups", "unassigned", "asked", "watching", "snoozed", "breakpoints", "done")
TRIP = """\
holdfast: "1.0"
name: trip
input: {type: object, properties: {amount: {type: number}}}
nodes:
  - {id: start, type: start}
  - {id: ask, type: hitl_review, config: {queue: trips, prompt: "Pay {{amount}}?", sections: [{type: decision, options: [approve, reject]}]}}
  - {id: done, type: end}
edges:
  - {source: start, target: ask}
  - {source: ask, source_port: approve, target: done}
  - {source: ask, source_port: reject, target: done}
"""  # noqa: E501


@pytest.fixture(scope="module")
def screens(server: WebServer) -> dict[str, str]:
    """The address of each screen, with something to show."""
    hold, other = server.claim("A-1"), server.claim("A-2", "short")
    server.api("POST", f"/v1/holds/{other['id']}/resolve", {"decision": "agree"})
    failed = server.api("POST", "/v1/runs", {"flow": "orders", "input": {}, "wait": 60})["id"]
    server.api("POST", "/v1/runs", {"flow": "stops", "input": {}, "wait": 60})
    agent = server.api("POST", "/v1/runs", {"flow": "support", "input": {"prompt": "Refund"}, "wait": 60})[
        "id"
    ]
    call = server.api("GET", f"/v1/holds?run={agent}")["items"][0]["id"]
    server.api("PUT", "/v1/documents/trip", {"source": TRIP})
    strange = quote(NAME, safe="")
    return {
        "inbox": "/inbox/mine", "inbox-no-match": "/inbox/mine?q=nothing-here",
        **{f"inbox-{view}": f"/inbox/{view}" for view in VIEWS},
        "hold": f"/inbox/all/{hold['id']}", "hold-flow": f"/inbox/all/{hold['id']}?tab=flow",
        "hold-data": f"/inbox/all/{hold['id']}?tab=data", "hold-decided": f"/inbox/all/{other['id']}",
        "hold-call": f"/inbox/all/{call}", "hold-missing": "/inbox/all/00000000-0000-4000-8000-000000000000",
        "runs": "/runs", "runs-no-match": "/runs?q=status:cancelled",
        "run-graph": f"/runs/{failed}?tab=graph",
        "run-timeline": f"/runs/{failed}?tab=timeline", "run-events": f"/runs/{failed}?tab=events",
        "run-state": f"/runs/{failed}?tab=state", "run-compare": f"/runs/{failed}?tab=compare&at=1",
        "run-postmortem": f"/runs/{failed}?tab=postmortem",
        "flows": "/flows", "flows-no-match": "/flows?q=nothing",
        "flow-graph": "/flows/orders", "flow-versions": "/flows/orders?tab=versions",
        "flow-runs": "/flows/orders?tab=runs", "flow-failures": "/flows/orders?tab=failures",
        "flow-no-runs": "/flows/patient?tab=runs", "flow-no-failures": "/flows/patient?tab=failures",
        "flow-strange": f"/flows/{strange}", "start": "/flows/claims/start", "settings": "/settings",
        "editor": "/editor/trip", "editor-text": "/editor/trip?view=text", "editor-code": "/editor/orders",
        "missing": "/runs/00000000-0000-4000-8000-000000000000",
        **{f"operations-{panel}": f"/operations/{panel}" for panel in PANELS},
        "operations-audit-no-match": "/operations/audit?action=nothing.at.all",
        "operations-notifications-sent": "/operations/notifications?state=sent",
    }  # fmt: skip


UNTRANSLATED = """() => {
  const found = [];
  const read = (text, each) => {
    const words = text.trim();
    if (each.closest("[translate=no], code, .code, pre, select")) return;
    if (/^[A-Z][a-z]+( [a-z]+)*[.?]?$/.test(words)) found.push(words);
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) read(walk.currentNode.data, walk.currentNode.parentElement);
  for (const name of ["aria-label", "title", "placeholder", "alt"]) {
    for (const each of document.querySelectorAll(`[${name}]`)) read(each.getAttribute(name), each);
  }
  return [...new Set(found)];
}"""
# What the server said is data: also as the label of a field.
READ = """const text = Response.prototype.text;
window.read = "";
const noted = (found) => { window.read += found; return found; };
Response.prototype.text = function () { return text.call(this).then(noted); };"""
OWN = {"Holdfast", "Ctrl"}


def untranslated(page: Page) -> list[str]:
    """Texts that are no message of the catalogue: in the pseudo-locale each of those is in brackets."""
    data = str(page.evaluate("window.read")).lower().replace("_", " ")
    return [each for each in page.evaluate(UNTRANSLATED) if each not in OWN and each.lower() not in data]


def settled(page: Page) -> None:
    """Nothing is loading any more."""
    expect(page.locator("main")).to_be_visible()
    expect(page.locator(".skeleton, .waiting, .chart:not(:has(canvas))")).to_have_count(0)


LOOKED_AT = {
    *(f"operations-{panel}" for panel in PANELS),
    *(f"run-{part}" for part in ("graph", "timeline", "events", "state", "compare", "postmortem")),
}
"""Elsewhere, with more to show: test_every_panel_is_readable_in_light_in_dark_and_on_a_phone and
test_every_part_of_a_run_is_accessible_and_fits_a_phone."""


@pytest.mark.covers("WB-50-screens", "WB-50", "WB-70-screens", "WB-70", "WEB-CODE", "WEB-PROOF")
def test_every_screen_is_accessible_in_light_in_dark_and_on_a_phone(
    server: WebServer, screens: dict[str, str], open_page: Opener
) -> None:
    page = open_page("/settings", expected="status of 404")
    elsewhere: list[str] = []
    own = (server.address, server.address.replace("http", "ws"))
    page.on("request", lambda sent: None if sent.url.startswith(own) else elsewhere.append(sent.url))
    wrong: list[str] = []
    for name, path in screens.items():
        show(page, path)
        settled(page)
        if name not in LOOKED_AT:
            wrong += wrong_in(page, f"screen-{name}")
    assert wrong == []
    # Nothing is fetched from elsewhere, and no script stands in the page itself.
    assert elsewhere == []
    assert page.evaluate("[...document.scripts].filter((each) => each.textContent.trim()).length") == 0


WHOLE = pytest.param("all", marks=[pytest.mark.soak, pytest.mark.timeout(1200)])
"""Each screen and part. With all tests some of each kind: dozens of pages are a minute of two cores."""
SCREENS = (
    "inbox", "hold", "hold-decided", "runs", "run-graph", "run-timeline", "run-events", "flow-graph", "start",
    "editor", "settings", "operations-audit", "operations-backlog",
)  # fmt: skip


STATES = ".run-table .badge, .status-count .badge, .run-head .badge, .events strong, .lane-state"


@pytest.mark.covers("WB-52-layout", "WB-52")
@pytest.mark.parametrize("which", ["some", WHOLE])
def test_longer_texts_and_right_to_left_clip_nothing(
    server: WebServer, screens: dict[str, str], open_page: Opener, which: str
) -> None:
    page = open_page("/settings?locale=pseudo-rtl", width=320, height=640, expected="status of 404")
    page.add_init_script(READ)
    page.reload()
    wrong: dict[str, list[str]] = {}
    for name in screens if which == "all" else SCREENS:
        path = screens[name]
        show(page, f"{path}{'&' if '?' in path else '?'}locale=pseudo-rtl")
        settled(page)
        expect(page.locator("html")).to_have_attribute("dir", "rtl")
        expect(page.locator("header.bar")).to_contain_text("~")
        picture(page, f"screen-{name}-pseudo")
        wrong[name] = too_wide(page) + clipped(page) + untranslated(page)
        # Also where the server's own name for it would read well.
        wrong[name] += [each for each in page.locator(STATES).all_text_contents() if "~" not in each]
        page.set_viewport_size({"width": 1280, "height": 800})
        wrong[name] += too_wide(page) + clipped(page)
        page.set_viewport_size({"width": 320, "height": 640})
    assert {name: found for name, found in wrong.items() if found} == {}


PROBLEM = {
    "type": "about:blank", "title": "Internal", "status": 500, "code": "internal",
    "detail": "The store did not answer.", "hint": "Try again.", "request_id": "req-4711",
}  # fmt: skip
REFUSED = PROBLEM | {"status": 403, "code": "forbidden", "detail": "You may not see this.", "hint": "Ask."}


LISTS = {
    "runs": r"/v1/runs\?", "flows": "/v1/flows$", "inbox": r"/v1/holds\?",
    "run-events": "/v1/runs/[^/]+/events", "run-timeline": "/v1/runs/[^/]+/timeline",
    "operations-workers": "/v1/workers", "operations-audit": "/v1/audit",
    "operations-schedules": "/v1/schedules", "operations-dead": "/v1/dead", "operations-tokens": "/v1/tokens",
    "operations-queues": "/v1/queues", "operations-members": "/v1/directory/people",
    "operations-notifications": "/v1/notices",
}  # fmt: skip
PARTS = [
    *LISTS.items(), ("inbox", "/v1/views"), ("hold", r"/v1/holds/[\w-]+$"), ("hold-flow", "/consequences$"),
    ("hold-decided", "/history$"), ("hold-decided", "/comments$"), ("hold-call", "/conversation$"),
    ("run-graph", r"/v1/runs/[\w-]+$"), ("run-graph", "/graph"), ("run-state", "/checkpoints/"),
    ("run-timeline", r"/steps/\d+"), ("run-compare", "/diff"), ("run-postmortem", "/postmortem"),
    ("flows", "/v1/documents"), ("flow-graph", "/v1/flows/orders$"),
    ("flow-graph", "/v1/flows/orders/versions/"),
    ("flow-versions", "/orders/check"), ("flow-runs", r"/v1/runs\?"), ("flow-failures", r"/v1/runs\?"),
    ("flow-failures", "/stats"), ("start", "/input-schema"), ("editor", "/v1/documents/trip"),
    ("operations-backlog", "/v1/figures"), ("operations-backlog", "/v1/limits"),
    ("operations-backlog", "/v1/holds/metrics"),
    ("operations-members", "/v1/directory/groups"), ("operations-metrics", "/v1/metrics/runs"),
    ("settings", "/v1/directory/me"),
]  # fmt: skip


class Answers:
    """Answers the first requests to an address as the test says, one state after the other."""

    def __init__(self, page: Page, address: str) -> None:
        self.state = "held"
        self.held: list[Route] = []
        self.asked = 0
        page.route(re.compile(address), self._answer)

    def _answer(self, route: Route) -> None:
        self.asked += 1
        if self.state == "held":
            self.held.append(route)
        elif self.state == "offline":
            route.abort()
        elif self.state == "whole":
            route.continue_()
        else:
            found = REFUSED if self.state == "refused" else PROBLEM
            route.fulfill(status=found["status"], json=found)

    def turn(self, state: str) -> None:
        self.state = state
        held, self.held = self.held, []
        for route in held:
            self._answer(route)


@pytest.mark.covers("WB-5-states", "WB-5")
@pytest.mark.parametrize("which", ["some", WHOLE])
def test_lists_and_panels_are_loading_failed_offline_forbidden_and_without_a_match(
    server: WebServer, screens: dict[str, str], open_page: Opener, which: str
) -> None:
    page = open_page("/settings", expected="Failed to load resource")
    main = page.get_by_role("main")
    # The pauses between attempts are cut short.
    page.add_init_script(
        "const wait = window.setTimeout;"
        "const short = (ms) => (ms > 200 && ms < 9000 ? 20 : ms);"
        "window.setTimeout = (act, ms, ...more) => wait(act, short(ms), ...more)"
    )
    # Shown only if the answer takes longer than 150 ms.
    for place, (name, address) in enumerate(PARTS[:: 1 if which == "all" else 6]):
        page.goto("about:blank")
        answers = Answers(page, address)
        with page.expect_request(re.compile(address)):
            page.goto(server.address + screens[name])
        skeleton = main.locator(".skeleton").first
        expect(skeleton, f"{name} {address}").to_be_visible()
        picture(page, f"loading-{name}-{place}")
        expect(skeleton, f"{name} {address}").to_have_css("animation-delay", "0.15s")
        retry = main.get_by_role("alert").get_by_role("button", name="Retry").first
        for state, text in (
            ("offline", "The server does not answer."),
            ("refused", REFUSED["detail"]),
            ("failed", PROBLEM["detail"]),
        ):
            answers.turn(state)
            if state != "offline":
                retry.click()
            alert = main.get_by_role("alert").filter(has_text=str(text)).first
            expect(alert, f"{name} {address} {state}").to_be_visible()
        expect(alert, f"{name} {address}").to_contain_text("req-4711")
        expect(alert, f"{name} {address}").to_contain_text("Try again.")
        picture(page, f"failed-{name}-{place}")
        assert violations(page) == [], f"{name} {address}"
        # The rest is usable, and Retry reads this part again.
        expect(page.get_by_role("navigation", name="Main").get_by_role("link")).to_have_count(4)
        answers.turn("whole")
        alert.get_by_role("button", name="Retry").click()
        expect(main.get_by_role("alert").filter(has_text=str(PROBLEM["detail"])), name).to_have_count(0)
        page.unroute_all(behavior="ignoreErrors")
    for name in ("inbox-no-match", "runs-no-match", "flows-no-match", "operations-audit-no-match"):
        page.goto(server.address + screens[name])
        page.get_by_role("button", name="Clear filters").click()
        expect(page).not_to_have_url(re.compile(r"(q|action)="))


@pytest.mark.covers("WB-55-replies", "WB-55")
@pytest.mark.parametrize("which", ["some", WHOLE])
@pytest.mark.parametrize("reply", ['{"items": [{}]}', "[]", "null", "<html>no</html>"])
def test_an_answer_that_is_not_understood_is_an_error_with_its_request(
    server: WebServer, screens: dict[str, str], open_page: Opener, reply: str, which: str
) -> None:
    page = open_page("/settings")
    headers = {"X-Request-Id": "req-0815", "Content-Type": "application/json"}
    # An item that lacks everything is where the lists differ.
    whole = which == "all" or reply.startswith("{")
    for name, address in list(LISTS.items())[:: 1 if whole else 6]:
        pattern = re.compile(address)
        page.route(pattern, lambda route: route.fulfill(status=200, headers=headers, body=reply))
        # The page of a run has read its other parts already.
        if name.startswith("run-"):
            page.goto(server.address + screens[name])
        else:
            show(page, screens[name])
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


@pytest.mark.covers("WB-55-values", "WB-55", "WEB-BAD")
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
    # Each where it is read, and not only in data that have it too.
    for name, place, text in (
        ("hold", ".hold-title", ""),
        ("runs", ".run-table .badge", "hibernating"),
        ("run-graph", ".graph-view", ""),
        ("run-events", ".events strong", "Run teleported"),
        ("run-timeline", ".lane-state", "levitating"),
        ("flow-graph", ".nodes li", "quantum"),
        ("inbox", ".rows [data-row]", "cosmic"),
    ):
        show(page, screens[name])
        settled(page)
        expect(page.locator(place).first, name).to_contain_text(text)
        expect(page.get_by_text("This part of the page failed.")).to_have_count(0)
        expect(page.get_by_text("does not understand")).to_have_count(0)
        picture(page, f"newer-{name}")
