"""The last act: a server with a few living examples, for a browser or, where nobody is, for the demo."""

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
    "pending_input": "waits for a person",
    "failed": "failed, and can go on once it is mended",
    "completed": "the one that was killed and finished",
}


class DemoServer:
    """A process of its own, as `holdfast serve` starts it."""

    def __init__(self, flows: Sequence[str], env: dict[str, str], folder: Path) -> None:
        command = [sys.executable, "-m", "holdfast", "serve", *flows, "--port", "0", "--json"]
        self._errors = folder / "serve.log"
        with self._errors.open("w") as errors:
            self.child = subprocess.Popen(
                command, env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
            )
        self.told: dict[str, Any] = {}
        self._web = build_opener(ProxyHandler({}), HTTPCookieProcessor(CookieJar()))

    def ready(self) -> bool:
        """Whether it listens; where nothing may, it says so and ends."""
        assert self.child.stdout is not None
        if select.select([self.child.stdout], [], [], PATIENCE)[0]:
            line = self.child.stdout.readline()
            self.told = json.loads(line) if line else {}
        return bool(self.told)

    def why_not(self) -> str:
        lines = self._errors.read_text().strip().splitlines()
        return lines[-1] if lines else "it did not say why"

    def api(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.told['token']}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.told["address"] + path, data, headers, method=method)
        with self._web.open(request, timeout=PATIENCE) as answer:
            return json.load(answer)

    def page(self) -> str:
        """The first page, as a browser gets it that opens the printed address."""
        request = Request(self.told["sign_in"], headers={"Accept": "text/html"})
        with self._web.open(request, timeout=PATIENCE) as answer:
            return answer.read().decode()

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
    paper.title("7. The server, with a few living examples")
    paper.typed("holdfast serve demo/flow.py demo/living.py")
    server = DemoServer([flow, str(EXAMPLE_FLOWS)], env, folder)
    try:
        if not server.ready():
            paper.say(f"Nothing can listen on this machine, so this act is left out: {server.why_not()}")
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
            raise SystemExit(f"The examples did not get as far as they should: {standing}")
        time.sleep(0.1)


def _print_runs(paper: Printout, runs: list[dict[str, Any]]) -> None:
    rows = [(str(run["id"])[:8], str(run["flow"]), MEANINGS.get(run["status"], "")) for run in runs]
    paper.table(("run", "flow", "where it stands"), rows)


def _wait(paper: Printout, server: DemoServer) -> None:
    paper.say("Open this in a browser. It signs you in, once and within ten minutes:")
    paper.framed(server.told["sign_in"], "your inbox")
    paper.say(
        f"After that it is {server.told['address']}. Decide what waits for you, and watch the run go on."
    )
    paper.say("Ctrl-C ends the server and the demo.", "dim")
    try:
        server.child.wait()
    except KeyboardInterrupt:
        paper.say("\nThe server is draining.")


def _show_page(paper: Printout, server: DemoServer) -> None:
    """Nobody is there: that the page answers is shown, and the server ends."""
    paper.say("A person would open the address that it prints. Nobody is there: the demo looks itself.")
    try:
        page = server.page()
    except HTTPError as error:
        raise SystemExit(f"The page answers {error.code}. This is a bug: please report it.") from error
    asked = [unescape(each) for each in re.findall(r'<p class="title"><a [^>]*>([^<]+)</a>', page)]
    if len(asked) < 2:
        raise SystemExit("The page does not show what waits. This is a bug: please report it.")
    paper.say(f"{server.told['address']}/ answers, and asks:")
    for each in asked:
        paper.say(f"  {each}")
