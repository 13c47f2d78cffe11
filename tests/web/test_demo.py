"""A newcomer: from the address that the demo prints to decided holds and resumed runs, in a real browser."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.cli.test_demo import read_until
from tests.deadlines import HANG
from tests.web.conftest import PATIENCE, inspect, picture

pytestmark = pytest.mark.xdist_group("web")


@pytest.fixture
def link(built: Path, tmp_path: Path) -> Iterator[str]:
    """The address that signs in, of a demo at a terminal, without a display and without Node."""
    here, there = pty.openpty()
    env = {"PATH": "/nonexistent", "HOME": "/nonexistent", "TMPDIR": str(tmp_path), "TERM": "xterm"}
    child = subprocess.Popen(
        [sys.executable, "-m", "holdfast.demo"], env=env, stdin=there, stdout=there, stderr=there,
        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(there)
    try:
        read_until(here, "approve or reject? ")
        os.write(here, b"approve\n")
        said = read_until(here, "ends the server and the demo")
        yield re.findall(r"http://127\.0\.0\.1:\d+/sign-in\?code=[\w-]+", said)[0]
        os.write(here, b"\x03")
        read_until(here, "")
        assert child.wait(HANG) == 0
    finally:
        child.kill()
        child.wait()
        os.close(here)


@pytest.mark.covers("WB-69-demo", "WB-69", "WEB-APP", "WEB-PROOF")
def test_a_newcomer_comes_from_the_demo_to_a_decided_hold_and_a_resumed_run(
    link: str, browser: Browser
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(link)
    expect(page).to_have_url(re.compile(r"/inbox/mine"))
    every_state_is_shown(page)
    decide_release(page)
    allow_tool(page)
    runs_are_completed(page)
    continue_breakpoint(page)
    set_absence(page)
    context.close()


def every_state_is_shown(page: Page) -> None:
    page.get_by_role("link", name="Runs", exact=True).click()
    for flow, state in {
        "invoice": "Waiting for input", "support": "Waiting for input", "newsletter": "Paused at breakpoint",
        "trial": "Sleeping", "mirror": "Failed", "reindex": "Running", "refund": "Completed",
    }.items():  # fmt: skip
        expect(page.get_by_role("row", name=re.compile(flow)).first).to_contain_text(state)
    picture(page, "demo-runs")
    # The one whose worker was killed runs again, with another.
    page.get_by_role("link", name="Operations", exact=True).click()
    expect(page.get_by_role("row", name=re.compile("worker-1"))).to_contain_text("Not seen")
    expect(page.get_by_role("row", name=re.compile("Alive"))).to_have_count(1)
    picture(page, "demo-workers")
    page.get_by_role("link", name="Runs", exact=True).click()
    killed = page.get_by_role("row", name=re.compile("reindex")).first
    killed.get_by_role("link").first.click()
    expect(page.locator(".resume-list")).to_contain_text("Started by worker worker-1")
    expect(page.locator(".resume-list")).to_contain_text("Resumed by")
    picture(page, "demo-resumed")


def decide_release(page: Page) -> None:
    page.get_by_role("link", name=re.compile("^Inbox")).click()
    page.get_by_role("button", name=re.compile(r"Release 4\.2\.0")).click()
    page.get_by_role("button", name="Release it").click()
    expect(page.locator(".toast")).to_contain_text("Release it")


def allow_tool(page: Page) -> None:
    page.get_by_role("button", name=re.compile("pay_back")).click()
    expect(page.locator("h2.hold-title")).to_be_visible()
    inspect(page, "demo-tool")
    page.get_by_role("button", name=re.compile("^Approve")).first.click()
    expect(page.locator(".toast")).to_contain_text("Approve")


def runs_are_completed(page: Page) -> None:
    """When both decisions are final."""
    page.get_by_role("link", name="Runs", exact=True).click()
    for flow in ("release", "support"):
        expect(page.get_by_role("row", name=re.compile(flow))).to_contain_text("Completed")


def continue_breakpoint(page: Page) -> None:
    page.get_by_role("button", name="Continue newsletter").click()
    expect(page.get_by_role("row", name=re.compile("newsletter")).first).to_contain_text("Completed")


def set_absence(page: Page) -> None:
    page.goto(f"{page.url.partition('/runs')[0]}/settings")
    page.get_by_label("Substitute").select_option(label="Kim")
    page.get_by_role("button", name="Start the absence").click()
    expect(page.get_by_text("Your substitute is kim")).to_be_visible()
