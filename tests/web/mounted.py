"""The app below the path prefix `/desk`, over the store of a server that is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Page

from tests.deadlines import HANG
from tests.web.conftest import WebServer
from tools import web


@contextmanager
def mounted(server: WebServer, page: Page) -> Iterator[str]:
    """Its address. The page is signed in there, and empty again before the server ends."""
    command = [sys.executable, "-m", "tests.web.prefixed", server.store]
    environment = {name: value for name, value in os.environ.items() if name != web.SKIP}
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert child.stdout is not None
    try:
        said = json.loads(child.stdout.readline())
        harness = f"{said['address']}/desk"
        page.wait_for_load_state("networkidle")
        page.goto("about:blank")
        # A sign-in ends the session that the browser had; the fixture still needs it.
        page.context.clear_cookies()
        page.goto(f"{harness}/sign-in?code={said['code']}")
        yield harness
        page.wait_for_load_state("networkidle")
        page.goto("about:blank")  # its requests end before its server does
    finally:
        child.terminate()
        child.wait(HANG)
        child.stdout.close()
