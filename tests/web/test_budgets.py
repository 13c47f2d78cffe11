"""Sizes of the app's parts, and lists that stay small on the page however long they are. `make bench` has the
times (row U)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from bench.web_server import AppServer, add_holds, app_server
from bench.web_sizes import EDITOR, ROUTES, STYLES, closure, manifest_of, most, route_sizes
from tests.web.conftest import PATIENCE

pytestmark = pytest.mark.xdist_group("web")
TEXT = "src/screens/editor/TextView.tsx"
HOLDS = 1_000


@pytest.mark.covers("WB-56")
@pytest.mark.parametrize("route", ROUTES)
def test_a_route_has_no_more_script_and_style_than_its_budget(built: Path, route: str) -> None:
    scripts, styles = route_sizes(built, route)
    assert scripts <= most(ROUTES[route])
    assert styles <= most(STYLES)


@pytest.mark.covers("WB-56-editor")
def test_only_the_editor_loads_the_editor_and_its_text_view_is_loaded_apart(built: Path) -> None:
    manifest = manifest_of(built)
    routes = [name for name in manifest if name.startswith("src/screens/") and "/editor/" not in name]
    assert len(routes) > 5
    for name in ["index.html", *routes]:
        assert not {EDITOR, TEXT} & closure(manifest, name, set()), name
    assert TEXT not in closure(manifest, EDITOR, set())


@pytest.fixture(scope="module")
def crowded(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    folder = tmp_path_factory.mktemp("budgets")
    with app_server(folder) as server:
        server.api("POST", "/v1/runs", {"flow": "ask", "input": {"number": 0}, "wait": 60})
        add_holds(folder, HOLDS)
        yield server


@pytest.fixture
def page(browser: Browser, crowded: AppServer) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    found = context.new_page()
    found.set_default_timeout(PATIENCE)
    token = crowded.api("POST", "/v1/tokens", {"subject": "user:local", "roles": ["admin"]})["token"]
    found.request.post(f"{crowded.address}/sign-in", form={"token": token})
    yield found
    context.close()


@pytest.mark.covers("WB-58-small")
def test_a_long_list_has_only_the_rows_in_view_on_the_page(crowded: AppServer, page: Page) -> None:
    page.goto(f"{crowded.address}/inbox/mine")
    rows = page.locator(".rows [data-row]")
    expect(rows.first).to_be_visible()
    expect(page.locator(".rows-foot")).to_contain_text("1,001")
    assert rows.count() < 60
    for _ in range(5):
        page.locator(".rows").evaluate("each => { each.scrollTop = each.scrollHeight; }")
        expect(rows.first).to_be_visible()
    assert rows.count() < 60


@pytest.mark.covers("WB-59-small")
def test_events_of_a_busy_run_are_read_once_and_only_those_in_view_are_on_the_page(
    crowded: AppServer, page: Page
) -> None:
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))
    run = crowded.api("POST", "/v1/runs", {"flow": "storm", "input": {"n": 0, "limit": 1_000}})["id"]
    page.goto(f"{crowded.address}/runs/{run}?tab=events")
    expect(page.get_by_role("main").get_by_text("Completed", exact=True).first).to_be_visible()
    last = crowded.api("GET", f"/v1/runs/{run}")["event_seq"]
    assert last > 2_000
    rows, end = page.locator(".events li"), page.locator(".events li").last
    expect(end).to_be_visible()
    while f"{last}" not in (end.locator(".number").text_content() or ""):
        page.locator(".events").evaluate("each => { each.scrollTop = each.scrollHeight; }")
        expect(end).to_be_visible()
    assert rows.count() < 80
    pages = [each for each in sent if "/events?" in each]
    assert len(pages) == len(set(pages)) > 4
    # One reading of the run is one of its timeline; what it has made and its forks are read seldom.
    reads = sum(each.endswith(run) for each in sent)
    assert sum("/timeline?" in each for each in sent) <= reads + 1
    for seldom in ("/artifacts", "forked_from="):
        assert sum(seldom in each for each in sent) <= reads / 2 + 3
