"""The rules for people with other eyes, ears and hands, line by line (WCAG 2.2 AA); axe checks the rest on
every screen."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import Opener, WebServer, inspect, too_wide
from tests.web.people import open_hold

pytestmark = pytest.mark.xdist_group("web")

FOCUSED = """() => {
  const each = document.activeElement;
  if (each === null || each === document.body) return null;
  const style = getComputedStyle(each);
  const box = each.getBoundingClientRect();
  const name = each.getAttribute("aria-label") ?? each.labels?.[0]?.textContent ?? each.textContent;
  return {
    name: each.tagName + " " + name.trim().slice(0, 60),
    isOutlined: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
    isSeen: box.width > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0
      && box.left < innerWidth,
  };
}"""
# What a pointer can press and Tab does not reach, but for rows that have arrows of their own.
UNREACHED = """() => [...document.querySelectorAll("a[href], button, input, select, textarea")]
  .filter((each) => each.offsetParent !== null && !each.disabled && each.tabIndex < 0)
  .filter((each) => !each.closest(".rows"))
  .map((each) => each.outerHTML.slice(0, 120))"""


def tabbed(page: Page) -> list[dict[str, Any]]:
    """What gets the focus, from the first to the last, by Tab alone."""
    found: list[dict[str, Any]] = []
    page.evaluate("document.activeElement.blur(); window.getSelection().removeAllRanges()")
    page.locator("body").evaluate(
        "each => { each.tabIndex = -1; each.focus(); each.removeAttribute('tabindex') }"
    )
    for _ in range(120):
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUSED)
        if focused is None:
            return found
        found.append(focused)
    raise AssertionError(f"the focus does not leave {found[-1]['name']}")


@pytest.mark.covers("WB-50")
def test_every_control_of_a_question_is_reached_by_tab_seen_and_left_again(
    server: WebServer, open_page: Opener
) -> None:
    first, second = server.claim("T-1"), server.claim("T-2")
    page = open_page(f"/inbox/mine/{first['id']}")
    expect(page.get_by_role("combobox", name="Account")).to_be_visible()
    found = tabbed(page)
    names = [each["name"] for each in found]
    assert names[0] == "A Skip to the content"
    for wanted in (
        "Inbox",
        "Mine",
        "Claim",
        "Amount",
        "Account",
        "Refund",
        "Reject",
        "Activity",
        "Add a comment",
    ):
        assert any(wanted in each for each in names), (wanted, names)
    assert [each for each in found if not each["isOutlined"]] == []
    assert [each for each in found if not each["isSeen"]] == []
    assert page.evaluate(UNREACHED) == []
    # One row is a stop of Tab, and arrows move on from it.
    assert sum("Refund claim T-" in each and "BUTTON" in each for each in names) == 1
    rows = page.get_by_role("list", name="Questions").get_by_role("button")
    current = rows.and_(page.locator("[aria-current=true]"))
    expect(current).to_have_accessible_name(re.compile("T-1"))
    current.focus()
    page.keyboard.press("ArrowDown")
    expect(page).to_have_url(re.compile(second["id"]))
    expect(rows.and_(page.locator(":focus"))).to_have_accessible_name(re.compile("T-2"))
    # The skip link leads past the header and the views.
    page.goto(page.url)
    expect(page.get_by_role("combobox", name="Account")).to_be_visible()
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


@pytest.mark.covers("WB-50", "WB-51")
def test_a_question_has_landmarks_headings_labels_and_words_beside_each_colour(
    server: WebServer, open_page: Opener
) -> None:
    hold = server.claim("L-1")
    page = open_page(f"/inbox/mine/{hold['id']}", expected="status of 422")
    expect(page.get_by_role("combobox", name="Account")).to_be_visible()
    for role, count in (("banner", 1), ("main", 1)):
        expect(page.get_by_role(role)).to_have_count(count)
    for name in ("Main", "Views"):
        expect(page.get_by_role("navigation", name=name)).to_have_count(1)
    expect(page.get_by_role("heading", level=1)).to_have_text("Inbox")
    expect(page.get_by_role("heading", level=2).first).to_contain_text("Refund claim L-1")
    expect(page).to_have_title(re.compile(r"^\(\d+\) .* · Inbox · Holdfast$"))
    # A state is never a colour alone: an icon that is hidden from screen readers, and a word.
    wordless = "each => [...each.querySelectorAll('.badge, .live, .priority, .confidence')].filter((one) => !one.textContent.trim() && !one.hasAttribute('aria-hidden')).map((one) => one.outerHTML)"  # noqa: E501
    assert page.locator("body").evaluate(wordless) == []
    assert page.locator("svg:not([aria-hidden=true])").count() == 0
    expect(page.locator("[data-row]").first).to_contain_text("High")
    amount = page.get_by_label("Amount")
    expect(amount).to_have_attribute("aria-required", "true")
    assert (
        page.locator("label[for]").evaluate_all(
            "all => all.filter((each) => !document.getElementById(each.htmlFor)).map((each) => each.id)"
        )
        == []
    )
    # An error is a text at its field, with a fix, and the summary leads to it.
    amount.fill("much")
    page.get_by_role("button", name="Refund", exact=True).click()
    expect(amount).to_be_focused()
    expect(amount).to_have_attribute("aria-invalid", "true")
    described = amount.get_attribute("aria-describedby") or ""
    error = page.locator(", ".join(f"[id='{each}']" for each in described.split()))
    expect(error.filter(has_text=re.compile("not a|such as|number|amount")).first).to_be_visible()
    expect(page.get_by_role("alert").filter(has_text="fields need your attention")).to_be_visible()
    # Times are text, with the exact one for screen readers.
    expect(page.locator(".history time .away").first).to_contain_text("Z)")


@pytest.mark.covers("WB-50")
def test_a_deadline_is_announced_extended_and_never_clears_what_was_typed(
    server: WebServer, open_page: Opener
) -> None:
    def due(hold: dict[str, Any], **span: float) -> None:
        at = (datetime.now(UTC) + timedelta(**span)).isoformat()
        body = {"assignee": "user:local", "expires_at": at, "reason": "Earlier"}
        server.api("POST", f"/v1/holds/{hold['id']}/reassign", body)

    hold, other = server.claim("D-1"), server.claim("D-2")
    due(hold, minutes=10)
    page = open_page(f"/inbox/mine/{hold['id']}", expected="status of 4")
    page.get_by_label("Amount").fill("512.00")
    soon = page.get_by_role("status").filter(has_text="Due soon")
    expect(soon).to_contain_text("What you typed is kept.")
    soon.get_by_role("button", name="Extend the deadline").click()
    panel = page.get_by_role("form", name="Extend the deadline")
    panel.get_by_label("By").select_option("4")
    panel.get_by_label("Reason").fill("I wait for the customer")
    inspect(page, "hold-extend")
    panel.get_by_role("button", name="Extend the deadline").click()
    expect(panel).to_be_hidden()
    expect(soon).to_have_count(0)
    expect(page.get_by_text("due in 4 h").first).to_be_visible()
    expect(page.get_by_label("Amount")).to_have_value("512.00")
    expect(page.locator(".history")).to_contain_text("I wait for the customer")
    # It passes while the form is open: what was typed is there, to be copied.
    open_hold(page, server, other)
    page.get_by_label("Amount").fill("613.00")
    due(other, seconds=2)
    mine = page.get_by_role("region", name="What you typed")
    expect(mine).to_contain_text("613.00")
    expect(mine.get_by_role("alert")).to_be_visible()


@pytest.mark.covers("WB-50")
def test_two_hundred_percent_forced_colours_and_no_motion_leave_everything_usable(
    server: WebServer, open_page: Opener
) -> None:
    hold = server.claim("Z-1", "patient")
    # A window of 1280 px at 200 %.
    page = open_page(f"/inbox/mine/{hold['id']}", width=640, height=400)
    expect(page.get_by_role("combobox", name="Account")).to_be_visible()
    assert too_wide(page) == []
    page.emulate_media(forced_colors="active", reduced_motion="reduce")
    refund = page.get_by_role("button", name="Refund", exact=True)
    assert refund.evaluate("each => getComputedStyle(each).borderStyle") == "solid"
    refund.focus()
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED)["isOutlined"]
    moved = "all => all.filter((each) => parseFloat(getComputedStyle(each).transitionDuration) > 0).length"
    assert page.locator("body *").evaluate_all(moved) == 0
    # A decision is placed in a status that can be heard, and can be undone.
    page.get_by_role("combobox", name="Account").select_option("4400")
    refund.click()
    placed = page.get_by_role("status").filter(has_text="Refund in")
    expect(placed).to_be_visible()
    placed.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("combobox", name="Account")).to_have_value("4400")


@pytest.mark.covers("WB-51")
def test_drawings_are_hidden_and_names_states_and_times_are_text(
    server: WebServer, open_page: Opener
) -> None:
    hold = server.claim("S-1")
    page = open_page(f"/runs/{hold['run']}?tab=graph")
    graph = page.get_by_role("region", name="Graph")
    expect(graph.get_by_role("button", name="decide: Waiting for input")).to_be_visible()
    # Of the picture only its nodes can be heard: no shape, no edge, no loose text.
    heard = page.locator(".graph-view").aria_snapshot()
    assert "read_letter: Done" in heard
    assert not re.search(r"- (img|graphics|text)", heard), heard
    page.goto(f"{server.address}/runs/{hold['run']}?tab=timeline")
    row = page.get_by_role("region", name="Timeline").get_by_role("listitem").filter(has_text="decide")
    heard = row.aria_snapshot()
    assert "Waiting for input" in heard
    assert re.search(r"\d{4}-\d\d-\d\dT[\d:]+Z", heard), heard
    page.goto(f"{server.address}/operations/metrics")
    chart = page.get_by_role("region", name="Open questions by age")
    expect(chart.locator("canvas")).to_be_visible()
    assert "canvas" not in chart.aria_snapshot()
    assert chart.locator(".chart").get_attribute("aria-hidden") == "true"
    expect(chart.locator(".away").first).to_contain_text("Under 1 hour")
    page.goto(f"{server.address}/editor/claims")
    canvas = page.get_by_role("region", name="Graph of claims")
    expect(canvas.get_by_role("group", name="decide, hold")).to_be_visible()
    assert "- img" not in canvas.aria_snapshot()


# Notes each new text of what screen readers are told about changes.
OBSERVE = """() => {
  window.said = [];
  const last = new Map();
  const note = () => {
    for (const each of document.querySelectorAll("[data-live-summary]")) {
      if (each.textContent && last.get(each) !== each.textContent) window.said.push(each.textContent);
      last.set(each, each.textContent);
    }
  };
  const all = { subtree: true, childList: true, characterData: true };
  new MutationObserver(note).observe(document.body, all);
}"""


@pytest.mark.covers("WB-51")
def test_live_changes_are_announced_together_and_not_each(server: WebServer, open_page: Opener) -> None:
    page = open_page("/settings")
    page.clock.install()
    page.goto(f"{server.address}/runs")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    said = page.locator("[data-live-summary]")
    page.evaluate(OBSERVE)
    for each in range(6):
        server.claim(f"A-{each}", "short")
    expect(said.filter(has_text=re.compile(r"\d runs? ha(s|ve) changed"))).to_have_count(1)
    page.clock.fast_forward(10_000)
    expect(said.filter(has_text=re.compile(r"[2-9] runs have changed"))).to_have_count(1)
    told = [each for each in page.evaluate("window.said") if "run" in each]
    # Six runs have changed several times each.
    assert len(told) <= 3, told
    # On the page of a run its state is.
    hold = server.claim("A-7")
    page.goto(f"{server.address}/runs/{hold['run']}")
    expect(page.get_by_text("Waiting for input").first).to_be_visible()
    answer = {"decision": "refund", "response_data": {"amount": "1.00", "account": "4400"}}
    server.api("POST", f"/v1/holds/{hold['id']}/resolve", answer)
    expect(page.get_by_role("status").filter(has_text="The run is now: Completed.")).to_be_attached()


@pytest.mark.covers("WB-50")
def test_every_drag_has_a_key(server: WebServer, open_page: Opener) -> None:
    hold = server.claim("G-1")
    page = open_page(f"/runs/{hold['run']}?tab=graph")
    view = page.locator(".graph-view")
    box = view.locator("> svg")
    expect(box).to_be_visible()
    before = box.get_attribute("viewBox")
    view.focus()
    page.keyboard.press("ArrowRight")
    expect(box).not_to_have_attribute("viewBox", before or "")
    slider = page.get_by_role("slider")
    last = int(slider.get_attribute("max") or 0)
    slider.focus()
    page.keyboard.press("ArrowLeft")
    expect(page).to_have_url(re.compile(rf"at={last - 1}\b"))
    # Nodes are moved by arrows, added by Enter and connected by fields.
    document = "holdfast: '1.0'\nname: keys\nnodes:\n  - {id: start, type: start, position: {x: 0, y: 0}}\n  - {id: done, type: end, position: {x: 0, y: 160}}\nedges: []\n"  # noqa: E501
    server.api("PUT", "/v1/documents/keys", {"source": document})
    page.goto(f"{server.address}/editor/keys")
    start = page.locator(".react-flow__node[data-id=start]")
    start.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("Unsaved changes")).to_be_visible()
    page.get_by_label("To", exact=True).select_option("done")
    page.get_by_role("button", name="Connect").press("Enter")
    expect(page.locator("[data-id='start:out->done']")).to_have_count(1)
    page.get_by_role("navigation", name="Add a node").get_by_role("button", name="wait", exact=True).press(
        "Enter"
    )
    expect(page.locator(".react-flow__node[data-id=wait]")).to_be_visible()
