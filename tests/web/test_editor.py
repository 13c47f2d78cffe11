"""The editor of flow documents in a real browser: canvas, panel, form builder, text, save and deploy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route, WebSocket, expect

from tests.web.conftest import Opener, WebServer, inspect, picture, sign_in_as

pytestmark = pytest.mark.xdist_group("web-2")

TRIP = """\
# Trips above the limit need a person.
holdfast: "1.0"
name: NAME   # the flow
ui: {zoom: 1.5}
config: {scaiqueue: {scope: travel}}
input: {type: object, required: [amount], properties: {amount: {type: number}, who: {type: string}}}
nodes:
  - {id: start, type: start, position: {x: 0, y: 0}}
  # Asked of finance.
  - {id: ask, type: hitl_review, label: Review, position: {x: 0, y: 128},
     config: {queue: trips, timeout: 2d, on_timeout: cancel, prompt: "Pay {{amount}}?",
              sections: [{type: decision, options: [approve, reject]}]}}
  - id: paid   # money
    type: set
    position: {x: -128, y: 288}
    config:
      values: {paid: "{{amount}}"}  # as asked
  - {id: done, type: end, position: {x: 128, y: 288}}
edges:
  - {source: start, target: ask}
  - {source: ask, source_port: approve, target: paid}   # yes
  - {source: ask, source_port: reject, target: done}
  - {source: paid, target: done}
"""
SAVED = re.compile("Saved by")


@pytest.fixture(scope="module")
def server(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    found = WebServer(tmp_path_factory.mktemp("web-editor"))
    yield found
    found.stop()


def trip(server: WebServer, name: str) -> str:
    """Deployed under this name."""
    text = TRIP.replace("NAME", name)
    server.api("POST", "/v1/flows", {"source": text})
    return text


def node(page: Page, name: str) -> Locator:
    return page.locator(f".react-flow__node[data-id='{name}']")


def saved_text(server: WebServer, name: str) -> str:
    return server.api("GET", f"/v1/documents/{name}")["source"]


def save(page: Page) -> None:
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text(SAVED)).to_be_visible()


@pytest.mark.covers("WB-69-canvas", "WB-39", "WEB-CANVAS")
def test_a_flow_is_built_on_the_canvas_deployed_and_run(server: WebServer, open_page: Opener) -> None:
    page = open_page("/flows", expected="404")
    page.get_by_role("button", name="New flow in the editor").click()
    name = page.get_by_label("Name of the new flow")
    expect(name).to_be_focused()
    name.fill("Greet me")
    page.get_by_role("button", name="Create").click()
    expect(name).to_have_attribute("aria-invalid", "true")
    name.fill("greet")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_text("Unsaved changes")).to_be_visible()
    # By the palette and the fields of the panel: without a pointer.
    node(page, "start").press("Enter")
    page.get_by_role("button", name="Remove the edge to done").click()
    page.get_by_role("button", name="set", exact=True).press("Enter")
    expect(node(page, "set")).to_be_visible()
    expect(page.locator("[data-id='start:out->set']")).to_have_count(1)
    page.get_by_label("Values").fill('greeting: "Hello {{name}}"')
    page.get_by_label("To", exact=True).select_option("done")
    page.get_by_role("button", name="Connect").click()
    page.get_by_label("Id", exact=True).fill("hello")
    page.get_by_label("Id", exact=True).press("Enter")
    expect(node(page, "hello")).to_be_visible()
    # All that is wrong is said at once, at its place.
    expect(node(page, "hello").locator(".problem-mark")).to_be_visible()
    page.locator(".react-flow__pane").click(position={"x": 30, "y": 30})
    page.get_by_label("Input (JSON Schema)").fill("type: object\nproperties:\n  name: {type: string}")
    expect(page.get_by_role("button", name="No problems")).to_be_visible()
    picture(page, "editor-new")
    page.get_by_role("button", name="Deploy").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("This is the first version of this flow.")).to_be_visible()
    dialog.get_by_role("button", name="Deploy").click()
    expect(dialog.get_by_text(re.compile("Deployed as canvas-"))).to_be_visible()
    picture(page, "editor-deployed")
    # What is deployed is no draft any more.
    expect(page.get_by_text("As deployed")).to_be_attached()
    dialog.get_by_role("link", name="Start run").click()
    page.get_by_label("Name").fill("Ada")
    page.get_by_role("button", name="Start run").click()
    expect(page).to_have_url(re.compile(r"/runs/[0-9a-f-]{36}"))
    run = re.findall(r"[0-9a-f-]{36}", page.url)[0]
    result = server.api("GET", f"/v1/runs/{run}/result?wait=60")
    assert result["status"] == "completed"
    assert result["artifacts"]["greeting"] == "Hello Ada"
    assert "greeting" in saved_text(server, "greet")


@pytest.mark.covers("WB-69", "WEB-CANVAS")
def test_a_document_is_changed_on_the_canvas_deployed_started_and_decided(
    server: WebServer, open_page: Opener
) -> None:
    trip(server, "trip-decided")
    page = open_page("/flows")
    page.get_by_role("link", name="trip-decided", exact=True).click()
    page.get_by_role("link", name="Edit").click()
    node(page, "ask").click()
    page.get_by_label("Prompt").fill("Pay {{amount}} to {{who}}?")
    # Between the decision and the payment comes another step.
    node(page, "paid").click()
    page.get_by_label("Values").fill('paid: "{{amount}}"\nnote: "for {{who}}"')
    expect(page.get_by_role("button", name="No problems")).to_be_visible()
    page.get_by_role("button", name="Deploy").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("ask")
    dialog.get_by_role("button", name="Deploy").click()
    expect(dialog.get_by_text(re.compile("Deployed as canvas-"))).to_be_visible()
    dialog.get_by_role("link", name="Start run").click()
    page.get_by_label("Amount").fill("42")
    page.get_by_label("Who").fill("Ada")
    page.get_by_role("button", name="Start run").click()
    expect(page).to_have_url(re.compile(r"/runs/[0-9a-f-]{36}"))
    run = re.findall(r"[0-9a-f-]{36}", page.url)[0]
    expect(page.get_by_text("Waiting for input", exact=True).first).to_be_visible()
    page.get_by_role("link", name=re.compile("^Inbox")).click()
    page.get_by_role("link", name="All", exact=True).click()
    page.get_by_role("button", name=re.compile("Pay 42 to Ada")).click()
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("Approve")
    picture(page, "story-canvas-decided")
    page.goto(f"{server.address}/runs/{run}")
    expect(page.get_by_text("Completed", exact=True)).to_be_visible()
    ended = server.api("GET", f"/v1/runs/{run}/result?wait=60")
    assert (ended["artifacts"]["paid"], ended["artifacts"]["note"]) == (42, "for Ada")


@pytest.mark.covers("WB-40", "WB-39", "WEB-CANVAS")
def test_canvas_and_text_are_one_document(server: WebServer, open_page: Opener) -> None:
    text = trip(server, "trip-one")
    page = open_page("/editor/trip-one")
    expect(page.get_by_text("As deployed")).to_be_visible()
    # Moved by the arrow keys, and back again: the text is what it was.
    node(page, "ask").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("Unsaved changes")).to_be_visible()
    page.keyboard.press("Control+z")
    expect(page.get_by_text("As deployed")).to_be_visible()
    page.keyboard.press("Control+Shift+z")
    expect(page.get_by_text("Unsaved changes")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    # A node that undo takes away is no longer selected: the next one has its panel.
    page.get_by_role("button", name="set", exact=True).click()
    expect(node(page, "set")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(node(page, "set")).to_have_count(0)
    node(page, "ask").click()
    page.get_by_label("Breakpoint").check()
    save(page)
    broken = text.replace("options: [approve, reject]}]}", "options: [approve, reject]}], breakpoint: true}")
    assert saved_text(server, "trip-one") == broken
    page.get_by_label("Breakpoint").uncheck()
    save(page)
    expect(page.get_by_role("button", name="Save", exact=True)).to_be_disabled()
    assert saved_text(server, "trip-one") == text
    # By drag: a node from the palette, and an edge between two ports.
    palette = page.get_by_role("navigation", name="Add a node")
    palette.get_by_role("button", name="wait", exact=True).drag_to(
        page.locator(".react-flow__pane"), target_position={"x": 60, "y": 60}
    )
    expect(node(page, "wait")).to_be_visible()
    node(page, "paid").locator("[data-handleid=out]").drag_to(
        node(page, "wait").locator(".react-flow__handle-top"), force=True
    )
    expect(page.locator("[data-id='paid:out->wait']")).to_have_count(1)
    # A copy has another name; Delete removes it.
    node(page, "wait").click()
    page.keyboard.press("Control+c")
    page.keyboard.press("Control+v")
    expect(node(page, "wait_2")).to_be_visible()
    page.locator(".canvas").focus()
    node(page, "wait_2").focus()
    page.keyboard.press("Delete")
    expect(node(page, "wait_2")).to_have_count(0)
    # A condition is checked while it is typed.
    node(page, "paid").click()
    page.get_by_role("button", name="out → wait").click()
    page.get_by_label("Condition").fill("amount >")
    expect(page.locator("#edge-problems")).to_be_visible()
    page.get_by_label("Condition").fill("amount > 9")
    expect(page.locator("#edge-problems")).to_have_count(0)
    page.get_by_role("button", name="Arrange").click()
    page.get_by_role("button", name="YAML").click()
    shown = page.locator(".cm-content")
    # The server has placed the nodes.
    expect(shown).not_to_contain_text("position: {x: 0, y: 128}")
    expect(shown).to_contain_text("when: amount > 9")
    expect(shown).to_contain_text("# Asked of finance.")
    # An error in the text leaves the canvas as it was.
    shown.click()
    page.keyboard.press("Control+Home")
    page.keyboard.type("x: [\n")
    expect(page.get_by_role("alert")).to_contain_text("The canvas shows the last text")
    inspect(page, "editor-yaml-error")
    page.get_by_role("button", name="Canvas").click()
    expect(node(page, "wait")).to_be_visible()
    expect(page.get_by_role("navigation", name="Add a node")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.covers("WB-40", "WEB-CANVAS")
def test_code_is_read_only_and_runs_show_their_states_on_the_nodes(
    server: WebServer, open_page: Opener
) -> None:
    hold = server.claim("E-1")
    page = open_page("/flows/claims")
    page.get_by_role("link", name="Open graph").click()
    expect(node(page, "decide")).to_be_visible()
    expect(page.get_by_text("This version comes from code")).to_be_visible()
    expect(page.get_by_role("button", name="Save", exact=True)).to_have_count(0)
    page.get_by_role("button", name=f"Show run {hold['run'][:8]} on the canvas").click()
    expect(node(page, "decide")).to_contain_text("Waiting for input")
    expect(node(page, "read_letter")).to_contain_text("Done")
    inspect(page, "editor-code")
    dot = "digraph walk { start [shape=Mdiamond]; end [shape=Msquare]; start -> a -> end }"
    server.api("POST", "/v1/pipelines", {"dot": dot, "simulate": True})
    page.goto(f"{server.address}/editor/walk")
    expect(node(page, "a")).to_be_visible()
    expect(page.get_by_text("This version comes from code")).to_be_visible()
    # What a document's run does shows while one looks at it.
    trip(server, "trip-live")
    body = {"flow": "trip-live", "input": {"amount": 4}, "breaks": ["paid"], "wait": 60}
    run = server.api("POST", "/v1/runs", body)
    page.goto(f"{server.address}/editor/trip-live?run={run['id']}")
    expect(node(page, "ask")).to_contain_text("Waiting for input")
    (hold,) = server.api("GET", f"/v1/holds?run={run['id']}")["items"]
    server.api("POST", f"/v1/holds/{hold['id']}/resolve", {"decision": "approve"})
    # At a breakpoint nobody is asked.
    expect(node(page, "paid")).to_contain_text("Paused at breakpoint")
    expect(node(page, "paid")).to_have_attribute("aria-label", re.compile("Paused at breakpoint"))
    page.get_by_role("tab", name="Live runs").click()
    expect(page.locator(".run-row.shown")).to_contain_text("Paused at breakpoint")
    page.get_by_role("button", name=f"Continue run {run['id'][:8]} at paid").click()
    expect(node(page, "done")).to_contain_text("Done")
    # The edges that it took, and not each one between two nodes that it came to.
    expect(page.locator(".react-flow__edge.taken")).to_have_count(3)
    expect(page.locator(".taken[data-id='ask:approve->paid']")).to_have_count(1)
    expect(page.locator(".taken[data-id='ask:reject->done']")).to_have_count(0)
    # A run that stands at a breakpoint is continued beside the canvas.
    body = {"flow": "trip-live", "input": {"amount": 5}, "breaks": ["ask"], "wait": 60}
    paused = server.api("POST", "/v1/runs", body)
    page.get_by_role("tab", name="Live runs").click()
    page.get_by_role("button", name=f"Continue run {paused['id'][:8]} at ask").click()
    expect(page.get_by_role("region", name="Paused at a breakpoint")).to_have_count(0)
    expect(page.get_by_role("button", name=f"Show run {paused['id'][:8]} on the canvas")).to_be_visible()
    inspect(page, "editor-live")


@pytest.mark.covers("WB-41", "WEB-CANVAS")
def test_all_problems_are_at_their_places_and_a_deployment_says_what_it_changes(
    server: WebServer, open_page: Opener
) -> None:
    text = trip(server, "trip-wrong")
    run = server.api("POST", "/v1/runs", {"flow": "trip-wrong", "input": {"amount": 4}, "wait": 60})
    wrong = text.replace("timeout: 2d", "timeout: soon").replace('{{amount}}"}  #', '{{total}}"}  #')
    wrong = wrong.replace("{source: paid, target: done}", "{source: paid, target: done, when: 'amount >'}")
    server.api("PUT", "/v1/documents/trip-wrong", {"source": wrong})
    page = open_page("/editor/trip-wrong")
    page.get_by_role("button", name="4 problems").click()
    listed = page.locator(".problem-list")
    expect(listed.get_by_role("listitem")).to_have_count(4)
    expect(listed).to_contain_text("Fix:")
    expect(node(page, "ask").locator(".problem-mark")).to_have_text("1")
    expect(node(page, "paid").locator(".problem-mark")).to_be_visible()
    expect(page.locator(".react-flow__edge.wrong")).to_have_count(1)
    inspect(page, "editor-problems")
    page.get_by_role("button", name="Deploy").click()
    expect(page.get_by_role("dialog")).to_contain_text("3 errors have to be fixed")
    page.get_by_role("dialog").get_by_role("button", name="Problems").click()
    listed.get_by_role("button", name="ask", exact=True).first.click()
    page.get_by_role("tab", name="Node").click()
    field = page.get_by_label("Timeout", exact=True)
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(page.locator(".field", has=field)).to_contain_text("Fix:")
    field.fill("3d")
    expect(field).not_to_have_attribute("aria-invalid", "true")
    page.get_by_label("Id", exact=True).fill("demand")
    page.get_by_label("Id", exact=True).press("Enter")
    node(page, "paid").click()
    page.get_by_label("Values").fill('paid: "{{amount}}"')
    page.get_by_role("button", name="out → done").click()
    page.get_by_label("Condition").fill("")
    expect(page.get_by_role("button", name="No problems")).to_be_visible()
    page.get_by_role("button", name="Deploy").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Removed ask")
    expect(dialog).to_contain_text("Added demand")
    expect(dialog.get_by_role("alert")).to_contain_text("One live run does not fit")
    expect(dialog.get_by_role("alert").get_by_role("listitem")).to_contain_text("the new version")
    expect(dialog.get_by_role("link", name=run["id"][:8])).to_be_visible()
    inspect(page, "editor-deploy")
    dialog.get_by_role("button", name="Deploy").click()
    expect(dialog.get_by_text(re.compile("Deployed as canvas-"))).to_be_visible()
    assert len(server.api("GET", "/v1/flows/trip-wrong")["versions"]) == 2


@pytest.mark.covers("WB-42")
def test_a_save_names_who_saved_in_between_and_unsaved_work_survives_a_reload(
    server: WebServer, open_page: Opener
) -> None:
    text = trip(server, "trip-two")
    page = open_page("/editor/trip-two", expected="412")
    page.get_by_label("Description").fill("Mine")
    page.reload()
    expect(page.get_by_text("Your unsaved changes were restored.")).to_be_visible()
    expect(page.get_by_label("Description")).to_have_value("Mine")
    theirs = text.replace("ui: {zoom: 1.5}", "ui: {zoom: 2}")
    server.api("PUT", "/v1/documents/trip-two", {"source": theirs})
    page.get_by_role("button", name="Save", exact=True).click()
    conflict = page.get_by_role("alert")
    # No seconds: what counts there is read aloud again and again.
    expect(conflict).to_contain_text(re.compile(r"local saved this document (just now|\d+ min ago)\."))
    conflict.get_by_role("button", name="Compare").click()
    expect(conflict).to_contain_text("- ui: {zoom: 2}")
    expect(conflict).to_contain_text("+ description: Mine")
    inspect(page, "editor-conflict")
    assert saved_text(server, "trip-two") == theirs
    conflict.get_by_role("button", name="Overwrite").click()
    expect(page.get_by_text(SAVED)).to_be_visible()
    assert saved_text(server, "trip-two") == f"{text}description: Mine\n"
    # What is discarded is gone on the server; undo brings it back.
    page.get_by_role("button", name="Discard draft").click()
    expect(page.get_by_text("As deployed")).to_be_visible()
    expect(page.locator(".editor-bar :focus")).to_have_count(1)
    assert saved_text(server, "trip-two") == text
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_label("Description")).to_have_value("Mine")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text(SAVED)).to_be_visible()
    assert saved_text(server, "trip-two") == f"{text}description: Mine\n"
    # Again, as a copy.
    page.get_by_label("Description").fill("Mine too")
    server.api("PUT", "/v1/documents/trip-two", {"source": theirs})
    page.keyboard.press("Control+s")
    conflict.get_by_role("button", name="Save as copy").click()
    name = conflict.get_by_label("Name of the copy")
    expect(name).to_be_focused()
    name.press("Enter")
    expect(page).to_have_url(re.compile("/editor/trip-two-copy"))
    copied = saved_text(server, "trip-two-copy")
    assert "name: trip-two-copy   # the flow" in copied
    assert "description: Mine too" in copied
    assert saved_text(server, "trip-two") == theirs


KEPT = """() => [localStorage, sessionStorage].flatMap((each) => Object.keys(each))
  .filter((name) => /^holdfast\\.(draft|document)\\./.test(name))"""


@pytest.mark.covers("WB-46")
def test_a_person_who_signs_out_leaves_no_text_and_no_connection_behind(
    server: WebServer, open_page: Opener
) -> None:
    trip(server, "trip-left")
    page = open_page("/settings", expected="status of 401")
    sign_in_as(page, server, "nora", roles=["admin"])
    sockets: list[WebSocket] = []
    page.on("websocket", lambda each: sockets.append(each))
    page.goto(f"{server.address}/editor/trip-left")
    page.get_by_label("Description").fill("Salaries of May")
    expect(page.get_by_text("Unsaved changes")).to_be_visible()
    page.evaluate("sessionStorage.setItem('holdfast.draft.x', '{}')")
    assert len(page.evaluate(KEPT)) == 2
    expect(page.locator(".live")).to_have_text("Live")
    # A session that ends by itself keeps the text for the same person.
    kept = page.context.cookies()
    page.context.clear_cookies()
    page.reload()
    assert len(page.evaluate(KEPT)) == 2
    page.context.add_cookies(kept)  # pyright: ignore[reportArgumentType]
    page.goto(f"{server.address}/editor/trip-left")
    expect(page.get_by_label("Description")).to_have_value("Salaries of May")
    expect(page.locator(".live")).to_have_text("Live")
    # The page is left when the connection has ended: browsers do not report the end of one that is dropped
    # with its page, and which of the two is first depends on the machine.
    left: list[Route] = []
    page.route(f"{server.address}/sign-in", lambda route: left.append(route))
    page.get_by_role("button", name="Account of nora").click()
    with sockets[-1].expect_event("close"):
        page.get_by_role("menuitem", name="Sign out").click(no_wait_after=True)
    opened = len(sockets)
    while not left:
        page.wait_for_timeout(20)  # playwright hands over what has arrived
    left[0].continue_()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert len(sockets) == opened
    assert page.evaluate(KEPT) == []
    assert "Salaries" not in page.evaluate("JSON.stringify([localStorage, sessionStorage])")


KINDS = (
    "text", "textarea", "markdown", "number", "integer", "currency", "percent", "boolean", "select", "radio",
    "multiselect", "date", "time", "datetime", "duration", "email", "url", "phone", "user", "file", "code",
    "diff", "json", "table", "secret-reference",
)  # fmt: skip


@pytest.mark.covers("WB-43", "WEB-CANVAS")
def test_the_form_builder_offers_every_kind_in_order_with_a_preview_and_compiles(
    server: WebServer, open_page: Opener
) -> None:
    trip(server, "trip-form")
    page = open_page("/editor/trip-form")
    node(page, "ask").click()
    page.get_by_role("tab", name="Form").click()
    kinds = page.get_by_label("Kind", exact=True)
    for kind in KINDS:
        page.get_by_role("button", name="Field", exact=True).click()
        kinds.select_option(kind)
    assert [each for each in kinds.locator("option").all_inner_texts() if each not in KINDS] == []
    page.get_by_role("button", name="Text", exact=True).click()
    page.get_by_label("Title").fill("Trip")
    page.get_by_label("Content").fill("Asked by **{{who}}**, {{amount}} EUR")
    preview = page.get_by_role("region", name="Preview")
    expect(preview.get_by_role("heading", name="Trip")).to_be_visible()
    # With sample data from the schema of the input.
    expect(preview).to_contain_text("Asked by who, 100 EUR")
    expect(preview).to_contain_text("Pay 100?")
    page.get_by_role("button", name="Move Trip up").click()
    expect(page.get_by_role("button", name="No problems")).to_be_visible()
    inspect(page, "editor-form")
    save(page)
    text = saved_text(server, "trip-form")
    found = server.api("POST", "/v1/flows/validate", {"source": text})
    assert (found["valid"], found["problems"]) == (True, [])
    assert [text.index(f"kind: {kind}}}") for kind in ("text", "textarea", "email", "url")] == sorted(
        text.index(f"kind: {kind}}}") for kind in ("text", "textarea", "email", "url")
    )
    assert text.index("Asked by") < text.index("kind: secret-reference")
    # What a reviewer gets is this form.
    server.api("POST", "/v1/flows", {"source": text, "activate": True})
    run = server.api("POST", "/v1/runs", {"flow": "trip-form", "input": {"amount": 4}, "wait": 60})
    (hold,) = server.api("GET", f"/v1/holds?run={run['id']}")["items"]
    sections = server.api("GET", f"/v1/holds/{hold['id']}")["schema"]["x-form"]["sections"]
    assert [each.get("kind") for each in sections if each["type"] == "input"] == list(KINDS)


@pytest.mark.covers("WB-50-editor")
def test_the_editor_is_accessible_and_fits_a_phone(server: WebServer, open_page: Opener) -> None:
    trip(server, "trip-looks")
    page = open_page("/editor/trip-looks")
    node(page, "ask").click()
    expect(page.get_by_label("Queue")).to_have_value("trips")
    page.get_by_text("More settings").click()
    inspect(page, "editor-node")
    node(page, "paid").click()
    page.get_by_role("button", name="out → done").click()
    expect(page.get_by_label("Condition")).to_be_visible()
    inspect(page, "editor-edge")
    page.get_by_role("button", name="YAML").click()
    expect(page.locator(".cm-content")).to_be_visible()
    inspect(page, "editor-yaml")


@pytest.mark.covers("WEB-CANVAS")
def test_a_click_selects_the_edge_and_delete_removes_it_only_on_the_canvas(
    server: WebServer, open_page: Opener
) -> None:
    trip(server, "trip-keys")
    page = open_page("/editor/trip-keys")
    node(page, "ask").click()
    # Elsewhere than on the canvas the key is not the canvas's.
    page.get_by_role("tab", name="Form").press("Backspace")
    expect(node(page, "ask")).to_be_visible()
    edge = page.locator("[data-id='paid:out->done']")
    edge.locator(".react-flow__edge-interaction").click(force=True)
    expect(page.get_by_role("tab", name="Edge")).to_be_visible()
    page.keyboard.press("Delete")
    expect(edge).to_have_count(0)
    expect(node(page, "paid")).to_be_visible()
    # What is typed stays, with the reason; and the focus stays where it is after a change.
    node(page, "ask").click()
    page.get_by_role("tab", name="Node").click()
    name = page.get_by_label("Id", exact=True)
    name.fill("done")
    name.press("Enter")
    expect(page.get_by_text("done is the id of another node.")).to_be_visible()
    expect(name).to_have_value("done")
    name.fill("review")
    name.press("Enter")
    expect(node(page, "review")).to_be_visible()
    expect(name).to_be_focused()
    # A placeholder is a text, as it is typed.
    node(page, "paid").click()
    page.get_by_label("Values").fill("paid: {{amount}}")
    save(page)
    assert 'paid: "{{amount}}"' in saved_text(server, "trip-keys")


@pytest.mark.covers("WB-39", "WB-50")
def test_the_focus_stays_on_the_canvas_and_the_next_edge_leaves_a_port_that_has_none(
    server: WebServer, open_page: Opener
) -> None:
    trip(server, "trip-focus")
    page = open_page("/editor/trip-focus")
    node(page, "paid").press("Enter")
    page.keyboard.press("Delete")
    expect(node(page, "paid")).to_have_count(0)
    on_canvas = page.locator(".canvas .react-flow__node:focus")
    expect(on_canvas).to_have_count(1)
    # Escape leaves the selection, not the canvas.
    page.keyboard.press("Control+z")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(page.get_by_role("tab", name="Document")).to_be_visible()
    expect(on_canvas).to_have_count(1)
    # What a node decides leads on by its options, one after the other.
    page.get_by_role("button", name="condition", exact=True).press("Enter")
    from_port = page.get_by_label("From port")
    expect(from_port).to_have_value("true")
    problem = page.get_by_role("tabpanel").locator(".field-problem").first
    expect(problem).to_contain_text("no way leads from the start to it")
    ground = "each => getComputedStyle(each).backgroundColor"
    assert problem.evaluate(ground) != page.get_by_role("tabpanel").evaluate(ground)
    page.get_by_role("button", name="wait", exact=True).press("Enter")
    expect(page.locator("[data-id='condition:true->wait']")).to_have_count(1)
    node(page, "condition").press("Enter")
    expect(from_port).to_have_value("false")
    node(page, "ask").press("Enter")
    page.get_by_role("tab", name="Form").click()
    page.get_by_role("button", name="Field", exact=True).press("Enter")
    expect(page.get_by_label("Name of the value")).to_be_focused()


IN_VIEW = """() => {
  const { left, right } = document.querySelector(".canvas").getBoundingClientRect();
  return [...document.querySelectorAll(".react-flow__node")].map((each) => each.getBoundingClientRect())
    .every((each) => each.left >= left && each.right <= right);
}"""


def drag(page: Page, moved: Locator, into: Locator) -> None:
    """With the pointer, to the middle of the other."""
    (start, end) = (each.bounding_box() for each in (moved, into))
    assert start
    assert end
    page.mouse.move(start["x"] + start["width"] / 2, start["y"] + start["height"] / 2)
    page.mouse.down()
    page.mouse.move(end["x"] + end["width"] / 2, end["y"] + end["height"] / 2, steps=8)
    expect(into.locator(".flow-node.target")).to_have_count(1)
    page.mouse.up()
    expect(into.locator(".flow-node.target")).to_have_count(0)


BOXED = """\
holdfast: "1.0"
name: other
nodes:
  - {id: start, type: start, position: {x: 0, y: 0}}
  - {id: each, type: map, position: {x: 0, y: 128}, config: {over: "{{amount}}"}}
  - {id: note_it, type: set, position: {x: 480, y: 128}, config: {values: {seen: "yes"}}}
  - {id: done, type: end, position: {x: 0, y: 480}}
edges: [{source: start, target: done}]
notes: [{id: n1, text: Policy 4.2}]   # kept
groups: [{id: g1, label: Money, nodes: [note_it]}]
"""


@pytest.mark.covers("WB-39", "WB-40", "WB-50")
def test_a_text_is_imported_after_its_problems_are_shown_and_keys_go_through_its_nodes(
    server: WebServer, open_page: Opener
) -> None:
    page = open_page("/editor/boxed", expected="404")
    page.get_by_role("button", name="Import").click()
    dialog = page.get_by_role("dialog", name="Import a document")
    replace = dialog.get_by_role("button", name="Replace the document")
    dialog.get_by_label("or paste its text").fill("nodes: [")
    expect(dialog.get_by_role("alert")).to_contain_text("Line")
    expect(replace).to_be_disabled()
    file = {"name": "boxed.yaml", "mimeType": "application/yaml", "buffer": BOXED.encode()}
    dialog.get_by_label("Choose a YAML or JSON file").set_input_files(file)
    expect(dialog.get_by_text("4 nodes, 1 edge.")).to_be_visible()
    expect(dialog.get_by_text("Its name is other; here it becomes boxed.")).to_be_visible()
    expect(dialog.locator(".problem-list")).to_contain_text("each")
    inspect(page, "editor-import")
    replace.click()
    expect(page.get_by_role("note", name="Note")).to_have_text("Policy 4.2")
    expect(page.locator(".canvas-group")).to_have_text("Money")
    # All of it is in view.
    expect(node(page, "note_it")).to_be_in_viewport(ratio=1)
    page.wait_for_function(IN_VIEW)

    # Three keys to the graph: the second link at the top leads there, arrows lead to the other nodes.
    page.locator("a.skip-work").focus()
    page.keyboard.press("Enter")
    expect(node(page, "start")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(node(page, "each")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(node(page, "note_it")).to_be_focused()
    page.keyboard.press("F6")
    expect(page.get_by_role("tab", name="Document")).to_be_focused()

    # With the pointer a node is taken into the map, which shows that it takes it.
    drag(page, node(page, "note_it"), node(page, "each"))
    save(page)
    text = saved_text(server, "boxed")
    assert re.search(r"id: note_it, .*parent: each", text)
    assert "notes: [{id: n1, text: Policy 4.2}]   # kept" in text
    picture(page, "editor-notes")


@pytest.mark.covers("WB-40", "WEB-CANVAS")
def test_a_thousand_nodes_are_drawn_and_one_more_opens_as_text_that_says_why(
    server: WebServer, open_page: Opener
) -> None:
    page = open_page("/flows")
    for count in (1_000, 1_001):
        inner = [f"n{number}" for number in range(count - 2)]
        lines = ['holdfast: "1.0"', f"name: large-{count}", "nodes:"]
        for place, name in enumerate(["start", *inner, "done"]):
            kind = {"start": "start", "done": "end"}.get(name, "set")
            at = f"{{x: {place % 40 * 240}, y: {place // 40 * 128}}}"
            lines.append(f"  - {{id: {name}, type: {kind}, position: {at}, config: {{values: {{a: 1}}}}}}")
        edges = [f"  - {{source: {a}, target: {b}}}" for a, b in pairwise(["start", *inner, "done"])]
        source = "\n".join([*lines, "edges:", *edges, ""])
        server.api("PUT", f"/v1/documents/large-{count}", {"source": source})
        page.goto(f"{server.address}/editor/large-{count}")
        expect(page.get_by_text("too large to edit on a canvas")).to_have_count(int(count > 1_000))
        expect(page.locator(".cm-content")).to_have_count(int(count > 1_000))
        expect(page.locator(".react-flow__node")).to_have_count(1_000 if count == 1_000 else 0)
        if count == 1_000:
            # One of them is selected and renamed: what leads to it follows.
            node(page, "n500").press("Enter")
            page.get_by_label("Id", exact=True).fill("middle")
            page.get_by_label("Id", exact=True).press("Enter")
            expect(node(page, "middle")).to_have_count(1)
            save(page)
            assert "source: n499, target: middle" in saved_text(server, "large-1000")
        picture(page, f"editor-{count}")


@pytest.mark.covers("WB-41", "WB-50")
def test_a_long_panel_scrolls_by_itself_and_the_page_does_not(open_page: Opener, server: WebServer) -> None:
    """What is hidden for the eye in a part that scrolls made the page three times as long as the window."""
    trip(server, "tall")
    page = open_page("/editor/tall")
    node(page, "ask").click()
    expect(page.get_by_label("Prompt").first).to_be_visible()
    longer = page.evaluate("document.documentElement.scrollHeight - innerHeight")
    assert longer <= 0
    panel = page.locator(".editor-part").first
    assert panel.evaluate("part => part.scrollHeight - part.clientHeight") > 0


@pytest.mark.covers("WB-43")
def test_the_preview_of_a_form_fills_fields_of_the_input_by_both_names(
    open_page: Opener, server: WebServer
) -> None:
    server.api(
        "POST",
        "/v1/flows",
        {
            "source": TRIP.replace("NAME", "named").replace(
                "Pay {{amount}}", "Pay {{input.amount}} of {{amount}}"
            )
        },
    )
    page = open_page("/editor/named")
    node(page, "ask").click()
    page.get_by_role("tab", name="Form").click()
    expect(page.get_by_role("region", name="Preview")).to_contain_text(re.compile(r"Pay (\S+) of \1\?"))
