"""Where the focus is after what had it has gone or is off: the next key goes on from there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.web.conftest import Opener, WebServer

pytestmark = pytest.mark.xdist_group("web")
BILL: Any = {"name": "bill.txt", "mimeType": "text/plain", "buffer": b"12.00"}
LARGE: Any = {**BILL, "name": "large.txt", "buffer": b"x" * 3000}

DOCUMENT = """\
holdfast: "1.0"
name: asked
config: {scaiqueue: {scope: travel}}
input: {type: object, properties: {amount: {type: number}}}
nodes:
  - {id: start, type: start, position: {x: 0, y: 0}}
  - {id: ask, type: hitl_review, position: {x: 0, y: 128},
     config: {queue: trips, prompt: "Pay {{amount}}?", sections: [{type: decision, options: [yes]}]}}
  - {id: done, type: end, position: {x: 0, y: 288}}
edges: [{source: start, target: ask}, {source: ask, source_port: "yes", target: done}]
"""


# Points of the path of an edge that lie on a node.
BEHIND = """path => {
  const boxes = [...document.querySelectorAll(".react-flow__node")]
    .map((each) => each.getBoundingClientRect());
  const length = path.getTotalLength(), at = path.getScreenCTM();
  const points = Array.from({ length: 100 }, (_, part) =>
    path.getPointAtLength((length * (part + 0.5)) / 100).matrixTransform(at));
  return points.filter(({ x, y }) => boxes.some(({ left, right, top, bottom }) =>
    x > left + 1 && x < right - 1 && y > top + 1 && y < bottom - 1)).length;
}"""


@pytest.fixture(scope="module")
def server(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    found = WebServer(tmp_path_factory.mktemp("focus"), Path(__file__).with_name("focus_flows.py"))
    yield found
    found.stop()


@pytest.mark.covers("WB-24", "WEB-FORMS")
def test_rows_of_a_table_and_files_are_added_and_removed_by_keys(
    server: WebServer, open_page: Opener
) -> None:
    run = server.api(
        "POST", "/v1/runs", {"flow": "kinds", "input": {"number": "F-1", "letter": ""}, "wait": 60}
    )
    (hold,) = server.api("GET", f"/v1/holds?run={run['id']}")["items"]
    page = open_page(f"/inbox/mine/{hold['id']}")
    page.get_by_role("button", name="Add a row").press("Enter")
    expect(page.get_by_label("What, row 1")).to_be_focused()
    page.get_by_role("button", name="Add a row").press("Enter")
    expect(page.get_by_label("What, row 2")).to_be_focused()
    page.get_by_role("button", name="Remove row 2").press("Enter")
    page.get_by_role("button", name="Remove row 1").and_(page.locator(":focus")).press("Enter")
    expect(page.get_by_role("button", name="Add a row")).to_be_focused()
    # What the browser shows as chosen is what the answer has.
    file = page.get_by_label("Bill")
    file.focus()
    file.set_input_files(LARGE)
    expect(page.get_by_text("is larger than 2 KiB")).to_be_visible()
    expect(file).to_have_value("")
    file.set_input_files(BILL)
    expect(page.locator(".file-chosen")).to_contain_text("bill.txt")
    expect(file).to_be_focused()
    page.get_by_role("button", name="Remove", exact=True).press("Enter")
    expect(file).to_be_focused()
    expect(file).to_have_value("")


@pytest.mark.covers("WB-31", "WB-35")
def test_keys_of_the_records_work_on_the_slider_and_at_both_ends(
    server: WebServer, open_page: Opener
) -> None:
    run = server.api("POST", "/v1/runs", {"flow": "letters", "input": {"to": "Ada"}, "wait": 60})["id"]
    page = open_page(f"/runs/{run}")
    slider = page.get_by_role("slider")
    last = slider.input_value()
    slider.focus()
    for key in ("[", "ArrowLeft", "]"):
        page.keyboard.press(key)
    expect(slider).to_have_value(str(int(last) - 1))
    page.keyboard.press("l")
    expect(slider).to_have_value(last)
    page.keyboard.press("[")
    page.get_by_role("button", name="Latest").press("Enter")
    expect(slider).to_be_focused()
    page.keyboard.press("f")
    page.get_by_role("button", name="Edit the state").press("Enter")
    expect(page.get_by_role("dialog").get_by_label("To", exact=True)).to_be_focused()


@pytest.mark.covers("WB-39", "WB-41", "WB-50-editor")
def test_a_node_is_moved_and_removed_and_its_flow_deployed_by_keys(
    server: WebServer, open_page: Opener
) -> None:
    server.api("POST", "/v1/flows", {"source": DOCUMENT})
    page = open_page("/editor/asked")
    node = page.locator(".react-flow__node[data-id='ask']")
    node.press("Enter")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("Moved to 8, 128")).to_be_attached()
    page.keyboard.press("Shift+ArrowUp")
    expect(page.get_by_text("Moved to 8, 96")).to_be_attached()
    # What is asked comes first.
    expect(page.get_by_label("Prompt")).to_be_visible()
    fields = page.locator(".editor-part .field-label, .editor-part legend").all_inner_texts()
    assert fields.index("Prompt") < fields.index("Timeout")
    page.get_by_role("button", name="Deploy").press("Enter")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Deploy").press("Enter")
    expect(dialog.get_by_role("link", name="Start run")).to_be_focused()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Remove node").press("Enter")
    expect(page.get_by_role("tab", name="Document")).to_be_focused()
    page.keyboard.press("Control+z")
    # The fields of a form have the limits of their kind.
    node.press("Enter")
    page.get_by_role("tab", name="Form").press("Enter")
    page.get_by_role("button", name="Field", exact=True).press("Enter")
    page.get_by_label("Pattern").fill("^[A-Z]")
    page.get_by_label("Most characters").fill("9")
    page.get_by_role("button", name="Save", exact=True).press("Enter")
    expect(page.get_by_text(re.compile("Saved by"))).to_be_visible()
    source = server.api("GET", "/v1/documents/asked")["source"]
    assert "kind: text, pattern: ^[A-Z], max_length: 9" in source.replace('"', "")


@pytest.mark.covers("WB-29", "WB-39")
def test_edges_that_lead_up_run_beside_the_nodes_and_not_behind_them(
    server: WebServer, open_page: Opener
) -> None:
    page = open_page("/editor/looped")
    again = page.locator(".react-flow__edge", has_text="again")
    expect(again).to_be_visible()
    assert again.locator("path.react-flow__edge-path").evaluate(BEHIND) == 0
