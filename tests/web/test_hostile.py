"""Hostile values in every text: nothing runs or is fetched, the layout holds, no digit is lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import Opener, WebServer, picture, too_wide, violations
from tests.web.mounted import mounted
from tests.web.screen_flows import LARGE, NAME

pytestmark = [pytest.mark.timeout(400), pytest.mark.xdist_group("web")]


@pytest.fixture(scope="module")
def server(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    found = WebServer(tmp_path_factory.mktemp("hostile"), Path(__file__).with_name("screen_flows.py"))
    yield found
    found.stop()


@pytest.fixture(scope="module")
def hold(server: WebServer) -> dict[str, Any]:
    run = server.api("POST", "/v1/runs", {"flow": NAME, "input": {}, "wait": 20})
    (found,) = server.api("GET", f"/v1/holds?run={run['id']}")["items"]
    return found


def watched(page: Page, server: WebServer) -> list[str]:
    """What ran, or was fetched from elsewhere."""
    seen: list[str] = []

    def dialog(box: Any) -> None:
        seen.append(f"dialog {box.message}")
        box.dismiss()

    page.on("dialog", dialog)
    page.on("popup", lambda other: seen.append(f"popup {other.url}"))
    own = (server.address, server.address.replace("http", "ws"), "data:", "blob:")
    page.on("request", lambda asked: None if asked.url.startswith(own) else seen.append(asked.url))
    return seen


@pytest.mark.covers("WB-54", "WEB-BAD-values")
def test_hostile_values_run_nothing_fetch_nothing_and_keep_the_layout(
    server: WebServer, hold: dict[str, Any], open_page: Opener
) -> None:
    page = open_page("/settings", height=900)
    seen = watched(page, server)
    flow = quote(NAME, safe="")
    addresses = {
        "inbox": "/inbox/mine", "hold": f"/inbox/all/{hold['id']}", "data": f"/inbox/all/{hold['id']}?tab=data",  # noqa: E501
        "next": f"/inbox/all/{hold['id']}?tab=flow", "runs": "/runs", "run": f"/runs/{hold['run']}",
        "timeline": f"/runs/{hold['run']}?tab=timeline", "events": f"/runs/{hold['run']}?tab=events",
        "state": f"/runs/{hold['run']}?tab=state", "flows": "/flows", "flow": f"/flows/{flow}",
        "start": f"/flows/{flow}/start",
    }  # fmt: skip
    wrong: dict[str, list[str]] = {}
    for name, path in addresses.items():
        page.goto(server.address + path)
        expect(page.locator("main")).to_be_visible()
        expect(page.locator(".skeleton, .waiting")).to_have_count(0)
        expect(page.get_by_text("This part of the page failed.")).to_have_count(0)
        picture(page, f"hostile-{name}-1280")
        for more in page.get_by_role("button", name=re.compile("^Show all")).all()[:3]:
            more.click()
        wrong[name] = too_wide(page) + violations(page)
        page.set_viewport_size({"width": 320, "height": 900})
        picture(page, f"hostile-{name}-320")
        wrong[name] += too_wide(page) + violations(page)
        page.set_viewport_size({"width": 1280, "height": 900})
    assert {name: found for name, found in wrong.items() if found} == {}
    assert seen == []
    assert page.evaluate("({}).isAdmin") is None


@pytest.mark.covers("WB-54", "WB-1")
def test_texts_are_shown_as_written_and_digits_are_kept(
    server: WebServer, hold: dict[str, Any], open_page: Opener
) -> None:
    page = open_page(f"/inbox/all/{hold['id']}")
    seen = watched(page, server)
    main = page.get_by_role("main")
    expect(main.get_by_text("<script>alert(1)</script>").first).to_be_visible()
    # Only addresses of the web are links, and they name their host.
    expect(main.get_by_role("link", name=re.compile(r"good.*\(example\.com\)")).first).to_be_visible()
    assert page.locator("a[href^='javascript'], a[href^='data']").count() == 0
    assert page.locator("main img, main iframe, main svg[onload], main script").count() == 0
    expect(main.get_by_text(str(LARGE)).first).to_be_visible()
    page.goto(f"{server.address}/runs/{hold['run']}?tab=state")
    expect(main.get_by_text(str(LARGE)).first).to_be_visible()
    expect(main.get_by_text("__proto__").first).to_be_visible()
    # From page to page by links: the name of the flow stays what it is.
    page.goto(f"{server.address}/flows")
    page.get_by_role("link", name=NAME, exact=True).click()
    expect(page.get_by_role("heading", name=NAME)).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name=NAME)).to_be_visible()
    page.goto(f"{server.address}/runs/{hold['run']}")
    main.get_by_role("link", name=NAME).first.click()
    expect(page.get_by_role("link", name=hold["run"][:8])).to_be_visible()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find").fill("größe")
    page.get_by_role("group", name="Flows").get_by_role("option").click()
    expect(page.get_by_role("heading", name=NAME)).to_be_visible()
    assert seen == []


@pytest.mark.covers("WB-1")
def test_the_app_works_below_a_path_prefix(
    server: WebServer, hold: dict[str, Any], open_page: Opener
) -> None:
    page = open_page("/settings")
    with mounted(server, page) as desk:
        page.goto(f"{desk}/")
        expect(page).to_have_url(f"{desk}/inbox/mine")
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        page.locator(".row").first.click()
        expect(page).to_have_url(re.compile(f"^{re.escape(desk)}/inbox/mine/"))
        page.reload()
        expect(page.get_by_role("main").get_by_text("<script>alert(1)</script>").first).to_be_visible()
        page.get_by_role("link", name="Flows", exact=True).click()
        page.get_by_role("link", name=NAME, exact=True).click()
        expect(page).to_have_url(re.compile(f"^{re.escape(desk)}/flows/"))
        page.reload()
        expect(page.get_by_role("heading", name=NAME)).to_be_visible()
        page.go_back()
        expect(page).to_have_url(f"{desk}/flows")
        expect(page.get_by_role("link", name=NAME, exact=True)).to_be_visible()
