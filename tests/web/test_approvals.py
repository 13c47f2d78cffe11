"""An agent asks whether a tool may run: its arguments as fields, and the conversation beside them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.approval_flows import LARGE
from tests.web.conftest import Opener, WebServer, inspect

pytestmark = pytest.mark.xdist_group("web")


@pytest.fixture(scope="module")
def server(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    found = WebServer(tmp_path_factory.mktemp("approvals"), Path(__file__).with_name("approval_flows.py"))
    yield found
    found.stop()


def asked(server: WebServer) -> list[dict[str, Any]]:
    """The questions about both calls of a turn, in the order of the calls."""
    run = server.api("POST", "/v1/runs", {"flow": "support", "input": {"prompt": "Refund both"}, "wait": 60})
    holds = server.api("GET", f"/v1/holds?run={run['id']}")["items"]
    return sorted(holds, key=lambda hold: hold["context"]["arguments"]["order"])


def field(page: Page, name: str) -> Locator:
    return page.locator(f'[data-field="{name}"]').locator("input, textarea")


OVERLAP = """() => {
  const [toast, bar] = [".toast", ".decisions"]
    .map((each) => document.querySelector(each).getBoundingClientRect());
  return toast.left < bar.right && bar.left < toast.right && toast.top < bar.bottom && bar.top < toast.bottom;
}"""


def right_edge(part: Locator) -> float:
    box = part.bounding_box()
    assert box is not None
    return box["x"] + box["width"]


@pytest.mark.covers("WB-26", "WEB-AGENTS", "WB-24")
def test_a_person_reads_the_conversation_and_approves_a_call_with_changes(
    server: WebServer, open_page: Opener
) -> None:
    first, second = asked(server)
    page = open_page(f"/inbox/mine/{first['id']}")
    expect(page.get_by_role("heading", name="clerk wants to run refund")).to_be_visible()
    said = page.get_by_role("region", name="Conversation")
    expect(said.get_by_text("Refund both")).to_be_visible()
    # The newest turn is in view, calls and results are folded, and what a tool returned is marked.
    expect(said.get_by_text("Call refund: order A-18")).to_be_in_viewport()
    result = said.locator("details", has_text="From a tool, not checked")
    expect(result).not_to_have_attribute("open", "")
    result.locator("summary").click()
    expect(result).to_contain_text("<script>document.title='owned'</script>")
    result.locator("summary").click()
    # The decisions are below both, not in a column beside the conversation.
    assert right_edge(page.locator(".decisions")) >= right_edge(said)
    calls = page.get_by_role("region", name="Calls of this turn")
    expect(calls.get_by_role("listitem")).to_have_count(2)
    expect(calls.get_by_role("listitem").first).to_contain_text("this question")
    expect(calls.get_by_role("listitem").last).to_contain_text("Open")
    details = page.locator("details.call-details")
    expect(details.get_by_text(first["context"]["entity_id"])).to_be_hidden()
    details.locator("summary").click()
    expect(details.get_by_text(first["context"]["entity_id"])).to_be_visible()
    expect(field(page, "account")).to_have_value(str(LARGE))
    expect(page.get_by_label("Item, row 1")).to_have_value("Glass")
    expect(page.get_by_label("Item, row 2")).to_have_value("Frame")
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_visible()
    field(page, "amount").fill("200.25")
    expect(page.locator('[data-field="amount"]')).to_contain_text("was 250.5 Revert")
    page.locator('[data-field="lines"]').get_by_role("button", name="Remove row 2").click()
    expect(page.get_by_role("button", name="Approve with changes (2)")).to_be_visible()
    field(page, "account").fill("many")
    field(page, "account").blur()
    expect(page.locator('[data-field="account"] .field-error')).to_have_text("'many' is not an integer")
    page.locator('[data-field="account"]').get_by_role("button", name="Revert").click()
    page.get_by_label("Message to the agent").fill("Round down.")
    inspect(page, "approval")
    # After one of two calls the run is not over.
    page.get_by_role("article").get_by_role("link", name="Flow", exact=True).click()
    told = page.get_by_role("region", name="What each decision would do")
    expect(told).to_contain_text("the run still waits for another answer")
    page.get_by_role("button", name="Approve with changes (2)").click()
    expect(page.locator(".toast")).to_contain_text("Approve with changes (2) in")
    # Undo does not cover the decisions of the next question, beside the list or on a phone.
    expect(field(page, "order")).to_have_value("A-18")
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        assert not page.evaluate(OVERLAP), width
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{server.address}/inbox/all/{first['id']}")
    expect(page.locator(".outcome-line")).to_contain_text("Approve")
    data = server.api("GET", f"/v1/holds/{first['id']}")["resolution"]["response_data"]
    assert data == {
        "arguments": {"order": "A-17", "amount": 200.25, "account": LARGE, "lines": ["Glass"]},
        "modifications": {"instructions": "Round down."},
    }
    # The other call is still asked about: an answer counts for the call whose id it has.
    assert server.api("GET", f"/v1/holds/{second['id']}")["status"] == "pending"
    calls.get_by_role("link", name="refund: order A-18").click()
    expect(field(page, "order")).to_have_value("A-18")
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("Approve in")
    assert "owned" not in page.title()


@pytest.mark.covers("WB-26")
def test_a_call_is_decided_on_a_phone(server: WebServer, open_page: Opener) -> None:
    first, _ = asked(server)
    page = open_page(f"/inbox/mine/{first['id']}", width=320, height=640)
    expect(page.get_by_role("region", name="Conversation")).to_be_attached()
    page.get_by_label("Message to the agent").fill("Ask the customer first.")
    page.get_by_role("button", name="Reject").click()
    page.get_by_role("button", name="Reject").click()
    page.goto(f"{server.address}/inbox/all/{first['id']}")
    expect(page.locator(".outcome")).to_contain_text("Ask the customer first.")
    # The agent gets it as the reason.
    assert server.api("GET", f"/v1/holds/{first['id']}")["resolution"]["response_data"] is None
