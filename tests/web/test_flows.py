"""The pages of flows in a real browser: the list, a flow with its parts, and the form that starts a run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, expect

from tests.web.conftest import Opener, WebServer, inspect, violations

pytestmark = pytest.mark.xdist_group("web-2")
PARCEL = "Päckchen eins"
HEAVY = "ValueError: 31 kg is too heavy"


@pytest.fixture(scope="module")
def server(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    found = WebServer(tmp_path_factory.mktemp("web-flows"), Path(__file__).with_name("start_flows.py"))
    for weight in (31, 31, 2):
        found.api(
            "POST", "/v1/runs", {"flow": PARCEL, "input": {"number": "P", "weight": weight}, "wait": 60}
        )
    yield found
    found.stop()


def address(flow: str, rest: str = "") -> str:
    return f"/flows/{quote(flow, safe='')}{rest}"


@pytest.mark.covers("WB-38-form", "WB-38", "WEB-FLOWS")
def test_a_person_starts_a_run_from_the_form_and_sees_it(server: WebServer, open_page: Opener) -> None:
    page = open_page("/flows")
    page.get_by_role("link", name=f"Start run of {PARCEL}").click()
    expect(page.get_by_role("heading", name=f"Start {PARCEL}")).to_be_visible()
    page.get_by_role("button", name="Start run").click()
    expect(page.get_by_text("2 fields need your attention.")).to_be_visible()
    expect(page.get_by_label("Number")).to_be_focused()
    inspect(page, "flow-start-invalid")
    page.get_by_label("Number").fill("A-7")
    page.get_by_label("Weight").fill("heavy")
    page.get_by_label("Speed").select_option("express")
    tags = page.locator("[data-field=tags]")
    for place, text in enumerate(("red", "round", "")):
        tags.get_by_role("button", name="Add a row").click()
        tags.get_by_label(f"Item, row {place + 1}").fill(text)
    page.get_by_role("button", name="Start run").click()
    expect(page.get_by_text("'heavy' is not a number", exact=True)).to_be_visible()
    expect(page.get_by_label("Weight")).to_be_focused()
    page.get_by_label("Weight").fill("2.5")
    page.get_by_label("Key").fill("key-1")
    page.get_by_label("Priority").fill("7")
    page.get_by_label("send").check()
    inspect(page, "flow-start")
    page.get_by_role("button", name="Start run").click()
    expect(page).to_have_url(re.compile(r"/runs/[0-9a-f-]{36}"))
    expect(page.get_by_role("heading", name=PARCEL)).to_be_visible()
    run = server.api("GET", f"/v1/runs/{page.url.rpartition('/')[2]}/result?wait=60")
    shown = server.api("GET", f"/v1/runs/{page.url.rpartition('/')[2]}")
    assert (shown["priority"], shown["status"]) == (7, "pending_input"), run
    same = {"flow": PARCEL, "idempotency_key": "key-1",
            "input": {"number": "A-7", "weight": 2.5, "speed": "express", "tags": ["red", "round"],
                      "extra": {}}}  # fmt: skip
    assert server.api("POST", "/v1/runs", same)["id"] == shown["id"]


@pytest.mark.covers("WB-38-json", "WB-38")
def test_fields_and_json_show_the_same_value(server: WebServer, open_page: Opener) -> None:
    page = open_page(address(PARCEL, "/start"))
    page.get_by_label("Number").fill("J-1")
    page.get_by_role("button", name="Show as JSON").click()
    view = page.get_by_label("Input as JSON")
    expect(view).to_have_value(re.compile('"number": "J-1"'))
    view.fill("{")
    page.get_by_role("button", name="Show as fields").click()
    expect(page.get_by_text("This is not a JSON object.")).to_be_visible()
    inspect(page, "flow-start-json-invalid")
    view.fill('{"number": "J-2", "weight": 4, "tags": ["a"]}')
    page.get_by_role("button", name="Show as fields").click()
    expect(page.get_by_label("Number")).to_have_value("J-2")
    expect(page.get_by_label("Weight")).to_have_value("4")
    expect(page.locator("[data-field=tags]").get_by_label("Item, row 1")).to_have_value("a")


@pytest.mark.covers("WB-38-again", "WB-38")
def test_a_run_is_started_again_with_its_input(server: WebServer, open_page: Opener) -> None:
    given = {"number": "again", "weight": 3, "speed": "express"}
    first = server.api("POST", "/v1/runs", {"flow": PARCEL, "input": given, "wait": 60})
    page = open_page(address(PARCEL, "?tab=runs"))
    page.get_by_role("link", name=f"Start again with the input of {first['id'][:8]}").click()
    expect(page.get_by_label("Number")).to_have_value("again")
    expect(page.get_by_label("Speed")).to_have_value("express")
    page.get_by_role("button", name="Start run").click()
    expect(page).to_have_url(re.compile(r"/runs/[0-9a-f-]{36}$"))
    assert first["id"] not in page.url


@pytest.mark.covers("WB-37", "WB-37-page", "WEB-FLOWS")
def test_a_flow_shows_its_graph_versions_runs_and_failures(server: WebServer, open_page: Opener) -> None:
    page = open_page("/flows")
    failed = page.get_by_role("listitem").filter(has_text=PARCEL).get_by_role("link", name="Failed 2")
    expect(failed).to_have_attribute("href", re.compile(r"/runs\?q="))
    inspect(page, "flows")
    page.get_by_role("link", name=PARCEL, exact=True).click()
    drawing = page.locator(".drawing img")
    expect(drawing).to_have_js_property("complete", True)
    assert drawing.evaluate("each => each.naturalWidth") > 0
    expect(page.get_by_role("region", name="Nodes")).to_contain_text("weigh")
    inspect(page, "flow-graph")
    tabs = page.get_by_role("navigation", name="Parts of the flow")
    tabs.get_by_role("link", name="Versions").click()
    expect(page.get_by_text("Current", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="No live run is on another version.")).to_be_visible()
    numbers = page.locator(".flow-table tbody td").filter(has_text=re.compile(r"^\d+$"))
    expect(numbers).to_have_count(3)  # nodes, workers, live runs
    assert numbers.get_by_role("link").count() == 3
    expect(numbers.last.get_by_role("link")).to_have_attribute("href", re.compile("version(:|%3A)"))
    inspect(page, "flow-versions")
    tabs.get_by_role("link", name="Runs").click()
    expect(page.get_by_text("Completed", exact=True).first).to_be_visible()
    inspect(page, "flow-runs")
    tabs.get_by_role("link", name="Failures").click()
    group = page.get_by_role("region", name="Failed runs by error").get_by_role("listitem")
    expect(group).to_contain_text(HEAVY)
    expect(group).to_contain_text("2 runs")
    expect(group).to_contain_text("at weigh")
    expect(group.get_by_role("link", name="2 runs")).to_have_attribute("href", re.compile("error(:|%3A)"))
    weigh = page.get_by_role("row", name=re.compile("^weigh"))
    numbers = weigh.locator("td").filter(has_text=re.compile("[1-9]"))
    expect(numbers).to_have_count(numbers.get_by_role("link").count())
    for number in numbers.all():
        expect(number.get_by_role("link")).to_have_attribute("href", re.compile("/runs"))
    inspect(page, "flow-failures")


@pytest.mark.covers("WEB-FLOWS")
def test_a_flow_names_its_deployments_and_where_its_runs_wait(server: WebServer, open_page: Opener) -> None:
    server.api("PUT", "/v1/deployments/returns-eu", {"flow": "returns"})
    done, waits = [
        server.api("POST", "/v1/runs", {"flow": "returns", "input": {}, "wait": 60})["id"] for _ in "12"
    ]
    (hold,) = server.api("GET", f"/v1/holds?run={done}")["items"]
    server.api("POST", f"/v1/holds/{hold['id']}/resolve", {"decision": "yes"})
    server.api("GET", f"/v1/runs/{done}/result?wait=60")
    page = open_page("/flows/returns?tab=versions")
    deployments = page.get_by_role("region", name="Deployments")
    expect(deployments).to_contain_text("returns-eu")
    expect(deployments).to_contain_text("newest version")
    inspect(page, "flow-deployments")
    page.get_by_role("navigation", name="Parts of the flow").get_by_role("link", name="Failures").click()
    judge = page.get_by_role("row", name=re.compile("^judge")).locator("td")
    expect(judge.nth(3).get_by_role("link", name="1")).to_have_attribute("href", re.compile(waits))
    expect(judge.nth(4).get_by_role("link")).to_have_attribute("href", re.compile(done))
    receive = page.get_by_role("row", name=re.compile("^receive")).locator("td")
    expect(receive.nth(3)).to_have_text("0")
    expect(receive.nth(4)).to_have_text("\u2013")
    inspect(page, "flow-waits")


@pytest.mark.covers("WB-37-names")
def test_a_name_with_a_slash_has_its_pages(server: WebServer, open_page: Opener) -> None:
    page = open_page("/flows")
    page.get_by_role("link", name="post/größe", exact=True).click()
    expect(page.get_by_role("heading", name="post/größe")).to_be_visible()
    expect(page.get_by_role("region", name="Nodes")).to_contain_text("weigh")
    page.reload()
    expect(page.get_by_role("region", name="Nodes")).to_contain_text("weigh")
    page.get_by_role("navigation", name="Parts of the flow").get_by_role("link", name="Runs").click()
    expect(page.get_by_text("This flow has not run yet.")).to_be_visible()
    page.get_by_role("link", name="Start run").click()
    expect(page.get_by_label("Weight")).to_be_visible()


@pytest.mark.covers("WB-38-version", "WB-38")
def test_a_run_starts_on_the_version_that_is_chosen(server: WebServer, open_page: Opener) -> None:
    document: dict[str, Any] = {
        "holdfast": "1.0", "name": "refund", "description": "Pays back what was too much.",
        "input": {"type": "object", "required": ["amount"], "properties": {
            "amount": {"type": "number", "description": "In euros."}}},
        "nodes": [{"id": "start", "type": "start"}, {"id": "done", "type": "end"}],
        "edges": [{"source": "start", "target": "done"}],
    }  # fmt: skip
    old = server.api("POST", "/v1/flows", {"document": document})["version"]
    document["input"]["properties"]["amount"]["description"] = "In cents."
    new = server.api("POST", "/v1/flows", {"document": document})["version"]
    assert old != new
    page = open_page("/flows/refund?tab=versions")
    expect(page.get_by_role("row", name=re.compile("Current"))).to_contain_text("Document")
    expect(page.get_by_text("is not loaded by this server")).to_be_visible()
    inspect(page, "flow-versions-of-a-document")
    page.get_by_role("link", name="Start run").click()
    expect(page.get_by_text("In cents.")).to_be_visible()
    page.get_by_label("Amount").fill("12.5")
    page.get_by_label("Version").select_option(old)
    # What was typed is kept, and the fields are those of the chosen version.
    expect(page.get_by_label("Input as JSON")).to_have_value(re.compile('"amount": 12.5'))
    page.get_by_role("button", name="Show as fields").click()
    expect(page.get_by_text("In euros.")).to_be_visible()
    expect(page.get_by_label("Amount")).to_have_value("12.5")
    # A breakpoint is picked on the graph.
    page.get_by_text("Pick them on the graph").click()
    page.locator(".react-flow__node[data-id=done]").click()
    expect(page.get_by_label("done", exact=True)).to_be_checked()
    expect(page.locator(".react-flow__node[data-id=done] .break-mark")).to_be_visible()
    page.get_by_label("Lane").fill("slow")
    inspect(page, "flow-start-graph")
    with page.expect_request(lambda sent: sent.method == "POST" and sent.url.endswith("/v1/runs")) as sent:
        page.get_by_role("button", name="Start run").click()
    assert sent.value.post_data_json["lane"] == "slow"
    expect(page).to_have_url(re.compile(r"/runs/[0-9a-f-]{36}$"))
    run = page.url.rpartition("/")[2]
    assert server.api("GET", f"/v1/runs/{run}")["version"] == old
    assert server.api("GET", f"/v1/runs/{run}/result?wait=60")["status"] == "pending_input"


CODE = """
from holdfast import Flow
flow = Flow("bakery", effect="pure")

@flow.node
async def knead(s): return {{}}

@flow.node
async def {oven}(s): return {{}}

flow.start(knead)
flow.chain(knead, {oven})
"""


@pytest.mark.covers("WB-37-check", "WEB-FLOWS")
def test_a_run_that_the_newest_version_would_break_is_named(
    built: Path, browser: Browser, tmp_path: Path
) -> None:
    code = tmp_path / "bakery.py"
    code.write_text(CODE.format(oven="bake"))
    before = WebServer(tmp_path, code)
    started = before.api("POST", "/v1/runs", {"flow": "bakery", "breaks": ["bake"], "wait": 60})
    before.stop()
    assert started["status"] == "pending_input"
    code.write_text(CODE.format(oven="roast"))
    after = WebServer(tmp_path, code)
    try:
        context = browser.new_context()
        page = context.new_page()
        page.goto(after.sign_in)
        page.goto(after.address + "/flows/bakery?tab=versions")
        check = page.get_by_role("region", name="What the newest version would break")
        expect(check).to_contain_text("One live run does not fit")
        expect(check.get_by_role("link", name=started["id"][:8])).to_be_visible()
        expect(check).to_contain_text("bake")
        inspect(page, "flow-check-breaks")
        context.close()
    finally:
        after.stop()


def test_a_person_without_the_right_is_told_which_is_missing(server: WebServer, browser: Browser) -> None:
    body = {"subject": "user:reader", "rights": ["flows:read"]}
    token = server.api("POST", "/v1/tokens", body)["token"]
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.address + "/sign-in")
    page.get_by_label("Token").fill(token)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"^(?!.*sign-in)"))
    page.goto(server.address + address(PARCEL, "/start"))
    expect(page.get_by_text("runs:write")).to_be_visible()
    page.goto(server.address + address(PARCEL))
    expect(page.get_by_role("region", name="Nodes")).to_contain_text("weigh")
    expect(page.get_by_role("link", name="Start run")).to_be_hidden()
    page.get_by_role("link", name="Failures").click()
    expect(page.get_by_text("runs:read")).to_be_visible()
    assert violations(page) == []
    context.close()


def test_a_flow_that_is_not_there_and_a_search_without_a_match_say_so(open_page: Opener) -> None:
    page = open_page(address("nothing"), expected="404")
    expect(page.get_by_role("alert")).to_contain_text("nothing")
    assert violations(page) == []
    page.goto(page.url.partition("/flows/")[0] + "/flows?q=zzz")
    expect(page.get_by_text("No flow matches.")).to_be_visible()
    page.get_by_role("button", name="Clear filters").click()
    expect(page.get_by_role("link", name="untyped", exact=True)).to_be_visible()


@pytest.mark.covers("WB-38-phone")
def test_a_flow_without_a_schema_takes_json_and_its_page_fits_a_phone(
    server: WebServer, open_page: Opener
) -> None:
    page = open_page(address("untyped", "/start"))
    expect(page.get_by_text("any object is accepted").first).to_be_visible()
    inspect(page, "flow-start-json")
