"""What is left of a run's history: after pruning, after its worker was killed, and as a report."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, Locator, Route, expect

from tests.deadlines import HANG
from tests.services import prefork
from tests.web.conftest import Opener, WebServer, inspect, picture, sign_in_as, too_wide, violations
from tests.web.test_runs import FLOWS, started, tab

pytestmark = pytest.mark.xdist_group("web")


@pytest.fixture(scope="module")
def server(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    found = WebServer(tmp_path_factory.mktemp("history"), FLOWS)
    yield found
    found.stop()


@pytest.mark.covers("WB-35")
def test_a_pruned_run_says_what_is_readable_and_why_not_the_rest(
    server: WebServer, open_page: Opener
) -> None:
    run = started(server, "orders", number=60)
    prune = ["prune", run, "--keep", "1", "--yes", "--store", server.store]
    done = prefork.run("holdfast", prune, cwd=Path.cwd(), env=os.environ)
    assert done.returncode == 0, done.stderr
    first = server.api("GET", f"/v1/runs/{run}/timeline")["horizon"]
    assert first > 0
    page = open_page(f"/runs/{run}?tab=timeline&at=1")
    timeline = page.get_by_role("region", name="Timeline")
    expect(timeline).to_contain_text(f"Records before {first} were removed by retention.")
    expect(timeline.get_by_role("listitem").filter(has_text="price")).to_contain_text("Done")
    expect(page.get_by_role("slider")).to_have_attribute("min", str(first))
    expect(page.locator(".slider")).to_contain_text(f"Record {first} of")
    tab(page, "State")
    expect(page.get_by_role("region", name="State")).to_contain_text("account")
    inspect(page, "run-pruned")


@pytest.mark.covers("WEB-TIME-postmortem", "WEB-TIME")
def test_the_post_mortem_of_a_run_is_a_part_of_its_page(server: WebServer, open_page: Opener) -> None:
    run = started(server, "orders", number=61)
    page = open_page(f"/runs/{run}")
    tab(page, "Post-mortem")
    report = page.get_by_role("region", name="Post-mortem")
    expect(report).to_contain_text("Post-mortem of orders")
    expect(report).to_contain_text("no such account")
    with page.expect_download() as found:
        report.get_by_role("button", name="Save as HTML").click()
    saved = Path(found.value.path()).read_text()
    assert found.value.suggested_filename == f"postmortem-{run[:8]}.html"
    assert "no such account" in saved


@pytest.mark.covers("WB-34", "WB-44-leases", "WEB-TIME", "WEB-OPS")
def test_an_interrupted_run_says_what_a_resume_does_first(
    built: Path, tmp_path: Path, browser: Browser
) -> None:
    """Its process is killed in the middle of a step, and this server has no worker."""
    store = f"sqlite:{tmp_path / 'web.db'}"
    command = [sys.executable, "-m", "holdfast", "run", f"{FLOWS}:hangs", "--store", store]
    env = {**os.environ, "HOLDFAST_LEASE": "5s", "HANG": str(tmp_path / "hangs")}
    child = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 90
    while not (tmp_path / "hangs").exists():
        assert time.monotonic() < deadline
        assert child.poll() is None
        time.sleep(0.05)
    server = WebServer(tmp_path, FLOWS, options=["--no-worker"])
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(server.sign_in)
        # The process has the run without being a worker.
        (lease,) = server.api("GET", "/v1/leases")["items"]
        page.goto(f"{server.address}/operations/workers")
        expect(page.get_by_text("No worker has reported.")).to_be_visible()
        row = page.get_by_role("table", name="Leases").get_by_role("row").nth(1)
        for text in (lease["run"][:8], "hangs", "Held", lease["worker"]):
            expect(row).to_contain_text(text)
        expect(row.locator("time")).to_be_visible()
        picture(page, "operations-leases")
        assert violations(page) + too_wide(page) == []
        row.get_by_role("link", name=lease["run"][:8]).click()
        expect(page.get_by_text("Running", exact=True).first).to_be_visible()
        child.kill()
        child.wait(HANG)
        while server.api("GET", "/v1/runs")["items"][0]["status"] != "resumable":
            assert time.monotonic() < deadline
            time.sleep(0.2)
        run = server.api("GET", "/v1/runs")["items"][0]["id"]
        page.goto(f"{server.address}/runs/{run}?tab=timeline")
        expect(page.get_by_text("Interrupted", exact=True).first).to_be_visible()
        expect(page.locator(".resume-list")).to_have_text(f"Started by worker {lease['worker']}")
        page.get_by_role("button", name="Resume", exact=True).click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("Runs again: hang.")
        picture(page, "run-resume")
        assert violations(page) == []
        dialog.get_by_role("button", name="Resume").click()
        expect(dialog).to_be_hidden()
    finally:
        context.close()
        server.stop()
        child.kill()


@pytest.mark.covers("WB-33", "WB-33-logs", "WEB-RUNS")
def test_a_step_shows_what_each_attempt_did_logged_wrote_and_made(
    server: WebServer, open_page: Opener
) -> None:
    run = started(server, "letters", to="Ada")
    page = open_page(f"/runs/{run}?tab=timeline", expected="status of 4")
    timeline = page.get_by_role("region", name="Timeline")
    timeline.get_by_role("link", name="write").click()
    step = page.get_by_role("complementary", name="Step")
    expect(step.get_by_role("heading", name="write")).to_be_visible()
    logs = step.locator(".step-logs li")
    expect(logs).to_have_count(3)
    expect(logs.nth(0)).to_contain_text("info writes to Ada")
    expect(logs.nth(1)).to_contain_text("warning the pen is <b>empty</b>")
    expect(logs.nth(2)).to_contain_text("Attempt 2")
    # What the failed attempt wrote is void, what it logged is not.
    expect(step).to_contain_text("Dear Ada, thank you.")
    expect(step).not_to_contain_text("Dead")
    expect(step).to_contain_text("written")
    expect(step).to_contain_text("find_address")
    expect(step.locator(".step-facts")).to_contain_text("120")
    expect(step.locator(".step-facts")).to_contain_text("0.25")
    attempts = part(step, "2 attempts")
    expect(attempts.get_by_role("listitem").first).to_contain_text(re.compile("ms · first worker of the run"))
    expect(attempts).to_contain_text("no ink")
    part(step, "Input").locator("summary").click()
    expect(part(step, "Input")).to_contain_text("Ada")
    with page.expect_download() as found:
        step.get_by_role("link", name="letter.txt").click()
    assert "thank you" in Path(found.value.path()).read_text()
    # The run as a whole has them too.
    head = page.locator(".run-head")
    expect(head).to_contain_text("120 tokens · cost 0.25")
    expect(head.get_by_role("link", name="letter.txt")).to_have_attribute(
        "href", re.compile(f"{run}/artifacts/")
    )
    picture(page, "run-step")
    assert violations(page) == []
    page.set_viewport_size({"width": 320, "height": 640})
    assert too_wide(page) == []
    slider = page.get_by_role("slider").bounding_box()
    assert slider is not None
    assert slider["width"] > 200
    picture(page, "run-step-phone")


def part(step: Locator, title: str) -> Locator:
    return step.locator("details").filter(has=step.page.locator("summary", has_text=title))


@pytest.mark.covers("WB-34", "WEB-TIME")
def test_a_fork_that_repeats_effects_names_them_and_needs_consent(
    server: WebServer, open_page: Opener
) -> None:
    run = started(server, "payments")
    (hold,) = server.api("GET", f"/v1/holds?run={run}")["items"]
    decide(server, "ann", hold["id"])
    page = open_page("/settings", expected="status of 4")
    sign_in_as(page, server, "kim", rights=["runs:read", "runs:write", "holds:read"])
    page.goto(f"{server.address}/runs/{run}?tab=timeline")
    timeline = page.get_by_role("region", name="Timeline")
    expect(timeline.get_by_role("listitem").filter(has_text="transfer")).to_contain_text("Done")
    for action in ("Fork", "Rewind"):
        page.get_by_role("button", name=action).click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("does this work with effects outside once more: transfer.")
        expect(dialog).to_contain_text("Asks again: Pay 900?")
        expect(dialog.get_by_role("button", name=action, exact=True)).to_be_disabled()
        dialog.get_by_label("Repeat the external effects of transfer.").check()
        picture(page, f"run-{action.lower()}-consent")
        assert violations(page) == []
        if action == "Fork":
            page.keyboard.press("Escape")
    # What the preview did not foresee is named when it is refused, and can be agreed to.
    page.route("**/preview", without_consent)
    page.reload()
    page.get_by_role("button", name="Fork").click()
    dialog.get_by_role("button", name="Fork", exact=True).click()
    expect(dialog).to_contain_text("that would repeat work with effects outside: transfer.")
    expect(dialog.get_by_role("button", name="Fork", exact=True)).to_be_disabled()
    dialog.get_by_label("Repeat the external effects of transfer.").check()
    dialog.get_by_role("button", name="Fork", exact=True).click()
    expect(page).not_to_have_url(re.compile(run))
    expect(page.get_by_role("link", name=re.compile("Forked from run"))).to_be_visible()
    (asked,) = server.api("GET", f"/v1/holds?run={page.url.split('/runs/')[1].partition('?')[0]}")["items"]
    assert asked["prompt"] == "Pay 900?"


def without_consent(route: Route) -> None:
    answer = route.fetch()
    found = answer.json()
    unforeseen = {"record": found["head"], "refused_without_consent": [], "repeated_effects": []}
    route.fulfill(response=answer, json=found | unforeseen)


def decide(server: WebServer, name: str, hold: str) -> None:
    token = server.api(
        "POST", "/v1/tokens", {"subject": f"user:{name}", "roles": ["approver"], "groups": ["payers"]}
    )["token"]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    body = json.dumps({"decision": "approve"}).encode()
    with urlopen(Request(f"{server.address}/v1/holds/{hold}/resolve", body, headers), timeout=HANG) as answer:
        assert answer.status == 200
