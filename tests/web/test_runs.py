"""Runs in the app: the list, a failed run looked at step by step, time travel, fork, breakpoints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, Route, expect

from tests.deadlines import HANG
from tests.web.conftest import Opener, WebServer, inspect, picture

pytestmark = pytest.mark.xdist_group("web-2")
FLOWS = Path(__file__).with_name("run_flows.py")
TABS = ("Graph", "Timeline", "Events", "State", "Compare", "Post-mortem")


@pytest.fixture(scope="module")
def server(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    found = WebServer(tmp_path_factory.mktemp("runs"), FLOWS)
    yield found
    found.stop()


def started(server: WebServer, flow: str, **given: Any) -> str:
    return server.api("POST", "/v1/runs", {"flow": flow, "input": given, "wait": 60})["id"]


def tab(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="Parts of the run").get_by_role("link", name=name).click()


@pytest.mark.covers(
    "WB-31-slider", "WB-33-step", "WB-34-fork", "WB-35", "WB-35-patch", "WB-69", "WEB-TIME", "WEB-RUNS"
)
def test_a_failed_run_is_traced_back_and_forked_with_another_state(
    server: WebServer, open_page: Opener
) -> None:
    run = started(server, "orders", number=7)
    page = open_page(f"/runs/{run}")
    step = page.get_by_role("complementary", name="Step")
    expect(step.get_by_role("heading", name="pay")).to_be_visible()
    expect(step).to_contain_text("no such account")
    expect(step).to_contain_text("find_account")
    slider = page.get_by_role("slider")
    expect(slider).to_be_visible()
    last = int(slider.get_attribute("max") or 0)
    expect(page.locator(".slider")).to_contain_text("At the end")
    for back, place in enumerate(("After pay", "pay: after a sub-step", "After price")):
        page.keyboard.press("[")
        expect(page).to_have_url(re.compile(rf"at={last - 1 - back}\b"))
        expect(page.locator(".slider")).to_contain_text(re.compile(rf"{place}, \d+ \w+ \d\d:\d\d:\d\d"))
    expect(step.get_by_role("heading", name="price")).to_be_visible()
    expect(page.get_by_text(f"as it was at record {last - 3}.")).to_be_visible()
    expect(page.locator(".run-head .run-error")).to_have_count(0)
    tab(page, "State")
    state = page.get_by_role("region", name="State")
    expect(state).to_contain_text("discount")
    expect(state.get_by_text("Changed inside")).to_be_visible()
    page.get_by_label("Search the state").fill("kiel")
    expect(state.get_by_role("listitem")).to_have_count(2)
    page.reload()
    expect(step.get_by_role("heading", name="price")).to_be_visible()
    page.keyboard.press("f")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("This run is not changed.")
    expect(dialog).to_contain_text("Runs again: pay.")
    dialog.get_by_role("button", name="Edit the state").click()
    # What was said is what the run did with the state as it was.
    expect(dialog).not_to_contain_text("what this run did")
    dialog.get_by_label("Account").fill("4300")
    expect(dialog).to_contain_text("The lines above assume the unedited state.")
    way = dialog.get_by_role("region", name="Path of the new run").get_by_role("listitem")
    expect(way).to_have_text(
        ["Runs step 'find_account' of pay (read). The preview ends here: its result is not known."]
    )
    expect(dialog.locator("ins")).to_have_text("4300")
    inspect(page, "run-fork")
    dialog.get_by_role("button", name="Show as JSON").click()
    written = dialog.get_by_role("textbox", name="State at record")
    written.fill(written.input_value().replace('"4300"', '"4400"'))
    expect(dialog.locator("ins")).to_have_text("4400")
    dialog.get_by_role("button", name="Show as fields").click()
    expect(dialog.get_by_label("Account")).to_have_value("4400")
    dialog.get_by_role("button", name="Fork").click()
    expect(page).not_to_have_url(re.compile(run))
    expect(page.get_by_text("Completed", exact=True)).to_be_visible()
    fork = page.url.split("/runs/")[1].partition("?")[0]
    timeline = page.get_by_role("region", name="Timeline")
    source = timeline.get_by_role("link", name="read_order")
    expect(source).to_have_attribute("href", re.compile(rf"/runs/{run}\?.*step=1\b"))
    timeline.get_by_role("link", name="pay").click()
    expect(step.get_by_role("heading", name="pay")).to_be_visible()
    expect(step).to_contain_text("paid")
    expect(step.get_by_role("link", name=re.compile(r"^Record \d+$"))).to_be_visible()
    page.goto(f"{server.address}/runs/{fork}?tab=timeline&at=0")
    expect(
        timeline.locator(".timeline-rows").get_by_role("listitem").filter(has_text="price")
    ).to_contain_text("Done")
    expect(timeline.locator(".timeline-rows").get_by_role("listitem").filter(has_text="pay")).to_contain_text(
        "Running"
    )
    page.goto(f"{server.address}/runs/{fork}")
    page.get_by_role("link", name="Compare", exact=True).click()
    compare = page.get_by_role("region", name="Compare")
    expect(compare.get_by_label("Compare with")).to_have_value(run)
    # What the fork changed, and not the way back.
    expect(compare.locator(".compare-side").first).to_contain_text(re.compile(rf"From\s*{run[:8]} @ "))
    expect(compare.locator(".compare-side").last).to_contain_text(re.compile(rf"To\s*{fork[:8]} @ "))
    page.get_by_role("link", name=re.compile("Forked from run")).click()
    expect(page).to_have_url(re.compile(rf"{run}.*at="))
    expect(page.locator(".fork").get_by_role("link", name=fork[:8])).to_have_attribute(
        "href", re.compile(f"/runs/{fork}")
    )
    assert server.api("GET", f"/v1/runs/{run}")["status"] == "failed"
    # From its page it is started again, with its input.
    page.get_by_role("link", name="Start again").click()
    expect(page).to_have_url(re.compile(rf"/flows/orders/start\?from={run}"))
    given = page.get_by_role("textbox", name=re.compile("^(Number|JSON|Input)"))
    expect(given.first).to_have_value(re.compile(r"\b7\b"))


@pytest.mark.covers("WB-35", "WEB-TIME")
def test_a_state_with_more_than_200_names_is_forked_as_json(server: WebServer, open_page: Opener) -> None:
    names = {f"name_{number}": number for number in range(197)}
    page = open_page("/runs")
    # The flow adds names of its own to the input: five before `price`, and its number.
    for count, is_large in ((0, False), (197, True)):
        given = dict(list(names.items())[:count])
        run = started(server, "orders", number=50 + count, **given)
        page.goto(f"{server.address}/runs/{run}?at=1")
        expect(page.get_by_role("slider")).to_be_visible()
        page.keyboard.press("f")
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name="Edit the state").click()
        expect(dialog.get_by_role("textbox", name="State at record")).to_have_count(int(is_large))
        expect(dialog.get_by_text(re.compile("This state has 20[0-9] names"))).to_have_count(int(is_large))
        expect(dialog.get_by_label("Account", exact=True)).to_have_count(int(not is_large))
    written = dialog.get_by_role("textbox", name="State at record")
    written.fill(written.input_value().replace('"name_7": 7,', '"name_7": 70,'))
    expect(dialog.locator("ins")).to_have_text("70")
    dialog.get_by_role("button", name="Fork").click()
    expect(page).not_to_have_url(re.compile(run))
    fork = page.url.split("/runs/")[1].partition("?")[0]
    result = server.api("GET", f"/v1/runs/{fork}/result?wait=60")
    assert (result["state"]["name_7"], result["state"]["name_8"]) == (70, 8)


@pytest.mark.covers("WB-50-run")
def test_every_part_of_a_run_is_accessible_and_fits_a_phone(server: WebServer, open_page: Opener) -> None:
    run = started(server, "orders", number=8)
    page = open_page(f"/runs/{run}")
    expect(page.get_by_role("complementary", name="Step")).to_contain_text("no such account")
    for name in TABS:
        tab(page, name)
        part = page.get_by_role("list" if name == "Events" else "region", name=name)
        expect(part).to_be_visible()
        if name == "Events":
            page.get_by_role("button", name="Data of event 3:").click()
            expect(part.get_by_text("checkpoint_id", exact=True)).to_be_visible()
        inspect(page, f"run-{name.lower()}")
        if name == "Graph":
            page.set_viewport_size({"width": 320, "height": 640})
            # The buttons of the picture do not cover the choice between picture and list.
            page.get_by_role("button", name="List", exact=True).click(trial=True)
            page.set_viewport_size({"width": 1280, "height": 800})
        if name == "Timeline":
            page.set_viewport_size({"width": 320, "height": 640})
            slider = page.get_by_role("slider").bounding_box()
            assert slider is not None
            assert slider["width"] > 200
            page.set_viewport_size({"width": 1280, "height": 800})


COVERED = """nodes => nodes.filter((node) => {
  const [name, sign] = [".name", ".disc"].map((part) => node.querySelector(part)?.getBoundingClientRect());
  return name && sign && name.right + 6 > sign.left;
}).map((node) => node.textContent)"""


@pytest.mark.covers("WB-29-states")
def test_the_graph_shows_the_states_of_the_record_and_opens_a_step(
    server: WebServer, open_page: Opener
) -> None:
    run = started(server, "orders", number=9)
    page = open_page(f"/runs/{run}?tab=graph")
    graph = page.get_by_role("region", name="Graph")
    expect(graph.get_by_role("button", name="pay: Failed")).to_be_visible()
    graph.get_by_role("button", name="price: Done").click()
    expect(
        page.get_by_role("complementary", name="Step").get_by_role("heading", name="price")
    ).to_be_visible()
    assert graph.locator("g.node").evaluate_all(COVERED) == []
    page.get_by_role("slider").fill("1")
    expect(graph.get_by_role("button", name="pay: Not started")).to_be_visible()
    expect(graph.get_by_role("button", name="read_order: Done")).to_be_visible()
    inspect(page, "run-graph-before")


@pytest.mark.covers("WB-28-live", "WEB-RUNS")
def test_the_list_is_filtered_by_words_in_its_address_and_changes_by_itself(
    server: WebServer, open_page: Opener
) -> None:
    started(server, "orders", number=10)
    page = open_page("/runs?q=flow:orders", expected="422")
    counts = page.get_by_role("list", name="Runs by status")
    failed = counts.get_by_role("link", name=re.compile("Failed"))
    before = int(failed.inner_text().split()[-1])
    started(server, "orders", number=11)
    expect(failed).to_contain_text(str(before + 1))
    failed.click()
    expect(page).to_have_url(re.compile("status:failed|status%3Afailed"))
    expect(page.get_by_role("row")).to_have_count(before + 2)
    page.set_viewport_size({"width": 390, "height": 800})
    row = page.get_by_role("row").nth(1)
    expect(row.get_by_text("Took")).to_have_count(0)  # written beside the value, as its heading
    assert page.locator(".table-scroll").evaluate("each => each.scrollWidth <= each.clientWidth")
    inspect(page, "runs-cards")
    search = page.get_by_role("searchbox")
    search.fill("flow:orders error:account status:completed")
    search.press("Enter")
    expect(page.get_by_text("No run matches.")).to_be_visible()
    search.fill("status:odd")
    search.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("is not known")


def test_a_run_that_waits_for_an_event_says_so_and_offers_no_questions(
    server: WebServer, open_page: Opener
) -> None:
    run = started(server, "paid", order="A17")
    page = open_page("/runs?q=flow:paid")
    expect(page.get_by_role("row").nth(1)).to_contain_text("Waiting for an event (payment.received (A17))")
    page.get_by_role("link", name=run[:8]).click()
    head = page.locator(".run-head")
    expect(head.get_by_text("Waiting for an event: payment.received (A17)")).to_be_visible()
    expect(head.get_by_role("link", name="Open its questions")).to_have_count(0)
    server.api("POST", "/v1/events", {"name": "payment.received", "key": "A17", "data": {"amount": 3}})
    expect(head.get_by_text("Completed", exact=True)).to_be_visible()
    expect(head.get_by_text("Waiting for an event")).to_have_count(0)


@pytest.mark.covers("WB-36", "WB-36-bar", "WEB-BREAK")
def test_paused_runs_are_continued_one_by_one_or_all(server: WebServer, open_page: Opener) -> None:
    # Those that other tests have left.
    for each in server.api("GET", "/v1/runs?status=pending_input")["items"]:
        server.api("POST", f"/v1/runs/{each['id']}/cancel", {"reason": "of another test"})
        server.api("GET", f"/v1/runs/{each['id']}/result?wait=60")
    # On every page, and as soon as it happens.
    page = open_page("/inbox/all")
    bar = page.get_by_role("region", name="Breakpoints")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    expect(bar).to_be_hidden()
    runs = [started(server, "stops") for _ in range(3)]
    expect(bar).to_contain_text("3 paused")
    expect(bar.get_by_role("button", name="Continue all")).to_be_visible()
    inspect(page, "inbox-breakpoints")
    assert page.evaluate("document.documentElement.scrollHeight <= window.innerHeight")
    bar.get_by_role("link", name="3 paused").click()
    expect(page).to_have_url(re.compile("at(:|%3A)breakpoint"))
    page.goto(server.address + "/runs")
    expect(bar).to_contain_text("3 paused")
    counts = page.get_by_role("list", name="Runs by status")
    counts.get_by_role("link", name="Paused at breakpoint 3").click()
    expect(page).to_have_url(re.compile("at(:|%3A)breakpoint"))
    expect(page.get_by_role("row")).to_have_count(4)
    inspect(page, "runs-breakpoints")
    # Three runs at the same node: each has a name of its own.
    for run in runs:
        name = f"stops . first {run[:8]}$"
        expect(bar.get_by_role("link", name=re.compile(f"^{name}"))).to_be_visible()
        expect(bar.get_by_role("button", name=re.compile(f"^Continue {name}"))).to_be_visible()
    bar.get_by_role("link", name=re.compile("stops . first")).first.click()
    graph = page.get_by_role("region", name="Graph")
    node = graph.get_by_role("button", name="first: Paused at breakpoint")
    expect(node).to_be_visible()
    expect(node.locator("text.note")).to_have_text("paused")
    # No inbox has what is not asked of a person.
    expect(page.get_by_role("link", name="Open its questions")).to_have_count(0)
    assert not server.api("GET", f"/v1/runs/{runs[0]}")["asks"]
    page.get_by_role("link", name="Timeline", exact=True).click()
    expect(page.locator(".track-bar.wait")).to_have_attribute("title", re.compile("^Paused at breakpoint"))
    page.go_back()
    page.go_back()
    assert server.api("GET", "/v1/holds/count")["count"] == 0
    bar.get_by_role("button", name=re.compile("^Continue stops")).first.click()
    expect(bar).to_contain_text("2 paused")
    page.goto(server.address + "/flows")
    flow = page.get_by_role("listitem").filter(has=page.get_by_role("link", name="stops", exact=True))
    expect(flow.get_by_role("link", name="Paused at breakpoint 2")).to_be_visible()
    expect(bar).to_contain_text("2 paused")
    expect(flow.get_by_text("Waiting for input")).to_have_count(0)
    page.goto(server.address + "/runs")
    expect(bar).to_contain_text("2 paused")
    left = [run for run in runs if server.api("GET", f"/v1/runs/{run}")["status"] == "pending_input"]

    def cancelled_before(route: Route) -> None:
        server.api("POST", f"/v1/runs/{left[0]}/cancel", {"reason": "not needed"})
        server.api("GET", f"/v1/runs/{left[0]}/result?wait=60")
        route.continue_()

    page.route("**/breakpoints/continue", cancelled_before, times=1)
    bar.get_by_role("button", name="Continue all").click()
    results = bar.get_by_role("list", name="Result of each")
    expect(results.get_by_role("listitem")).to_have_count(2)
    expect(results.get_by_role("listitem").filter(has_text=left[1][:8])).to_contain_text("continued")
    expect(results.get_by_role("listitem").filter(has_text=left[0][:8]).locator(".late")).not_to_be_empty()
    inspect(page, "runs-breakpoints-report")
    expect(bar.get_by_role("button", name="Close")).to_be_focused()
    bar.get_by_role("button", name="Close").click()
    expect(bar).to_be_hidden()
    expect(page.locator("#main")).to_be_focused()
    for run in runs:
        result = server.api("GET", f"/v1/runs/{run}/result?wait=60")
        assert result["status"] == ("cancelled" if run == left[0] else "completed")


@pytest.mark.covers("WB-34-cancel", "WEB-TIME")
def test_a_cancel_says_what_happens_and_says_it_again_if_the_run_has_moved(
    server: WebServer, open_page: Opener
) -> None:
    run = started(server, "halts")
    page = open_page(f"/runs/{run}", expected="412")
    page.get_by_role("button", name="Cancel run").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("listitem").first).to_be_visible()
    inspect(page, "run-cancel")

    def moved_before(route: Route) -> None:
        server.api("POST", "/v1/breakpoints/continue", {"run": run})
        route.continue_()

    page.route("**/cancel", moved_before, times=1)
    dialog.get_by_role("button", name="Cancel run").click()
    expect(dialog).to_contain_text("The run has changed since you opened this.")
    assert server.api("GET", f"/v1/runs/{run}")["status"] != "cancelled"
    page.reload()
    page.get_by_role("button", name="Cancel run").click()
    expect(dialog.get_by_role("listitem").first).to_be_visible()
    dialog.get_by_role("button", name="Cancel run").click()
    expect(dialog).to_be_hidden()
    expect(page.get_by_text("Cancelled", exact=True).first).to_be_visible()


@pytest.mark.covers("WB-32", "WEB-TIME")
def test_two_records_and_two_runs_are_compared_by_path_line_visit_and_cost(
    server: WebServer, open_page: Opener
) -> None:
    run, other = started(server, "orders", number=20), started(server, "orders", number=21)
    page = open_page(f"/runs/{run}?at=1")
    expect(page.get_by_role("slider")).to_be_visible()
    page.keyboard.press("d")
    compare = page.get_by_role("region", name="Compare")
    expect(page).to_have_url(re.compile("tab=compare"))
    state = compare.locator("section", has=page.get_by_role("heading", name=re.compile("^State")))
    expect(state).to_contain_text("customer.discount")
    side = compare.locator(".compare-side").first
    expect(side).to_contain_text(re.compile(r"After read_order, \d+ \w+ \d\d:\d\d:\d\d"))
    assert "1970" not in side.inner_text()
    expect(state.locator("li", has_text="remark").locator("del")).to_have_text("(empty)")
    letter = state.locator("li", has_text="letter")
    expect(letter.locator("del")).to_have_text("-We deliver on Monday.")
    expect(letter.locator("ins")).to_have_text("+We deliver order 20 on Tuesday.")
    expect(letter).not_to_contain_text("Dear Nordwerk")
    visits = compare.locator("section", has=page.get_by_role("heading", name=re.compile("^Visits")))
    expect(visits.locator("li.compared-visit", has_text=re.compile("^price"))).to_contain_text("Only in To")
    expect(compare.get_by_role("row", name=re.compile("^Steps"))).to_contain_text("+")
    inspect(page, "run-compare-records")
    compare.get_by_label("Record", exact=True).fill("1")
    expect(page).to_have_url(re.compile("to=1"))
    expect(compare).to_contain_text("No differences.")
    compare.get_by_label("Compare with").select_option(other)
    compare.get_by_label("From record").fill("")
    expect(compare).to_contain_text("Two runs without a common history.")
    given = compare.locator("section", has=page.get_by_role("heading", name=re.compile("^Input")))
    expect(given.locator("li", has_text="number")).to_contain_text("20 → 21")
    page.reload()
    expect(given.locator("li", has_text="number")).to_contain_text("20 → 21")
    picture(page, "run-compare-runs")


@pytest.mark.covers("WB-28")
def test_runs_of_a_search_are_compared_retried_and_cancelled_with_a_preview(
    server: WebServer, open_page: Opener
) -> None:
    failed = [started(server, "orders", number=30 + place) for place in range(2)]
    waiting = [started(server, "halts") for _ in range(2)]
    page = open_page(f"/runs?q={quote('flow:orders created<1h took<1h by:local error:account')}")
    for run in failed:
        page.get_by_label(f"Select run {run[:8]}").check()
    bulk = page.get_by_role("region", name="Selected runs")
    expect(bulk).to_contain_text("2 runs selected")
    bulk.get_by_role("link", name="Compare").click()
    expect(page.get_by_role("region", name="Compare")).to_contain_text("Two runs without a common history.")
    page.goto(server.address + "/runs")
    for run in (*failed, *waiting):
        page.get_by_label(f"Select run {run[:8]}").check()
    bulk.get_by_role("button", name="Cancel run").click()
    expect(bulk).to_contain_text("2 runs would be cancelled, 2 cannot be.")
    expect(bulk.get_by_role("listitem")).to_have_count(4)
    inspect(page, "runs-bulk")
    page.keyboard.press("Escape")
    bulk.get_by_role("button", name="Retry").click()
    expect(bulk).to_contain_text("2 runs would be retried from the last checkpoint, 2 cannot be.")
    bulk.get_by_role("button", name="Do nothing").click()
    bulk.get_by_role("button", name="Cancel run").click()
    bulk.get_by_role("button", name="Cancel run: 2 runs").click()
    expect(bulk).to_contain_text("2 runs cancelled.")
    for run in waiting:
        assert server.api("GET", f"/v1/runs/{run}/result?wait=60")["status"] == "cancelled"
    for run in failed:
        assert server.api("GET", f"/v1/runs/{run}")["status"] == "failed"


@pytest.mark.covers("WB-29", "WB-33-traceback", "WEB-RUNS")
def test_the_graph_opens_what_is_inside_follows_the_run_and_has_a_list_and_a_canvas(
    server: WebServer, open_page: Opener
) -> None:
    run = started(server, "orders", number=40)
    page = open_page(f"/runs/{run}?tab=graph")
    graph = page.get_by_role("region", name="Graph")
    step = page.get_by_role("complementary", name="Step")
    expect(step).to_contain_text('raise ValueError("no such account")')
    # Lines of a traceback are broken, not cut at the edge of the panel.
    assert step.locator(".traceback pre").evaluate("each => each.scrollWidth <= each.clientWidth")
    expect(graph.get_by_text("done · 2 of 2 done")).to_be_visible()
    expect(graph.locator(".edge.taken")).to_have_count(4)
    graph.get_by_role("button", name="Show the contents of check_lines").click()
    graph.get_by_role("button", name="check_lines/check: Done").click()
    expect(step.get_by_role("heading", name="check_lines[1]/check")).to_be_visible()
    inspect(page, "run-graph-inside")
    follow = graph.get_by_role("button", name="Follow")
    expect(follow).to_have_attribute("aria-pressed", "true")
    for _ in range(4):
        graph.get_by_role("button", name="Zoom out").click()
    expect(follow).to_have_attribute("aria-pressed", "false")
    expect(graph.locator("canvas")).to_have_count(1)
    expect(graph.locator("svg .node")).to_have_count(0)
    picture(page, "run-graph-canvas")
    graph.get_by_role("button", name="List").click()
    nodes = graph.get_by_role("list", name="Nodes")
    expect(nodes.get_by_role("listitem")).to_have_count(5)
    nodes.get_by_role("button", name="pay").click()
    expect(step.get_by_role("heading", name="pay")).to_be_visible()
    step.get_by_text("1 attempt").click()
    expect(step).to_contain_text("first worker of the run")
    inspect(page, "run-graph-list")


@pytest.mark.covers("WB-14", "WB-30", "WB-31", "WEB-RUNS", "WEB-TIME")
def test_the_timeline_folds_maps_names_waits_and_marks_resumes_that_keys_jump_to(
    server: WebServer, open_page: Opener
) -> None:
    halted = started(server, "halts")
    page = open_page(f"/runs/{halted}?tab=timeline")
    timeline = page.get_by_role("region", name="Timeline")
    row = timeline.locator(".timeline-rows").get_by_role("listitem").first
    expect(row.locator(".track-bar.wait")).to_be_attached()
    expect(row.locator(".track-bar.attempt")).to_have_count(0)
    expect(row).to_contain_text("Paused at breakpoint")
    expect(page.locator(".slider")).to_contain_text(re.compile(r"one: asks, \d+ \w+ \d\d:\d\d:\d\d"))
    run = started(server, "orders", number=42)
    server.api("POST", f"/v1/runs/{run}/resume", {})
    server.api("GET", f"/v1/runs/{run}/result?wait=60")
    page.goto(f"{server.address}/runs/{run}?tab=timeline")
    expect(timeline).to_contain_text("1 resume")
    expect(timeline).to_contain_text(re.compile(r"Resumed by worker \S+, \d+ \w+ \d\d:\d\d:\d\d"))
    expect(timeline.locator(".track-resume")).to_have_count(4)
    expect(timeline.locator(".timeline-rows").get_by_role("listitem").last).to_contain_text("2 attempts")
    pay = timeline.locator(".timeline-rows").get_by_role("listitem").last
    expect(pay.locator(".track-bar.attempt")).to_have_count(2)
    page.keyboard.press("{")
    expect(page.locator(".slider")).to_contain_text("Failed here")
    page.keyboard.press("{")
    expect(page).to_have_url(re.compile(r"at=\d+"))
    expect(page.locator(".slider")).to_contain_text("Resumed by worker")
    before = page.url
    page.keyboard.press("{")
    expect(page).not_to_have_url(before)
    # The first failure, before the retry: one attempt, as it was then.
    expect(page.locator(".slider")).to_contain_text("Failed here")
    expect(pay.locator(".track-bar.attempt")).to_have_count(1)
    expect(pay).not_to_contain_text("2 attempts")
    step = page.get_by_role("complementary", name="Step")
    expect(step.get_by_role("heading", name="pay")).to_be_visible()
    expect(step.get_by_text("1 attempt", exact=True)).to_be_visible()
    picture(page, "run-timeline-past")
    page.keyboard.press("l")
    expect(page).not_to_have_url(re.compile("at="))
    inspect(page, "run-timeline-resumes")
    page.set_viewport_size({"width": 390, "height": 844})
    scale = timeline.locator(".scale")
    track, found = timeline.locator(".track").first.bounding_box(), scale.bounding_box()
    assert track
    assert found
    assert (found["x"], found["width"]) == (track["x"], track["width"])
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{server.address}/runs/{started(server, 'orders', number=41)}?tab=timeline")
    expect(timeline.locator(".timeline-rows").get_by_role("listitem")).to_have_count(4)
    timeline.get_by_role("button", name="2 of 2 done").click()
    expect(timeline.locator(".timeline-rows").get_by_role("listitem")).to_have_count(6)
    timeline.get_by_role("link", name="check_lines[0]/check").click()
    expect(page.get_by_role("complementary", name="Step")).to_contain_text("Glass")
    picture(page, "run-timeline-open")


@pytest.mark.covers("WB-34-retry", "WEB-TIME")
def test_a_retry_and_a_rewind_say_what_happens_first(server: WebServer, open_page: Opener) -> None:
    run = started(server, "orders", number=50)
    page = open_page(f"/runs/{run}")
    dialog = page.get_by_role("dialog")
    page.get_by_role("button", name="Rewind").click()
    expect(dialog).to_contain_text("replaces this one")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Rewind")).to_be_focused()
    page.get_by_role("button", name="Retry").click()
    expect(dialog).to_contain_text("What failed runs again, with all its attempts.")
    expect(dialog).to_contain_text("Runs again: pay.")
    dialog.get_by_role("button", name="Retry").click()
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("complementary", name="Step")).to_contain_text("2 attempts")
    page.get_by_role("button", name="Rewind").click()
    expect(dialog).to_contain_text("replaces this one")
    dialog.get_by_role("button", name="Edit the state").click()
    dialog.get_by_label("Account").fill("4400")
    expect(dialog.locator("ins")).to_have_text("4400")
    # A value of another type starts nothing.
    number = dialog.get_by_label("Number")
    number.fill("fifty")
    dialog.get_by_role("button", name="Rewind").click()
    expect(number).to_be_focused()
    expect(number).to_have_attribute("aria-invalid", "true")
    number.fill("50")
    dialog.get_by_role("button", name="Rewind").click()
    expect(page).not_to_have_url(re.compile(run))
    expect(page.get_by_text("Completed", exact=True)).to_be_visible()
    old = server.api("GET", f"/v1/runs/{run}")
    assert old["superseded_by"] in page.url


@pytest.mark.covers("WB-34", "WB-35")
def test_an_edited_state_stays_in_the_dialog_while_the_run_moves_on(
    server: WebServer, open_page: Opener
) -> None:
    run = started(server, "orders", number=51)
    page = open_page(f"/runs/{run}")
    dialog = page.get_by_role("dialog")
    page.get_by_role("button", name="Fork").click()
    dialog.get_by_role("button", name="Edit the state").click()
    dialog.get_by_label("Account").fill("4500")
    before = server.api("GET", f"/v1/runs/{run}")["head"]
    server.api("POST", f"/v1/runs/{run}/resume")
    expect(dialog).to_contain_text("The run has changed since you opened this.")
    expect(dialog.get_by_label("Account")).to_have_value("4500")
    # It has failed again, and the dialog is about that.
    until = monotonic() + HANG
    while (now := server.api("GET", f"/v1/runs/{run}"))["status"] != "failed" or now["head"] == before:
        assert monotonic() < until, now
    expect(page.locator("#record")).to_have_attribute("max", str(now["head"]))
    dialog.get_by_role("button", name="Fork").click()
    expect(page).not_to_have_url(re.compile(run))
    expect(page.get_by_text("Completed", exact=True)).to_be_visible()


@pytest.mark.covers("WB-50", "WB-11")
def test_graph_and_timeline_are_reached_by_a_few_keys_and_arrows_go_through_them(
    server: WebServer, open_page: Opener
) -> None:
    page = open_page(f"/runs/{started(server, 'orders', number=9)}?tab=graph")
    nodes = page.locator(".graph-view [data-stop]")
    expect(nodes.first).to_be_visible()
    assert page.locator(".graph-view [data-stop][tabindex='0']").count() == 1
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".graph-view [data-stop]:focus")).to_have_count(1)
    page.keyboard.press("Home")
    first = page.evaluate("document.activeElement.dataset.stop")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.stop") not in ("", first)
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("step="))
    tab(page, "Timeline")
    expect(page.locator(".timeline-rows [data-stop][tabindex='0']")).to_have_count(1)
    page.keyboard.press("F6")
    expect(page.locator(".timeline-rows [data-stop]").first).to_be_focused()
    page.keyboard.press("End")
    expect(page.locator(".timeline-rows [data-stop]").last).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("Go to the row above or below")


@pytest.mark.covers("WB-28")
def test_the_slash_key_leads_to_the_search_of_runs(open_page: Opener) -> None:
    page = open_page("/runs")
    search = page.get_by_role("searchbox", name="Search")
    expect(search).to_be_visible()
    expect(search).not_to_be_focused()
    page.keyboard.press("/")
    expect(search).to_be_focused()
    expect(search).to_have_value("")
