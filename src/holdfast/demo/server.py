"""The last part: a server with a few example runs, for a browser or, without a terminal, for the demo
itself."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from html import unescape
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, ProxyHandler, Request, build_opener

from holdfast.demo.printout import Printout

PATIENCE = 30.0
EXAMPLE_FLOWS = Path(__file__).with_name("example_flows.py")
EXAMPLES: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("invoice", {"number": "R-2026-118", "supplier": "Nordwerk GmbH"}, "pending_input"),
    ("release", {"version": "4.2.0"}, "pending_input"),
    ("mirror", {}, "failed"),
)
MEANINGS = {
    "pending_input": "waiting for input",
    "failed": "failed; it can be resumed once the cause is fixed",
    "completed": "the one that was killed and finished",
}


class DemoServer:
    """A separate process, started with `holdfast serve`."""

    def __init__(self, flows: Sequence[str], env: dict[str, str], folder: Path) -> None:
        command = [sys.executable, "-m", "holdfast", "serve", *flows, "--port", "0", "--json"]
        self._errors = folder / "serve.log"
        # A file and not a pipe: the demo does not read stderr
        # while the server runs, and a full pipe would block it.
        with self._errors.open("w") as errors:
            self.child = subprocess.Popen(
                command, env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
            )
        self.startup: dict[str, Any] = {}
        # Without proxies of the environment: the server is on this machine.
        self._web = build_opener(ProxyHandler({}), HTTPCookieProcessor(CookieJar()))

    def ready(self) -> bool:
        """Whether it listens; if it cannot, it prints the reason and ends."""
        assert self.child.stdout is not None
        # With a limit, because a server that can neither listen nor end would hang the demo.
        if select.select([self.child.stdout], [], [], PATIENCE)[0]:
            line = self.child.stdout.readline()
            self.startup = json.loads(line) if line else {}
        return bool(self.startup)

    def why_not(self) -> str:
        lines = self._errors.read_text().strip().splitlines()
        return lines[-1] if lines else "no reason given"

    def api(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.startup['token']}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.startup["address"] + path, data, headers, method=method)
        with self._web.open(request, timeout=PATIENCE) as answer:
            return json.load(answer)

    def page(self) -> str:
        """The inbox without scripts, as a browser gets it that has opened the printed address."""
        found = ""
        for address in (self.startup["sign_in"], f"{self.startup['address']}/plain/"):
            request = Request(address, headers={"Accept": "text/html"})
            with self._web.open(request, timeout=PATIENCE) as answer:
                found = answer.read().decode()
        return found

    def stop(self) -> None:
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        if self.child.stdout is not None:
            self.child.stdout.close()


def show(paper: Printout, flow: str, env: dict[str, str], folder: Path) -> None:
    paper.title("7. The server, with a few example runs")
    paper.typed("holdfast serve demo/flow.py demo/example_flows.py")
    server = DemoServer([flow, str(EXAMPLE_FLOWS)], env, folder)
    try:
        if not server.ready():
            paper.say(
                f"The server cannot listen on this machine, so this part is skipped: {server.why_not()}"
            )
            return
        _print_runs(paper, started_runs(server))
        if sys.stdin.isatty() and not os.environ.get("CI"):
            _wait(paper, server)
        else:
            _show_page(paper, server)
    finally:
        server.stop()


def started_runs(server: DemoServer) -> list[dict[str, Any]]:
    """The runs, once each is where it should be."""
    for flow, given, _ in EXAMPLES:
        server.api("POST", "/v1/runs", {"flow": flow, "input": given})
    wanted = {flow: status for flow, _, status in EXAMPLES}
    deadline = time.monotonic() + PATIENCE
    while True:
        runs: list[dict[str, Any]] = server.api("GET", "/v1/runs")["items"]
        standing = {run["flow"]: run["status"] for run in runs}
        if all(standing.get(flow) == status for flow, status in wanted.items()):
            return runs
        if time.monotonic() > deadline:
            raise SystemExit(f"The example runs did not reach the expected state: {standing}")
        time.sleep(0.1)


def _print_runs(paper: Printout, runs: list[dict[str, Any]]) -> None:
    rows = [(str(run["id"])[:8], str(run["flow"]), MEANINGS.get(run["status"], "")) for run in runs]
    paper.table(("run", "flow", "state"), rows)


def _wait(paper: Printout, server: DemoServer) -> None:
    paper.say("Open this in a browser. It signs you in, once and within ten minutes:")
    paper.framed(server.startup["sign_in"], "your inbox")
    paper.say(
        f"After that it is {server.startup['address']}. Answer the questions, and watch the run continue."
    )
    paper.say("Ctrl-C ends the server and the demo.", "dim")
    try:
        server.child.wait()
    except KeyboardInterrupt:
        paper.say("\nThe server is draining.")


def _show_page(paper: Printout, server: DemoServer) -> None:
    """Without a terminal: checks that the page answers, and stops the server."""
    paper.say(
        "A person would open the printed address. There is no terminal here, so the demo opens it itself."
    )
    try:
        page = server.page()
    except HTTPError as error:
        raise SystemExit(f"The page answers {error.code}. This is a bug: please report it.") from error
    asked = [unescape(each) for each in re.findall(r'<p class="title"><a [^>]*>([^<]+)</a>', page)]
    if len(asked) < 2:
        raise SystemExit("The page does not show the open questions. This is a bug: please report it.")
    paper.say(f"{server.startup['address']}/ answers, and asks:")
    for each in asked:
        paper.say(f"  {each}")
