"""Hostile values in every text: nothing runs or is fetched, the layout holds, no digit is lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import Opener, WebServer, picture, show, too_wide, violations
from tests.web.mounted import mounted
from tests.web.screen_flows import BIDI, DOCUMENT, LARGE, MARKUP, NAME

pytestmark = [pytest.mark.timeout(400), pytest.mark.xdist_group("web")]


@pytest.fixture(scope="module")
def server(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    found = WebServer(tmp_path_factory.mktemp("hostile"), Path(__file__).with_name("screen_flows.py"))
    yield found
    found.stop()


@pytest.fixture(scope="module")
def hold(server: WebServer) -> dict[str, Any]:
    run = server.api("POST", "/v1/runs", {"flow": NAME, "input": {}, "wait": 60})
    (found,) = server.api("GET", f"/v1/holds?run={run['id']}")["items"]
    return found


# Texts of the page, but for fields, in which a person sees and changes the exact text.
UNSEEN = """() => {
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const within = walk.currentNode.parentElement;
    if (within.closest("textarea, .cm-editor")) continue;
    const isUnseen = /[\\u200b\\u202a-\\u202e\\u2066-\\u2069]/.test(walk.currentNode.data);
    if (isUnseen) found.push(within.outerHTML.slice(0, 150));
  }
  return found.slice(0, 5);
}"""


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


@pytest.mark.covers("WB-54", "WEB-BAD-values", "WEB-BAD")
def test_hostile_values_run_nothing_fetch_nothing_and_keep_the_layout(
    server: WebServer, hold: dict[str, Any], open_page: Opener
) -> None:
    agent = server.api("POST", "/v1/runs", {"flow": "tricks", "input": {"prompt": BIDI + MARKUP}, "wait": 60})
    call = server.api("GET", f"/v1/holds?run={agent['id']}")["items"][0]["id"]
    server.api("PUT", "/v1/documents/tricky", {"source": DOCUMENT})
    failed = server.api("POST", "/v1/runs", {"flow": NAME, "input": {}, "wait": 60})["id"]
    (other,) = server.api("GET", f"/v1/holds?run={failed}")["items"]
    server.api("POST", f"/v1/holds/{other['id']}/comments", {"text": BIDI + MARKUP})
    answer = {"decision": "yes", "comment": BIDI + MARKUP}
    server.api("POST", f"/v1/holds/{other['id']}/resolve", answer)
    server.api("GET", f"/v1/runs/{failed}/result?wait=60")
    page = open_page("/settings", height=900)
    seen = watched(page, server)
    flow = quote(NAME, safe="")
    addresses = {
        "decided": f"/inbox/all/{other['id']}", "inbox": "/inbox/mine", "hold": f"/inbox/all/{hold['id']}", "data": f"/inbox/all/{hold['id']}?tab=data",  # noqa: E501
        "next": f"/inbox/all/{hold['id']}?tab=flow", "runs": "/runs", "run": f"/runs/{hold['run']}",
        "timeline": f"/runs/{hold['run']}?tab=timeline", "events": f"/runs/{hold['run']}?tab=events",
        "state": f"/runs/{hold['run']}?tab=state", "flows": "/flows", "flow": f"/flows/{flow}",
        "start": f"/flows/{flow}/start", "call": f"/inbox/all/{call}", "editor": "/editor/tricky",
        "editor-text": "/editor/tricky?view=text", "compare": f"/runs/{hold['run']}?tab=compare&at=1",
        "postmortem": f"/runs/{hold['run']}?tab=postmortem", "failures": f"/flows/{flow}?tab=failures",
        "failed": f"/runs/{failed}?tab=timeline", "audit": "/operations/audit",
    }  # fmt: skip
    wrong: dict[str, list[str]] = {}
    for name, path in addresses.items():
        show(page, path)
        expect(page.locator("main")).to_be_visible()
        expect(page.locator(".skeleton, .waiting")).to_have_count(0)
        expect(page.get_by_text("This part of the page failed.")).to_have_count(0)
        picture(page, f"hostile-{name}-1280")
        for _ in range(3):
            if (more := page.get_by_role("button", name=re.compile("^Show all"))).count():
                more.first.click()
        wrong[name] = too_wide(page) + violations(page) + page.evaluate(UNSEEN)
        page.set_viewport_size({"width": 320, "height": 900})
        picture(page, f"hostile-{name}-320")
        wrong[name] += too_wide(page) + violations(page)
        page.set_viewport_size({"width": 1280, "height": 900})
    assert {name: found for name, found in wrong.items() if found} == {}
    assert seen == []
    assert page.evaluate("({}).isAdmin") is None


@pytest.mark.covers("WEB-BAD")
def test_a_hostile_file_name_is_shown_as_it_is_or_refused(
    server: WebServer, hold: dict[str, Any], open_page: Opener
) -> None:
    page = open_page(f"/inbox/all/{hold['id']}", expected="status of 422")
    seen = watched(page, server)
    field = page.locator("[data-field=bill]")
    name = '<img src=x onerror=alert(1)> & "bill" {{number}}.txt'
    page.get_by_label("Bill").set_input_files({"name": name, "mimeType": "text/plain", "buffer": b"1"})
    expect(field.locator(".file-chosen")).to_contain_text(name)
    field.get_by_role("button", name="Remove").click()
    # A name that reads as another one is refused by the server.
    turned = {"name": "invoice\u202egnp.exe", "mimeType": "text/plain", "buffer": b"1"}
    page.get_by_label("Bill").set_input_files(turned)
    expect(field.get_by_role("alert")).to_be_visible()
    expect(field.locator(".file-chosen")).to_have_count(0)
    assert field.locator("img").count() == 0
    assert page.evaluate(UNSEEN) == []
    assert seen == []


@pytest.mark.covers("WEB-BAD", "WB-5")
def test_huge_values_are_shown_in_steps(server: WebServer, hold: dict[str, Any], open_page: Opener) -> None:
    page = open_page(f"/inbox/all/{hold['id']}")
    main = page.get_by_role("main")
    table = main.locator("table.values").filter(has_text="Line").first
    expect(table.get_by_role("row")).to_have_count(101)
    main.get_by_role("button", name="Show 100 more (200 left)").first.click()
    expect(table.get_by_role("row")).to_have_count(201)
    # A word of 20,000 letters is folded.
    expect(
        main.get_by_role("button", name=re.compile(r"Show all \(1?9\.5 KiB|Show all \(20 KiB")).first
    ).to_be_visible()
    assert main.evaluate("each => each.textContent.length") < 200_000


NARROW = """() => [...document.querySelectorAll(".facts dd")].filter((each) => {
  const { width, right } = each.getBoundingClientRect();
  return each.textContent && (width < 40 || right > innerWidth);
}).map((each) => each.textContent.slice(0, 60))"""


@pytest.mark.covers("WB-54", "WEB-BAD-values")
def test_values_deep_within_others_have_room(
    server: WebServer, hold: dict[str, Any], open_page: Opener
) -> None:
    page = open_page(f"/inbox/all/{hold['id']}")
    expect(page.get_by_role("main").get_by_text("bottom").first).to_be_attached()
    for width in (1280, 1000, 768, 320):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(NARROW) == []
    page.set_viewport_size({"width": 1280, "height": 900})
    # All that the hold has, as JSON.
    show(page, f"/inbox/all/{hold['id']}?tab=data")
    expect(page.locator("pre.json")).to_contain_text("\\u202e00.01")
    assert page.evaluate(UNSEEN) == []


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
    with mounted(server, page) as address:
        page.goto(f"{address}/")
        expect(page).to_have_url(f"{address}/inbox/mine")
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        page.locator(".row").first.click()
        expect(page).to_have_url(re.compile(f"^{re.escape(address)}/inbox/mine/"))
        page.reload()
        expect(page.get_by_role("main").get_by_text("<script>alert(1)</script>").first).to_be_visible()
        page.get_by_role("link", name="Flows", exact=True).click()
        page.get_by_role("link", name=NAME, exact=True).click()
        expect(page).to_have_url(re.compile(f"^{re.escape(address)}/flows/"))
        page.reload()
        expect(page.get_by_role("heading", name=NAME)).to_be_visible()
        page.go_back()
        expect(page).to_have_url(f"{address}/flows")
        expect(page.get_by_role("link", name=NAME, exact=True)).to_be_visible()
