"""What is left of a run's history: after pruning, after its worker was killed, and as a report."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.web.conftest import Opener, WebServer, picture, violations
from tests.web.test_runs import FLOWS, started, tab

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("web")]


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
    prune = [sys.executable, "-m", "holdfast", "prune", run, "--keep", "1", "--yes", "--store", server.store]
    subprocess.run(prune, check=True, capture_output=True, timeout=60)
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
    picture(page, "run-pruned")
    assert violations(page) == []


@pytest.mark.covers("WEB-TIME-postmortem")
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
    picture(page, "run-postmortem")


@pytest.mark.covers("WB-34")
def test_an_interrupted_run_says_what_a_resume_does_first(
    built: Path, tmp_path: Path, browser: Browser
) -> None:
    """Its worker was killed in the middle of a step, and this server has none."""
    store = f"sqlite:{tmp_path / 'web.db'}"
    command = [sys.executable, "-m", "holdfast", "run", f"{FLOWS}:hangs", "--store", store]
    env = {**os.environ, "HOLDFAST_LEASE": "1s", "HANG": str(tmp_path / "hangs")}
    child = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 90
    while not (tmp_path / "hangs").exists():
        assert time.monotonic() < deadline
        assert child.poll() is None
        time.sleep(0.05)
    child.kill()
    child.wait(30)
    server = WebServer(tmp_path, FLOWS, options=["--no-worker"])
    try:
        context = browser.new_context()
        page = context.new_page()
        page.goto(server.sign_in)
        while server.api("GET", "/v1/runs")["items"][0]["status"] != "resumable":
            assert time.monotonic() < deadline
            time.sleep(0.2)
        run = server.api("GET", "/v1/runs")["items"][0]["id"]
        page.goto(f"{server.address}/runs/{run}")
        expect(page.get_by_text("Interrupted", exact=True).first).to_be_visible()
        page.get_by_role("button", name="Resume", exact=True).click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("Runs again: hang.")
        picture(page, "run-resume")
        assert violations(page) == []
        dialog.get_by_role("button", name="Resume").click()
        expect(dialog).to_be_hidden()
        context.close()
    finally:
        server.stop()
