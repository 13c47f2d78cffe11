"""Forms: every kind of field, checked while people type, in holds, when a run starts and with sample data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from playwright.sync_api import Page, Route, expect

from tests.web.conftest import Opener, WebServer, inspect, picture, too_wide, violations
from tests.web.form_flows import LARGE

pytestmark = pytest.mark.xdist_group("web")


@pytest.fixture(scope="module")
def server(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    found = WebServer(tmp_path_factory.mktemp("forms"), Path(__file__).with_name("form_flows.py"))
    yield found
    found.stop()


def ask(server: WebServer, flow: str, number: str, **given: Any) -> dict[str, Any]:
    run = server.api("POST", "/v1/runs", {"flow": flow, "input": {"number": number, **given}, "wait": 60})
    (hold,) = server.api("GET", f"/v1/holds?run={run['id']}")["items"]
    return hold


def of(page: Page, field: str) -> Any:
    return page.locator(f'[data-field="{field}"]')


def decided(server: WebServer, hold: dict[str, Any]) -> dict[str, Any]:
    return server.api("GET", f"/v1/holds/{hold['id']}")


GROWN = "one => [one.clientHeight, one.scrollHeight <= one.clientHeight]"


@pytest.mark.covers("WB-24", "WEB-FORMS")
def test_a_field_grows_with_its_text_and_says_when_not_all_of_it_is_in_view(
    server: WebServer, open_page: Opener
) -> None:
    hold = ask(server, "kinds", "K-2", letter="Please pay.")
    page = open_page(f"/inbox/mine/{hold['id']}")
    field = of(page, "textarea")
    box = field.get_by_role("textbox")
    heights: list[int] = []
    for lines in (1, 12, 40, 90):
        box.fill("\n".join(f"Line {number}" for number in range(lines)))
        height, is_whole = box.evaluate(GROWN)
        heights.append(height)
        assert is_whole == (lines <= 40), lines
        expect(field.get_by_text("not all are in view")).to_have_count(int(lines > 40))
    assert heights == sorted(heights)
    assert heights[1] > 3 * heights[0]
    assert heights[2] == heights[3]
    # Lines that break at the edge of a phone count too.
    page.set_viewport_size({"width": 320, "height": 640})
    box.fill("word " * 60)
    assert box.evaluate(GROWN)[1]


@pytest.mark.covers("WB-24", "WEB-FORMS", "WB-54-digits")
def test_a_person_fills_in_every_kind_of_field_and_no_digit_is_lost(
    server: WebServer, open_page: Opener
) -> None:
    hold = ask(server, "kinds", "K-1", letter="Please **pay**.")
    page = open_page(f"/inbox/mine/{hold['id']}")
    expect(of(page, "integer").get_by_role("textbox")).to_have_value(str(LARGE))
    for label, typed in {
        "Text": "Ab-1", "Number": "0.3", "Large number": str(LARGE + 2), "Share 97 % sure": "12.5 %",
        "Day": "2026-03-29",
        "Time": "14:30", "Length": "1h 30m", "Mail": "a@example.org", "Address": "https://example.org/x",
        "Phone": "+49 30 1234", "Person": "dana", "Key": "vault/pay", "Code": "print()", "Patch": "-a\n+b",
        "Settings": f'{{"size": {LARGE}}}', "Odd": "X1",
    }.items():  # fmt: skip
        page.get_by_label(label, exact=True).fill(typed)
    of(page, "money").get_by_role("textbox").first.fill("12.50")
    page.get_by_label("Currency").fill("jpy")
    page.get_by_label("Moment").fill("2026-10-25T12:00:00")
    expect(of(page, "policy")).to_have_count(0)
    of(page, "boolean").get_by_role("radio", name="Yes").check()
    page.get_by_label("Policy required").fill("P-1")
    page.get_by_role("combobox", name="Colour").select_option("b")
    of(page, "radio").get_by_role("radio", name="Red").check()
    of(page, "multiselect").get_by_role("checkbox", name="Blue").check()
    of(page, "table").get_by_role("button", name="Add a row").click()
    page.get_by_label("What, row 1").fill("Glass")
    page.get_by_label("Pieces, row 1").fill("2")
    page.get_by_label("Shade, row 1").select_option("a")
    page.get_by_label("Bill").set_input_files(
        {"name": "bill.txt", "mimeType": "text/plain", "buffer": b"12 EUR"}
    )
    expect(of(page, "file")).to_contain_text("bill.txt")
    expect(of(page, "fixed").locator("output")).to_have_text("A-17")
    inspect(page, "form-kinds")
    page.get_by_role("button", name="Book", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("Book in")
    page.goto(f"{server.address}/inbox/all/{hold['id']}")
    expect(page.locator(".outcome-line")).to_contain_text("Book")
    data = decided(server, hold)["resolution"]["response_data"]
    assert data["file"].pop("sha256")
    assert data == {
        "text": "Ab-1", "textarea": "Dear customer,\nwe pay nothing.\nRegards", "markdown": "**Bold** words",
        "number": 0.3, "integer": LARGE + 2, "currency": "900.00", "money": {"amount": "12.50",
        "currency": "JPY"},
        "percent": 12.5, "boolean": True, "policy": "P-1", "select": "b", "radio": "a", "multiselect": ["b"],
        "date": "2026-03-29", "datetime": data["datetime"], "time": "14:30:00", "duration": "1h 30m",
        "email": "a@example.org", "url": "https://example.org/x", "phone": "+49 30 1234", "user": "dana",
        "secret": "vault/pay", "code": "print()", "diff": "-a\n+b", "json": {"size": LARGE},
        "file": {"size": 6, "name": "bill.txt", "media_type": "text/plain"}, "fixed": "A-17", "odd": "X1",
        "table": [{"what": "Glass", "pieces": 2, "colour": "a"}], "decision": "book",
    }  # fmt: skip


@pytest.mark.covers("WB-25", "WEB-FORMS")
def test_the_page_says_while_people_type_what_the_server_would_say(
    server: WebServer, open_page: Opener
) -> None:
    hold = ask(server, "kinds", "V-1", letter="x")
    page = open_page(f"/inbox/mine/{hold['id']}")
    wrong: dict[str, Any] = {
        "text": "x", "number": 0.25, "currency": "2000.01", "percent": "101", "date": "2026-02-30",
        "duration": "soon", "email": "a@", "url": "example.org", "phone": "12", "secret": "a b",
        "json": {"size": "x"},
    }  # fmt: skip
    errors = _refused(server, hold, {**wrong, "boolean": True})
    sent: list[str] = []
    page.route("**/place", lambda route: (sent.append(route.request.url), route.continue_()))
    for field, value in wrong.items():
        box = of(page, field).locator("input, textarea").first
        if field == "date":
            continue
        box.fill('{"size": "x"}' if field == "json" else str(value))
        # Only when it was left: nobody is interrupted.
        expect(of(page, field).locator(".field-error")).to_have_count(0)
        box.blur()
        expect(of(page, field).locator(".field-error")).to_have_text(errors[field])
        expect(box).to_have_attribute("aria-invalid", "true")
    for field in ("number", "integer"):
        of(page, field).locator("input").fill("646,5")
        of(page, field).locator("input").blur()
        expect(of(page, field).locator(".field-error")).to_contain_text("such as 646.5")
    of(page, "integer").locator("input").fill("7")
    of(page, "number").locator("input").fill("0.3")
    expect(of(page, "number").locator(".field-error")).to_have_count(0)
    of(page, "boolean").get_by_role("radio", name="Yes").check()
    page.get_by_role("button", name="Book", exact=True).click()
    summary = page.get_by_role("alert").filter(has_text="fields need your attention")
    expect(summary).to_contain_text(f"Policy {errors['policy']}")
    expect(of(page, "text").get_by_role("textbox")).to_be_focused()
    inspect(page, "form-errors")
    summary.get_by_role("button", name="Phone").click()
    expect(page.get_by_label("Phone")).to_be_focused()
    assert sent == []
    assert decided(server, hold)["status"] == "pending"


COVERED = """() => {
  const [bar, field] = [document.querySelector(".decisions"), document.activeElement];
  const [low, high] = [field.getBoundingClientRect(), bar.getBoundingClientRect()];
  const isBehind = !bar.contains(field) && low.bottom > high.top + 1 && low.top < high.bottom;
  return [field.closest("[data-field]")?.dataset.field ?? "", isBehind];
}"""


@pytest.mark.covers("WB-50-focus")
def test_what_is_focused_is_never_behind_the_decisions(server: WebServer, open_page: Opener) -> None:
    hold = ask(server, "kinds", "F-1", letter="x")
    page = open_page(f"/inbox/mine/{hold['id']}", height=500)
    for width, key in ((1280, "Tab"), (320, "Shift+Tab")):
        page.set_viewport_size({"width": width, "height": 500})
        page.get_by_label("Text" if key == "Tab" else "Odd", exact=True).focus()
        wanted, seen = {"number", "url", "phone", "json", "file"}, set[str]()
        for _ in range(60):
            field, is_behind = page.evaluate(COVERED)
            assert not is_behind, (width, field)
            seen.add(field)
            if wanted <= seen:
                break
            page.keyboard.press(key)
        assert wanted <= seen


def _refused(server: WebServer, hold: dict[str, Any], data: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(HTTPError) as refused:
        server.api("POST", f"/v1/holds/{hold['id']}/resolve", {"decision": "book", "response_data": data})
    return {each["field"]: each["message"] for each in json.load(refused.value)["errors"]}


@pytest.mark.covers("WB-18-refused", "WB-25")
def test_a_field_that_only_the_server_can_judge_is_marked_with_its_words(
    server: WebServer, open_page: Opener
) -> None:
    hold = ask(server, "kinds", "S-1", letter="x")
    page = open_page(f"/inbox/mine/{hold['id']}", expected="status of 422")
    of(page, "boolean").get_by_role("radio", name="No").check()
    page.get_by_label("Odd").fill("y1")
    page.get_by_role("button", name="Book", exact=True).click()
    expect(of(page, "odd").locator(".field-error")).to_have_text("does not match (?i)^x")
    expect(page.get_by_label("Odd")).to_be_focused()
    page.get_by_label("Odd").fill("x1")
    expect(of(page, "odd").locator(".field-error")).to_have_count(0)


@pytest.mark.covers("WEB-FORMS")
def test_proposed_previous_and_edited_values_stand_side_by_side(server: WebServer, open_page: Opener) -> None:
    hold = ask(server, "kinds", "P-1", letter="x")
    page = open_page(f"/inbox/mine/{hold['id']}")
    amount = of(page, "currency")
    expect(amount).to_contain_text("62 % sure: check it")
    expect(of(page, "percent")).to_contain_text("97 % sure")
    box = amount.get_by_role("textbox")
    expect(box).to_have_value("900.00")
    expect(amount.locator(".was")).to_contain_text("Proposed 1840.00 Revert")
    expect(amount.locator(".was")).to_contain_text("Previous 900.00 in use")
    amount.get_by_role("button", name="Revert").click()
    expect(box).to_have_value("1840.00")
    box.fill("1000")
    amount.get_by_role("button", name="Use this").click()
    expect(box).to_have_value("900.00")
    answer = of(page, "textarea")
    answer.get_by_role("textbox").fill("Dear customer,\nwe pay 500.00.\nRegards")
    for name, line in {
        "Proposed": "we pay 1,840.00.",
        "Previous": "we pay nothing.",
        "Yours": "we pay 500.00.",
    }.items():
        expect(answer.get_by_role("region", name=name).locator("mark")).to_have_text(line)
    answer.scroll_into_view_if_needed()
    inspect(page, "form-versions")
    answer.get_by_role("region", name="Proposed").get_by_role("button", name="Revert").click()
    expect(answer.get_by_role("textbox")).to_have_value("Dear customer,\nwe pay 1,840.00.\nRegards")
    # What was decided stands beside what the machine proposed, not beside what the form began with.
    values = {"boolean": False, "currency": "900.00", "textarea": "Dear customer,\nwe pay 1,840.00.\nRegards"}
    server.api(
        "POST", f"/v1/holds/{hold['id']}/resolve",
        {"decision": "book", "response_data": {**values, "integer": LARGE, "code": "if x:\n    pay()"}},
    )  # fmt: skip
    page.goto(f"{server.address}/holds/{hold['id']}")
    region = page.get_by_role("region", name="Decision")
    expect(region).to_contain_text("Amount (EUR)900.00proposed: 1840.00")
    expect(region.locator(".was")).to_have_count(1)
    expect(region.locator("pre")).to_have_text("if x:\n    pay()")
    expect(page.locator(".history")).to_contain_text("with amount 900.00 (proposed 1,840.00)")


@pytest.mark.covers("WB-24")
def test_a_field_without_a_help_text_says_how_its_kind_is_written(
    server: WebServer, open_page: Opener
) -> None:
    hold = ask(server, "kinds", "H-1", letter="x")
    page = open_page(f"/inbox/mine/{hold['id']}")
    for name, hint in {
        "Length": "For example 90s, 45m, 2h30m or 3d.",
        "Key": "The name of the secret, never the secret itself.",
        "Settings": "As JSON.",
        "Share": "A percentage.",
    }.items():
        expect(page.locator("[data-field]").get_by_label(name)).to_have_accessible_description(hint)
    # The example is one that the form accepts.
    for text in ("90s", "45m", "2h30m", "3d"):
        page.get_by_label("Length").fill(text)
        page.get_by_label("Length").blur()
        expect(of(page, "duration").locator(".field-error")).to_have_count(0)


@pytest.mark.covers("WB-24")
def test_a_run_is_started_from_fields_made_of_its_schema(server: WebServer, open_page: Opener) -> None:
    page = open_page("/flows/orders/start")
    page.get_by_label("Number required").fill(str(LARGE))
    of(page, "sender.name").get_by_role("textbox").fill("Dana")
    page.get_by_label("Price").fill("0.1234567890123456789")
    page.get_by_label("Price").blur()
    expect(of(page, "price").locator(".field-error")).to_contain_text("has more digits than a number keeps")
    page.get_by_label("Price").fill("0.1")
    page.get_by_role("combobox", name="Speed").select_option("fast")
    page.get_by_label("Day").fill("2026-05-01")
    for place, text in enumerate(("new", "urgent")):
        of(page, "tags").get_by_role("button", name="Add a row").click()
        page.get_by_label(f"Item, row {place + 1}").fill(text)
    of(page, "lines").get_by_role("button", name="Add a row").click()
    page.get_by_label("What, row 1").fill("Glass")
    page.get_by_label("Pieces, row 1").fill("3")
    page.get_by_label("When, row 1").fill("2026-06-01")
    page.get_by_label("Extra").fill(f'{{"id": {LARGE}}}')
    assert violations(page) == []
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url("**/runs/*")
    run = page.url.split("/runs/")[1].split("?")[0]
    first = server.api("GET", f"/v1/runs/{run}/checkpoints")["items"][0]["id"]
    assert server.api("GET", f"/v1/runs/{run}/checkpoints/{first}")["original_input"] == {
        "number": LARGE, "sender": {"name": "Dana", "mail": ""}, "price": 0.1, "speed": "fast",
        "day": "2026-05-01",
        "tags": ["new", "urgent"], "lines": [{"what": "Glass", "pieces": 3, "when": "2026-06-01"}],
        "extra": {"id": LARGE},
    }  # fmt: skip


@pytest.mark.covers("WB-24", "WB-54-digits")
def test_a_form_fits_a_phone_and_hostile_texts_do_nothing(server: WebServer, open_page: Opener) -> None:
    hostile = f"<img src=x onerror=\"document.title='owned'\"> {'x' * 3000} \u202egnp.exe {LARGE}"
    hold = ask(server, "kinds", "H-1", letter=hostile)
    asked: list[str] = []
    page = open_page("/inbox/mine", width=320, height=640)
    page.route("**://example.org/**", lambda route: _abort(route, asked))
    page.goto(f"{server.address}/inbox/mine/{hold['id']}")
    of(page, "textarea").get_by_role("textbox").fill(hostile)
    of(page, "table").get_by_role("button", name="Add a row").click()
    page.get_by_label("What, row 1").fill("y" * 500)
    expect(page.get_by_role("region", name="Yours")).to_contain_text(str(LARGE))
    picture(page, "form-phone")
    assert too_wide(page) == []
    assert violations(page) == []
    assert "owned" not in page.title()
    assert asked == []


@pytest.mark.covers("WB-27", "WEB-FORMS")
def test_markdown_runs_and_fetches_nothing_and_long_texts_are_folded(
    server: WebServer, open_page: Opener
) -> None:
    long = "\n\n".join(f"line {number}" for number in range(60))
    hold = ask(server, "texts", "M-1", prompt="**Please** decide.", long=long)
    asked: list[str] = []
    page = open_page("/inbox/mine")
    page.route("**://example.org/**", lambda route: _abort(route, asked))
    page.goto(f"{server.address}/inbox/mine/{hold['id']}")
    expect(page.locator(".form-context")).to_have_count(2)
    short, folded = page.locator(".form-context").all()
    expect(short.locator("table")).to_contain_text("glass")
    expect(short.get_by_role("link", name="a link (example.org)")).to_have_attribute(
        "rel", "noopener noreferrer nofollow"
    )
    expect(short.get_by_role("link", name="Image a picture (example.org)")).to_be_visible()
    expect(short.get_by_role("link", name="another")).to_have_count(0)
    expect(short).to_contain_text("<script>")
    assert short.locator("script, img").count() == 0
    expect(folded).not_to_contain_text("line 59")
    folded.get_by_role("button", name="Show all (528 B)").click()
    expect(folded).to_contain_text("line 59")
    assert violations(page) == []
    assert asked == []
    assert "owned" not in page.title()


def _abort(route: Route, asked: list[str]) -> None:
    asked.append(route.request.url)
    route.abort()
