"""Runs in the app: the list, a failed run looked at step by step, time travel, fork, breakpoints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.web.conftest import Opener, WebServer, picture, too_wide, violations

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("web")]
FLOWS = Path(__file__).with_name("run_flows.py")
TABS = ("Graph", "Timeline", "Events", "State")


@pytest.fixture(scope="module")
def server(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    found = WebServer(tmp_path_factory.mktemp("runs"), FLOWS)
    yield found
    found.stop()


def started(server: WebServer, flow: str, **given: Any) -> str:
    return server.api("POST", "/v1/runs", {"flow": flow, "input": given, "wait": 20})["id"]


def tab(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="Parts of the run").get_by_role("link", name=name).click()


@pytest.mark.covers("WB-31-slider", "WB-33-step", "WB-34-fork", "WB-35-patch")
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
    page.keyboard.press("[")
    page.keyboard.press("[")
    expect(page).to_have_url(re.compile(r"at=\d+"))
    expect(step.get_by_role("heading", name="price")).to_be_visible()
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
    written = dialog.get_by_label("State at record")
    written.fill(written.input_value().replace('"none"', '"4400"'))
    expect(dialog.locator("ins")).to_have_text("4400")
    picture(page, "run-fork")
    assert violations(page) == []
    dialog.get_by_role("button", name="Fork").click()
    expect(page).not_to_have_url(re.compile(run))
    expect(page.get_by_text("Completed", exact=True)).to_be_visible()
    page.get_by_role("link", name=re.compile("Forked from run")).click()
    expect(page).to_have_url(re.compile(rf"{run}.*at="))
    assert server.api("GET", f"/v1/runs/{run}")["status"] == "failed"


@pytest.mark.covers("WB-50-run")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_part_of_a_run_is_accessible_and_fits_a_phone(
    server: WebServer, open_page: Opener, scheme: Any
) -> None:
    run = started(server, "orders", number=8)
    page = open_page(f"/runs/{run}", scheme=scheme, width=1280)
    expect(page.get_by_role("complementary", name="Step")).to_contain_text("no such account")
    for name in TABS:
        tab(page, name)
        part = page.get_by_role("list" if name == "Events" else "region", name=name)
        expect(part).to_be_visible()
        page.set_viewport_size({"width": 1280, "height": 800})
        picture(page, f"run-{name.lower()}-{scheme}")
        assert violations(page) == []
        page.set_viewport_size({"width": 320, "height": 640})
        assert too_wide(page) == []
        picture(page, f"run-{name.lower()}-{scheme}-phone")


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
    page.get_by_role("slider").fill("1")
    expect(graph.get_by_role("button", name="pay: Not started")).to_be_visible()
    expect(graph.get_by_role("button", name="read_order: Done")).to_be_visible()
    picture(page, "run-graph-before")
    assert violations(page) == []


@pytest.mark.covers("WB-28-live")
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
    search = page.get_by_role("searchbox")
    search.fill("flow:orders error:account status:completed")
    search.press("Enter")
    expect(page.get_by_text("No run matches.")).to_be_visible()
    search.fill("status:odd")
    search.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("unknown status")


@pytest.mark.covers("WB-36-bar")
def test_paused_runs_are_continued_one_by_one_or_all(server: WebServer, open_page: Opener) -> None:
    runs = [started(server, "stops") for _ in range(3)]
    page = open_page("/runs")
    bar = page.get_by_role("region", name="Breakpoints")
    expect(bar).to_contain_text("3 paused")
    picture(page, "runs-breakpoints")
    assert violations(page) == []
    bar.get_by_role("button", name=re.compile("^Continue stops")).first.click()
    expect(bar).to_contain_text("2 paused")
    bar.get_by_role("button", name="Continue all").click()
    expect(bar).to_be_hidden()
    for run in runs:
        result = server.api("GET", f"/v1/runs/{run}/result?wait=20")
        assert result["status"] == "completed"


@pytest.mark.covers("WB-34-cancel")
def test_a_cancel_says_what_happens_and_says_it_again_if_the_run_has_moved(
    server: WebServer, open_page: Opener
) -> None:
    run = started(server, "halts")
    page = open_page(f"/runs/{run}", expected="412")
    page.get_by_role("button", name="Cancel run").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("listitem").first).to_be_visible()
    picture(page, "run-cancel")

    def moved_before(route: Route) -> None:
        server.api("POST", "/v1/breakpoints/continue", {"run": run})
        route.continue_()

    page.route("**/cancel", moved_before, times=1)
    dialog.get_by_role("button", name="Cancel run").click()
    expect(dialog).to_contain_text("The run has moved.")
    assert server.api("GET", f"/v1/runs/{run}")["status"] != "cancelled"
    page.reload()
    page.get_by_role("button", name="Cancel run").click()
    expect(dialog.get_by_role("listitem").first).to_be_visible()
    dialog.get_by_role("button", name="Cancel run").click()
    expect(dialog).to_be_hidden()
    expect(page.get_by_text("Cancelled", exact=True).first).to_be_visible()
